"""The bodies that an alert's address takes, each read as an object: JSON, forms, text, a query (docs/alerts.md).

Must not know what an event means.
"""

import re
from codecs import BOM_UTF8
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import FormDataParser

from web.context import request
from web.request_body import FORM, MULTIPART
from wire.errors import Refused
from wire.strict_json import parse_event, replaced_text

COMPRESSIONS = {"gzip", "x-gzip", "deflate", "compress", "br", "zstd"}
COMPRESSED_STARTS = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # how gzip and zstd begin
MAX_FIELDS = 1_000  # of a form or a query
BEGINS_AS_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
BEGINS_AS_FORM = re.compile(rb"[^\s=:/<\"]*=")  # a sentence with an equals sign has white space before it
LOOKS_LIKE_XML = re.compile(rb"\s*<.*>\s*", re.DOTALL)
MAX_HEAD_BYTES = 131_072  # of all parts of a multipart form: Werkzeug reads a name character by character
BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")
TITLE_HEADERS = ("Title", "X-Title", "Subject")
EMPTY = "The body is empty, and so is the query: send JSON, a form, or text."

Payload = dict[str, Any]


def parsed(raw: bytes) -> Payload:
    """The event in a body, or in the request's query if the body is empty; `Refused` (400) says what is wrong."""
    if BEGINS_AS_JSON.match(raw):
        return _of_json(raw)
    raw = raw.removeprefix(BOM_UTF8)
    if not raw.strip():
        return _of_form(query())
    kind = request.mimetype
    _refuse_compressed(raw)
    if kind == MULTIPART:
        return _of_form(_multipart(raw))
    if kind == FORM and BEGINS_AS_FORM.match(raw):
        return _of_form(_fields(raw))
    if kind.endswith("xml") or (kind != "text/plain" and LOOKS_LIKE_XML.fullmatch(raw)):
        raise Refused(400, "The body is XML: send JSON, a form, or text.")
    if kind == "text/plain" or kind == FORM or (not kind and b"\0" not in raw):
        return _text(raw)
    return parse_event(raw)


def _of_json(raw: bytes) -> Payload:
    try:
        return parse_event(raw)
    except Refused as refused:
        if request.mimetype in ("", "text/plain"):
            raise Refused(400, f"{refused.message} What begins with {{ or [ is read as JSON.") from None
        raise


def query() -> dict[str, str]:
    """The fields of the request's query."""
    return _fields(request.query_string)


def _fields(encoded: bytes) -> dict[str, str]:
    """The fields of an encoded form; of fields with the same name the last counts."""
    try:
        pairs = parse_qsl(replaced_text(encoded), True, errors="replace", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise _too_many_fields() from None
    return {_storable(name): _storable(value) for name, value in pairs}


def _too_many_fields() -> Refused:
    return Refused(400, f"The form has more than {MAX_FIELDS:,} fields.")


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd")


def _multipart(raw: bytes) -> dict[str, str]:
    boundary = request.mimetype_params.get("boundary", "").encode()
    found = raw.split(b"--" + boundary, MAX_FIELDS)
    if sum(len(BLANK_LINE.split(part, 1)[0]) for part in found) > MAX_HEAD_BYTES:
        raise Refused(400, f"The names and headers in the multipart form have more than {MAX_HEAD_BYTES:,} bytes.")
    parser = FormDataParser(_Nowhere, silent=False, max_form_parts=MAX_FIELDS)
    try:
        form = parser.parse(BytesIO(raw), MULTIPART, len(raw), request.mimetype_params)[1]
    except RequestEntityTooLarge:
        raise _too_many_fields() from None
    except ValueError:
        raise Refused(400, "The multipart form cannot be read: its parts do not fit the boundary.") from None
    return {_storable(name): _storable(value) for name, value in form.items(multi=True) if name is not None}


class _Nowhere(BytesIO):
    """Where the content of a file goes, which no event needs."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def write(self, content: Any) -> int:
        """Drop it."""
        return len(content)


def _of_form(fields: dict[str, str]) -> Payload:
    """The fields, or the JSON object that the field `payload` holds."""
    if not fields:
        raise Refused(400, EMPTY)
    payload = fields.get("payload", "")
    if not payload.lstrip().startswith("{"):
        return dict(fields)
    try:
        return parse_event(payload.encode())
    except Refused as refused:
        raise Refused(400, f"{refused.message} It is in the form's field payload.") from None


def _refuse_compressed(raw: bytes) -> None:
    codings = {coding.strip().lower() for coding in request.headers.get("Content-Encoding", "").split(",")}
    if codings & COMPRESSIONS or raw.startswith(COMPRESSED_STARTS):
        raise Refused(400, "The body is compressed: send it uncompressed.")


def _text(raw: bytes) -> Payload:
    """The text as `message`, with a title if a header has one."""
    title = next((text for name in TITLE_HEADERS if (text := request.headers.get(name))), "")
    titled = {"title": replaced_text(title.encode("latin-1"))} if title else {}  # how WSGI decodes headers
    return {**titled, "message": replaced_text(raw)}
