"""Put PNG pictures together to a moving one (APNG), with the standard library alone.

A frame may cover a part of the picture: what did not change is neither drawn nor stored again. All frames need the
same kind of pixels, as those of one browser have.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"


class Frame(NamedTuple):
    """A PNG, where its upper left corner is, and how long it is shown before the next."""

    png: bytes
    left: int
    top: int
    shown_ms: int


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kind and the content of each chunk."""
    if not png.startswith(SIGNATURE):
        raise ValueError("it is no PNG")
    place = len(SIGNATURE)
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        yield kind, png[place + 8 : place + 8 + length]
        place += 12 + length


def smaller(png: bytes) -> bytes:
    """The same picture, compressed as well as zlib can, and without what is not needed to show it."""
    return SIGNATURE + _chunk(b"IHDR", _header(png)) + _chunk(b"IDAT", _pixels(png)) + _chunk(b"IEND", b"")


def animated(still: bytes, frames: Sequence[Frame]) -> bytes:
    """The frames, over and over. `still` is for programs that show the first picture of a file alone."""
    written = [_chunk(b"IHDR", _header(still)), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    written.append(_chunk(b"IDAT", _pixels(still)))
    for number, frame in zip(range(0, 2 * len(frames), 2), frames, strict=True):
        written += [
            _control(number, frame, still),
            _chunk(b"fdAT", struct.pack(">I", number + 1) + _pixels(frame.png)),
        ]
    return SIGNATURE + b"".join(written) + _chunk(b"IEND", b"")


def _control(number: int, frame: Frame, still: bytes) -> bytes:
    """Where a frame is drawn, and for how long. It stays, and the next is drawn over it."""
    header, whole = _header(frame.png), _header(still)
    (width, height), (most_wide, most_high) = (struct.unpack(">II", one[:8]) for one in (header, whole))
    if header[8:] != whole[8:]:
        raise ValueError("a frame has another kind of pixels")
    if frame.left + width > most_wide or frame.top + height > most_high:
        raise ValueError("a frame is larger than the picture")
    place = (number, width, height, frame.left, frame.top)
    return _chunk(b"fcTL", struct.pack(">5IHHBB", *place, frame.shown_ms, 1000, 0, 0))


def _header(png: bytes) -> bytes:
    return next(content for kind, content in chunks(png) if kind == b"IHDR")


def _pixels(png: bytes) -> bytes:
    packed = b"".join(content for kind, content in chunks(png) if kind == b"IDAT")
    return zlib.compress(zlib.decompress(packed), 9)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
