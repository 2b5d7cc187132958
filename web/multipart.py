"""Multipart forms: their fields and files, with bounds on the work. Must not know what a form means."""

import re
from collections.abc import Iterator
from io import BytesIO

from werkzeug.datastructures import FileStorage, MultiDict
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import FormDataParser

from web.context import request
from wire.errors import Refused

MULTIPART = "multipart/form-data"
MAX_FIELDS = 1_000
MAX_HEAD_BYTES = 131_072  # of all parts: Werkzeug reads a name character by character
is_multipart = re.compile(MULTIPART, re.I).match  # whether a Content-Type says that the body is such a form
BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")


def parsed(raw: bytes) -> tuple[MultiDict[str, str], MultiDict[str, FileStorage]]:
    """The fields and files of the form in the request's body, each perhaps several times; the files are in memory.

    `Refused` (400) if it cannot be read, or has too many parts or too long heads.
    """
    boundary = request.mimetype_params.get("boundary", "").encode()
    if sum(_head_sizes(raw, b"--" + boundary)) > MAX_HEAD_BYTES:
        raise Refused(400, f"The names and headers in the multipart form have more than {MAX_HEAD_BYTES:,} bytes.")
    parser = FormDataParser(lambda *_, **__: BytesIO(), silent=False, max_form_parts=MAX_FIELDS)
    try:
        _, fields, files = parser.parse(BytesIO(raw), MULTIPART, len(raw), request.mimetype_params)
    except RequestEntityTooLarge:
        raise too_many_fields() from None
    except ValueError:
        raise Refused(400, "The multipart form cannot be read: its parts do not fit the boundary.") from None
    return fields, files


def _head_sizes(raw: bytes, mark: bytes) -> Iterator[int]:
    """How many bytes stand before the first blank line of each part, found without a copy of its content."""
    start = 0
    for left in range(MAX_FIELDS, -1, -1):
        next_mark = raw.find(mark, start) if left else -1
        end = len(raw) if next_mark < 0 else next_mark
        blank = BLANK_LINE.search(raw, start, end)
        yield (blank.start() if blank else end) - start
        if next_mark < 0:
            return
        start = next_mark + len(mark)


def too_many_fields() -> Refused:
    """The refusal of a form with more than `MAX_FIELDS` fields."""
    return Refused(400, f"The form has more than {MAX_FIELDS:,} fields.")
