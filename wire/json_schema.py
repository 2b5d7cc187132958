"""The common types of the JSON Schemas of requests and answers."""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
TIME: Schema = {"type": "integer", "description": "Unix milliseconds"}
TIME_OR_NULL: Schema = {**TIME, "type": ["integer", "null"]}


def text(description: str, **more: Any) -> Schema:
    """A string with a description."""
    return {"type": "string", "description": description, **more}


def limited(description: str, longest: int) -> Schema:
    """A string with a description, of 1 to `longest` characters."""
    return text(description, minLength=1, maxLength=longest)


def record(properties: Schema, optional: Schema | None = None) -> Schema:
    """An object that has all of `properties`, and perhaps some of the `optional` ones."""
    return {"type": "object", "properties": properties | (optional or {}), "required": list(properties)}


def list_of(items: Schema) -> Schema:
    """An array."""
    return {"type": "array", "items": items}
