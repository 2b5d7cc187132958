"""Reading a request's body: all of it or a refusal, however it was sent. Must not know what it means."""

from typing import Any

from flask import current_app, request

from errors import Refused
from jsonbody import parse_json


def read_object() -> dict[str, Any]:
    """The request's JSON object, whatever its content type is called."""
    return parse_json(read_body())


def read_body() -> bytes:
    """The request's body; `Refused` (413) beyond `MAX_BODY_BYTES`, sent in chunks or not."""
    refuse_too_large()
    largest, announced = _largest(), request.content_length
    try:
        body = _read_up_to(largest + 1 if announced is None else announced)
    except Exception:  # the server's own words for broken chunks and lost connections
        raise Refused(400, "The request body could not be read to its end.") from None
    if len(body) > largest:
        raise _too_large(largest)
    if announced is not None and len(body) < announced:
        raise Refused(400, "The request body ended before its announced length.")
    return body


def refuse_too_large() -> None:
    """Before anything of it is read: `Refused` (413) for a body that says itself that it is too large."""
    if (request.content_length or 0) > _largest():
        raise _too_large(_largest())


def _largest() -> int:
    return int(current_app.config["SETTINGS"].max_body_bytes)


def _read_up_to(size: int) -> bytes:
    stream, body = request.environ["wsgi.input"], b""
    while len(body) < size and (part := stream.read(size - len(body))):
        body += part
    return body


def _too_large(largest: int) -> Refused:
    return Refused(413, f"The request body is larger than {largest} bytes.")
