"""`as_json`: the one way in which the service writes JSON."""

import json

as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
