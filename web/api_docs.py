"""The API reference: `docs/openapi.yaml`, as JSON for programs and as a page for people.

It shows what the file says, and must not know the operations themselves.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import render_template

from web import guards

Schema = dict[str, Any]

FILE = Path(__file__).parents[1] / "docs/openapi.yaml"
ORIGIN = "http://this.service"  # stands for this one in the page that is kept
VARIABLES = {"apiKey": "KEY", "metricsToken": "METRICS_TOKEN"}  # of the shell, with the credentials for commands
COUNTED = {"Length": "character", "Items": "item"}


class Field(NamedTuple):
    """A field of a body, a parameter or a header; `rule` says its type and limits in words."""

    name: str
    rule: str
    description: str
    is_required: bool


def show_json() -> Schema:
    """GET /openapi.json."""
    return {**_document(), "servers": [{"url": guards.origin()}]}


def show_page() -> str:
    """GET /docs."""
    return _page().replace(ORIGIN, guards.origin())


@cache
def _page() -> str:
    """The page, with `ORIGIN` for the service's: anybody may ask for it, and rendering takes 0.3 s."""
    document, operations = _document(), _operations()
    groups = [(tag, [one for one in operations if one["tags"][0] == tag["name"]]) for tag in document["tags"]]
    components, everywhere = _resolved(document["components"]), _resolved(document["x-any-address"])
    return render_template(
        "docs.html",
        info=document["info"],
        groups=groups,
        schemes=components["securitySchemes"],
        everywhere=[_answer(*one) for one in everywhere.items()],
        headers=list(_headers(components)),
    )


def operation(operation_id: str) -> Schema:
    """The operation as `_operation` describes it."""
    return next(one for one in _operations() if one["operationId"] == operation_id)


# --- reading the file ---------------------------------------------------------------------------------------


@cache
def _document() -> Schema:
    """The file, read when it is first needed: parsing takes a tenth of a second."""
    import yaml

    document: Schema = yaml.load(FILE.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe
    return document


def _resolved(node: Any) -> Any:
    """The node with each reference replaced by what it leads to."""
    if isinstance(node, list):
        return [_resolved(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" not in node:
        return {name: _resolved(value) for name, value in node.items()}
    found: Any = _document()
    for name in node["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return _resolved(found)


@cache
def _operations() -> list[Schema]:
    paths = _resolved(_document()["paths"])
    return [
        _operation(method.upper(), path, found)
        for path, methods in paths.items()
        for method, found in methods.items()
    ]


def _operation(method: str, path: str, found: Schema) -> Schema:
    """The operation with what the page shows of it, and what an assistant's tool takes of it."""
    answers = [_answer(status, answer) for status, answer in found["responses"].items()]
    return {
        **found,
        "method": method,
        "path": path,
        "scheme": _scheme(found),
        "parameters": [
            _field(one["name"], one["schema"], one, f"{one['in']}, ") for one in found.get("parameters", ())
        ],
        "bodies": _bodies(found.get("requestBody", {})),
        "sent": _sent(found),
        "good": [answer for answer in answers if answer["status"] < "300"],
        "errors": [answer for answer in answers if answer["status"] >= "300"],
        "curl": _curl(method, path, found),
    }


def _sent(found: Schema) -> Schema:
    """The JSON Schemas of the fields of its JSON body and its query, none of them null."""
    media = found.get("requestBody", {}).get("content", {}).get("application/json", {})
    query = [one for one in found.get("parameters", ()) if one["in"] == "query"]
    of_query = {one["name"]: {**one["schema"], "description": one["description"]} for one in query}
    sent: Schema = _never_null(media.get("schema", {}).get("properties", {}) | of_query)
    return sent


def _never_null(node: Any) -> Any:
    """The schema without null, which counts as absent, and without fields that only answers have."""
    if isinstance(node, list):
        return [_never_null(one) for one in node if one != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    kept = {name: _never_null(one) for name, one in node.items() if not (isinstance(one, dict) and "readOnly" in one)}
    if isinstance(kept.get("type"), list):
        kept["type"] = kept["type"][0]  # the other one is null
    return kept


def _scheme(found: Schema) -> str | None:
    security = found.get("security", _document()["security"])
    return next(iter(security[0])) if security else None


def _answer(status: str, answer: Schema) -> Schema:
    return {**answer, "status": status, "headers": list(_headers(answer)), "bodies": _bodies(answer)}


def _headers(place: Schema) -> Iterator[Field]:
    for name, header in place.get("headers", {}).items():
        yield _field(name, header["schema"], header)


def _bodies(place: Schema) -> list[Schema]:
    """A body for each kind of content and each schema that it may have; the first of these has the examples."""
    found = []
    for kind, media in place.get("content", {}).items():
        named = [example["value"] for example in media.get("examples", {}).values()]
        examples = [media["example"]] if "example" in media else named
        text = "\n".join(map(_shown, examples))
        for form in media["schema"].get("oneOf", [media["schema"]]):
            told = form.get("description") or place.get("description", "")
            found.append({"kind": kind, "description": told, "fields": list(_fields(form)), "example": text})
            text = ""
    return found


def _shown(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)


def _fields(schema: Schema, before: str = "") -> Iterator[Field]:
    """The fields of an object and of the objects in it, each named by its path."""
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        yield _field(before + name, inner, {**inner, "required": name in required})
        yield from _fields(inner, f"{before}{name}.")
        yield from _fields(inner.get("items", {}), f"{before}{name}[].")


def _field(name: str, schema: Schema, told: Schema, before: str = "") -> Field:
    return Field(name, before + _rule(schema), told.get("description", ""), told.get("required", False))


def _rule(schema: Schema) -> str:
    """The schema of a value in words."""
    if "const" in schema:
        return f"always {json.dumps(schema['const'])}"
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    types = schema["type"] if "type" in schema else [one["type"] for one in schema["anyOf"]]
    words = [types if isinstance(types, str) else " or ".join(types)]
    for what, unit in COUNTED.items():
        words += _between(schema.get(f"min{what}"), schema.get(f"max{what}"), f" {unit}")
    words += _between(schema.get("minimum"), schema.get("maximum"), "")
    if "default" in schema:
        words.append(f"default {schema['default']}")
    return ", ".join(words)


def _between(least: int | None, most: int | None, unit: str) -> list[str]:
    if least is None and most is None:
        return []
    units = f"{unit}s" if unit and (most or least) != 1 else unit
    if most is None:
        return [f"at least {least:,}{units}"]
    if least is None:
        return [f"at most {most:,}{units}"]
    return [f"{most:,}{units}" if least == most else f"{least:,} to {most:,}{units}"]


def _curl(method: str, path: str, found: Schema) -> str:
    """A command to copy, which sends the examples."""
    parameters = [one for one in found.get("parameters", ()) if "example" in one]
    for one in parameters:
        path = path.replace(f"{{{one['name']}}}", str(one["example"]))
    query = urlencode({one["name"]: one["example"] for one in parameters if one["in"] == "query"})
    scheme = _scheme(found)
    options = [f'-H "Authorization: Bearer ${VARIABLES[scheme]}"'] if scheme else []
    if "requestBody" in found:
        example = found["requestBody"]["content"]["application/json"]["example"]
        options.append(f"-d {quote(json.dumps(example, ensure_ascii=False))}")
    if method != ("POST" if "requestBody" in found else "GET"):
        options.insert(0, f"-X {method}")
    return " \\\n  ".join([f"curl {quote(ORIGIN + path + '?' * bool(query) + query)}", *options])
