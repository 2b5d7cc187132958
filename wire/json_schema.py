"""The common types of the JSON Schemas of requests."""

from typing import Any

Schema = dict[str, Any]

BOOLEAN: Schema = {"type": "boolean"}


def text(description: str, **more: Any) -> Schema:
    """A string with a description."""
    return {"type": "string", "description": description, **more}


def limited(description: str, longest: int) -> Schema:
    """A string with a description, of 1 to `longest` characters."""
    return text(description, minLength=1, maxLength=longest)


def whole(description: str, least: int, most: int, **more: Any) -> Schema:
    """A whole number with a description, from `least` to `most`."""
    return {"type": "integer", "description": description, "minimum": least, "maximum": most, **more}
