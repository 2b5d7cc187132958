"""Reading request bodies: whole or refused, chunked or not, and only one large body at a time.

Must not know what the body means.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from io import BytesIO
from typing import Any, TypeVar

from core.turns import Turns
from web.context import current, request
from web.multipart import MULTIPART, is_multipart
from wire.errors import Refused
from wire.strict_json import parse_json

FORM = "application/x-www-form-urlencoded"
LARGE_BYTES = 65_536  # a larger body, or a multipart form, waits until no other is parsed: it takes 30 times its size
MAX_LARGE_WAITING, MAX_LARGE_OF_ONE = 40, 31  # the second: of one account, beside the one that is parsed
LARGE_WAITS_S = 10.0
CUT_OFF = "The request body ended before its announced length."
MAX_VISITOR_FORM_BYTES = 16_384  # without a session
MAX_OWNER_FORM_BYTES = 524_288
MAX_FORM_FIELDS = 200
MAX_UPLOAD_BYTES = 15_000_000
UPLOAD_PART_BYTES = 65_536
UPLOADS_AT_ONCE, MAX_UPLOADS_WAITING = 16, 32  # of large files; each has a thread, and at most 2 MB of memory
UPLOADS_OF_ONE_AT_ONCE = 8  # account: an upload may take a minute
UPLOAD_S, RETRY_UPLOAD_S = 60.0, 10
MAX_RECEIVING, MAX_RECEIVING_OF_ONE = 48, 32  # threads that wait for the rest of a body: in all, and for one account


Made = TypeVar("Made")
large_bodies = Turns(
    1,  # two would share a processor and take twice the memory
    {"all": MAX_LARGE_WAITING},
    LARGE_WAITS_S,
    lambda: Refused(429, "Rate limit exceeded", owner_message="too many large requests at once"),
    MAX_LARGE_OF_ONE,
)


def large_body() -> AbstractContextManager[None]:
    """The turn of a body that takes long to parse; it queues in the name of its account."""
    return large_bodies.turn("all", str(_account_seq()))


def _account_seq() -> int | None:
    """Whose request it is, as far as a guard has found out; None for a stranger's."""
    known = current()
    if sender := getattr(known, "caller", None) or known.webhook or known.beat:
        return int(sender.account_seq)
    owner = getattr(known, "account", known.ping_owner)
    return owner.seq if owner else None


def upload_turns(at_once: int, waiting: int = MAX_UPLOADS_WAITING) -> Turns:
    """Turns for bodies that take long to arrive."""
    sentence = "Too many large files are being uploaded at once."
    return Turns(at_once, {"all": waiting}, LARGE_WAITS_S, lambda: Refused(429, sentence, RETRY_UPLOAD_S))


large_uploads = upload_turns(UPLOADS_AT_ONCE)
_uploads_of = cache(lambda account_seq: upload_turns(UPLOADS_OF_ONE_AT_ONCE))
receiving = upload_turns(MAX_RECEIVING, 0)
_receiving_of = cache(lambda account_seq: upload_turns(MAX_RECEIVING_OF_ONE, 0))


def _place() -> AbstractContextManager[None]:
    """A place among the requests whose threads wait for their bodies, unless this one's is in memory already."""
    is_here = type(current().environ["wsgi.input"]) is BytesIO
    return nullcontext() if is_here else _turn(_receiving_of(_account_seq()), receiving)


@contextmanager
def _turn(of_account: Turns, of_all: Turns, seconds: float = 0) -> Iterator[None]:
    """A turn to wait for a body, perhaps for longer. Where our server serves, no other thread copies one then."""
    connection = current().environ.get("gunicorn.socket")
    with of_account.turn("all"), of_all.turn("all"), connection.alone() if connection else nullcontext():
        if connection and seconds:
            connection.go_on(MAX_UPLOAD_BYTES, seconds)
        yield


def read_fields(*known: str) -> dict[str, Any]:
    """The `known` fields that the request's JSON object has, whatever its content type."""
    return read_object(lambda sent: {name: sent[name] for name in known if name in sent})


