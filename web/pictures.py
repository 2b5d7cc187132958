"""Pictures of notifications: in a form that sends one, in the answers, and at their own address.

Must not know SQL or push.
"""

from collections.abc import Iterable
from typing import Any

from flask import Response
from werkzeug.datastructures import FileStorage

from core import pictures
from process import clock
from web import request_body
from web.context import Payload, current
from web.multipart import parsed
from wire.errors import Refused, existing
from wire.notification import Content, checked_content
from wire.ntfy import MAX_FILE_NAME_CHARACTERS
from wire.picture_formats import MAX_PICTURE_BYTES, Picture, begins_picture, cut_picture
from wire.strict_json import parse_json, without_nul

IN_NUMBERS = ("priority", "expiresAt", "deliverAt")  # fields of a form that may be digits
IN_JSON = ("actions", "acknowledge")  # fields of a form that are JSON
MAX_BEGINNING = 16  # bytes that tell the kind of a file
ENDINGS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
HEADERS = {
    "Cache-Control": f"private, max-age={pictures.KEPT_MS // 1_000}, immutable",  # what is there never changes
    "Content-Security-Policy": "default-src 'none'; sandbox",  # should a browser take it for a page after all
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Referrer-Policy": "no-referrer",
}


def show_picture(token: str) -> Response:
    """GET /i/{token}: the picture. The token is the only credential."""
    found = existing(pictures.find(token, clock.now_ms()))
    return Response(found.data, content_type=found.content_type, headers=HEADERS)


def described(content: Content, picture: Picture, name: str) -> Content:
    """The content of a notification that came with this picture, as a file of that name."""
    base = without_nul(name).replace("\\", "/").rpartition("/")[2]
    name = " ".join(base.split())[:MAX_FILE_NAME_CHARACTERS] or f"image.{ENDINGS[picture.content_type]}"
    return content._replace(image=None, picture=(picture.content_type, len(picture.data), name))


def of_upload(body: bytes) -> Picture | None:
    """The picture that a body is, if it is one."""
    if not begins_picture(body):
        return None
    with request_body.large_body():
        return cut_picture(body)


def read_form() -> tuple[Payload, Content, bytes | None]:
    """What a multipart form says is to be sent: its fields, the content, and the picture.

    `Refused` (413) for a picture of more than `MAX_PICTURE_BYTES`, (400) for a file that is none, or for two.
    """
    most = MAX_PICTURE_BYTES + current().settings.max_body_bytes
    raw, _ = request_body.read_upload(lambda _: most, most, request_body.LARGE_BYTES)
    with request_body.large_body():
        fields, files = _parts(raw)
        del raw
        if len(files) + ("image" in fields) > 1:
            raise Refused(400, "image is there twice: a notification has one picture.", field="image")
        content = checked_content(fields)
        if not files:
            return fields, content, None
        picture = _picture(files[0].read())
        return fields, described(content, picture, files[0].filename or ""), picture.data


def with_first(content: Content, files: Iterable[FileStorage]) -> tuple[Content, bytes | None]:
    """An event's content with the first of its files that is a picture, if one can be kept, and that one's bytes."""
    for file in _first_picture(files):
        picture = cut_picture(data) if len(data := file.read()) <= MAX_PICTURE_BYTES else None
        if picture:
            return described(content, picture, file.filename or ""), picture.data
    return content, None


def _parts(raw: bytes) -> tuple[Payload, list[FileStorage]]:
    """The fields and the pictures. What begins as JSON is JSON, whatever it is called."""
    if raw.lstrip().startswith(b"{"):
        return parse_json(raw), []
    texts, files = parsed(raw)
    if any("\0" in text for text in texts.values()):
        raise Refused(400, "The form is not valid: a field has a NUL character.")
    fields = {name: _value(name, text) for name, text in texts.items() if name and text}
    is_named = "image" in fields or "image" in files
    return fields, files.getlist("image") if is_named else _first_picture(files.values())


def _first_picture(files: Iterable[FileStorage]) -> list[FileStorage]:
    """Of files with other names than `image` the first one that is a picture, as Apprise sends it."""
    for file in files:
        if begins_picture(file.stream.read(MAX_BEGINNING)):
            file.stream.seek(0)
            return [file]
    return []


def _value(name: str, text: str) -> Any:
    """The value of a form's field as JSON would have it."""
    if name in IN_NUMBERS and text.isascii() and text.isdigit():
        return int(text) if len(text) <= 20 else text
    if name not in IN_JSON:
        return text
    try:
        value = parse_json(f'{{"{name}": {text}}}'.encode())
    except Refused:
        value = {}
    if len(value) != 1:
        raise Refused(400, f"{name} must be JSON in a form.", field=name)
    return value[name]


def _picture(data: bytes) -> Picture:
    if len(data) > MAX_PICTURE_BYTES:
        raise Refused(413, f"image is larger than {MAX_PICTURE_BYTES:,} bytes.")
    picture = cut_picture(data)
    if picture is None:
        raise Refused(400, "image must be a whole JPEG, PNG, GIF or WebP file.", field="image")
    return picture
