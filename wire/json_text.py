"""How the service writes JSON: `as_json` as text, `json_bytes` for answers, which may be long. Both say the same."""

import json
from collections.abc import Callable
from typing import Any

COMPACT: Any = {"ensure_ascii": False, "separators": (",", ":")}
as_json = json.JSONEncoder(**COMPACT).encode

faster: Callable[..., bytes] | None = None
try:
    import orjson
except ImportError:  # there is no wheel for every machine (requirements.in)
    pass
else:
    faster = orjson.dumps


def json_bytes(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """A value as JSON in UTF-8. A float may have its exponent in another form: 1e-7 for 1e-07.

    `default` makes JSON of what is not.
    """
    if faster:
        try:
            return faster(value, default)
        except TypeError:  # what it does not take, such as an integer of more than 64 bits
            pass
    return json.JSONEncoder(**COMPACT, default=default).encode(value).encode()