def read_object(
    make: Callable[[Any], Made],
    parse: Callable[[bytes], Any] = parse_json,
    is_confirmed: bool = False,
) -> Made:
    """What `make` builds from what `parse` finds in the body, which is then dropped.

    `is_confirmed` if the credential is looked up again later, where it counts.
    """
    raw = _read_whole(_announced())  # this, and the wait below, may take seconds: a key may be revoked meanwhile
    if len(raw) <= LARGE_BYTES and not is_multipart(current().environ.get("CONTENT_TYPE", "")):
        if not is_confirmed:
            current().confirm()
        return make(parse(raw))
    with large_body():
        current().confirm()
        try:
            return make(parse(raw))
        except Refused as refused:
            refused.__traceback__ = refused.__context__ = None  # they would keep what was parsed
            raise refused from None


def read_upload(keeps: Callable[[bytes], int], largest: int, at_first: int) -> tuple[bytes, int]:
    """The beginning of the request's body, and the size of all of it; the rest is read and dropped.

    `keeps` says of the first part how many bytes are wanted. `Refused` (413) beyond `largest`. A body beyond
    `at_first` gets more time, and few come at once. A client that is answered before the end may report a broken
    connection instead.
    """
    announced = _announced()
    _check(announced, largest)
    most = largest + 1 if "HTTP_TRANSFER_ENCODING" in current().environ else announced
    with _place():
        kept = bytearray(_received(min(most, at_first, UPLOAD_PART_BYTES)))
        wanted, size = keeps(bytes(kept)), len(kept)
        size += _read_on(min(most, at_first) - size, kept, wanted)
    if at_first == size < most:
        with _turn(_uploads_of(current().caller.account_seq), large_uploads, UPLOAD_S):
            size += _read_on(most - size, kept, wanted)
    _check(size, largest)
    if size < announced:
        raise Refused(400, CUT_OFF)
    current().confirm()
    return bytes(kept), size


def read_beginning(most: int) -> bytes:
    """The first `most` bytes of the request's body; the rest is not read."""
    return _read_whole(min(_announced(), most))


def read_form() -> Mapping[str, str]:
    """The texts of the request's form, of which there must not be too many."""
    request.max_form_parts = MAX_FORM_FIELDS
    check_form(MAX_OWNER_FORM_BYTES)
    current().confirm()
    return request.form


def check_size(largest: int | None = None) -> None:
    """Refuse (413) a body beyond `MAX_BODY_BYTES` or `largest`, chunked or not, before anything reads it.

    A chunked body is read here and has a length from then on: Flask would cut it at the limit.
    """
    known = current()
    environ = known.environ
    if "HTTP_TRANSFER_ENCODING" not in environ and "CONTENT_LENGTH" not in environ:
        return
    allowed = known.settings.max_body_bytes
    largest = allowed if largest is None else min(largest, allowed)
    if environ.pop("HTTP_TRANSFER_ENCODING", None):
        _replace(_read(largest + 1))
    _check(_announced(), largest)


def _check(size: int, largest: int) -> None:
    if size > largest:
        raise Refused(413, f"The request body is larger than {largest} bytes.")


def check_form(largest: int) -> None:
    """`check_size` for a page; reads a form to its end, and refuses (400) too many fields: Werkzeug parses all."""
    check_size(largest)
    if _announced() and request.mimetype in (FORM, MULTIPART):
        form = _read_whole(_announced())
        if request.mimetype == FORM and form.count(b"&") >= MAX_FORM_FIELDS:
            raise Refused(400, f"The form has more than {MAX_FORM_FIELDS} fields.")
        _replace(form)


def _replace(body: bytes) -> None:
    """Give the next reader a body that was read already."""
    current().environ.update({"wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body))})


def _read_whole(size: int) -> bytes:
    body = _read(size)
    if len(body) < size:
        raise Refused(400, CUT_OFF)
    return body


def _announced() -> int:
    length = current().environ.get("CONTENT_LENGTH", "")
    return int(length) if length.isdecimal() else 0


def _read_on(size: int, kept: bytearray, wanted: int) -> int:
    """Read the next `size` bytes of the body, or what there is, keeping `wanted` in all; returns how many came."""
    length = 0
    while length < size and (part := _received(min(size - length, UPLOAD_PART_BYTES))):
        kept += part[: max(0, wanted - len(kept))]
        length += len(part)
    return length


def _read(size: int) -> bytes:
    with _place():
        return _received(size)


def _received(size: int) -> bytes:
    stream, body = current().environ["wsgi.input"], b""
    try:
        while len(body) < size and (part := stream.read(size - len(body))):
            body += part
    except Exception:  # each server has exceptions of its own for broken chunks and lost connections
        raise Refused(400, "The request body could not be read to its end.") from None
    return body
