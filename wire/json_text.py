"""`as_json`: how all JSON that the service writes is written."""

import json

as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
