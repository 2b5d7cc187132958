"""The bodies that an alert's address takes, each read as an object: JSON, forms, text, a query (docs/alerts.md).

Must not know what an event means.
"""

import re
from codecs import BOM_UTF8
from urllib.parse import parse_qsl

from werkzeug.datastructures import FileStorage

from web import multipart
from web.context import Payload, request
from web.multipart import MULTIPART
from web.request_body import FORM
from wire.errors import Refused
from wire.ntfy import header_text
from wire.strict_json import parse_event, replaced_text, without_nul

COMPRESSIONS = {"gzip", "x-gzip", "deflate", "compress", "br", "zstd"}
COMPRESSED_STARTS = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # how gzip and zstd begin
BEGINS_AS_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
BEGINS_AS_FORM = re.compile(rb"[^\s=:/<\"]*=")  # a sentence with an equals sign has white space before it
LOOKS_LIKE_XML = re.compile(rb"\s*<.*>\s*", re.DOTALL)
TITLE_HEADERS = ("Title", "X-Title", "Subject")
WHOLE = ("payload", "payload_json")  # a form's fields that may hold the whole event: Slack's and Plex's, Discord's
ALONE = "data"  # Uptime Kuma's, which has no other


def parsed(raw: bytes) -> tuple[Payload, list[FileStorage]]:
    """The event in a body, or in the query if that has no text, and the files with it; `Refused` (400) if wrong."""
    if BEGINS_AS_JSON.match(raw):
        return _of_json(raw), []
    raw = raw.removeprefix(BOM_UTF8)
    if not raw.strip():
        return _of_form(query()), []
    _refuse_compressed(raw)
    if request.mimetype != MULTIPART:
        return _object(raw), []
    sent, files = multipart.parsed(raw)
    fields = {without_nul(name): without_nul(value) for name, value in sent.items(multi=True) if name is not None}
    return _of_form(fields or query()), list(files.values())


def _object(raw: bytes) -> Payload:
    kind = request.mimetype
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
        pairs = parse_qsl(replaced_text(encoded), True, errors="replace", max_num_fields=multipart.MAX_FIELDS)
    except ValueError:
        raise multipart.too_many_fields() from None
    return {without_nul(name): without_nul(value) for name, value in pairs}


def _of_form(fields: dict[str, str]) -> Payload:
    """The fields, or the JSON object that one of `WHOLE` holds, or `ALONE`."""
    if not fields:
        raise Refused(400, "The body is empty, and so is the query: send JSON, a form, or text.")
    names = (*WHOLE, ALONE) if len(fields) == 1 else WHOLE
    name = next((name for name in names if fields.get(name, "").lstrip().startswith("{")), None)
    if name is None:
        return dict(fields)
    try:
        return parse_event(fields[name].encode())
    except Refused as refused:
        raise Refused(400, f"{refused.message} It is in the form's field {name}.") from None


def _refuse_compressed(raw: bytes) -> None:
    codings = {coding.strip().lower() for coding in request.headers.get("Content-Encoding", "").split(",")}
    if codings & COMPRESSIONS or raw.startswith(COMPRESSED_STARTS):
        raise Refused(400, "The body is compressed: send it uncompressed.")


def _text(raw: bytes) -> Payload:
    """The text as `message`, with a title if a header has one."""
    titles = (header_text(name, request.headers.get(name, "")) for name in TITLE_HEADERS)
    title = next(filter(None, titles), "")
    titled = {"title": without_nul(title)} if title else {}
    return {**titled, "message": replaced_text(raw)}
