"""Pictures as files: their kind, and what stays when the words about their maker, place and time are cut.

JPEG, PNG, GIF and WebP are known by their first bytes alone and followed from part to part to their end. Nothing is
decoded: what shows the pixels stays byte for byte, all other parts go, and so does what follows the end. Pure.
"""

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

MAX_PICTURE_BYTES = 2_000_000
MAX_PARTS = 20_000  # in the largest picture, these have 100 bytes each: more of them cost time and show little

Part = tuple[int, int] | bytes  # a span of the file, or what is written in the place of one


class Picture(NamedTuple):
    """A picture's bytes, and their kind."""

    data: bytes
    content_type: str


class _Broken(Exception):
    """The bytes cannot be followed to a picture's end."""


def cut_picture(data: bytes) -> Picture | None:
    """The picture without what it says about maker and place; None if it cannot be followed to its end."""
    view = memoryview(data)
    for begins, content_type, kept_parts in KINDS:
        if begins.match(data):
            try:
                pieces = (part if isinstance(part, bytes) else view[slice(*part)] for part in kept_parts(view))
                return Picture(b"".join(pieces), content_type)
            except (_Broken, IndexError, struct.error):  # the latter two: a part ends beyond the file
                return None
    return None


def begins_picture(data: bytes) -> bool:
    """Whether these are the first bytes of a picture."""
    return any(begins.match(data) for begins, _, _ in KINDS)


# JPEG: https://www.w3.org/Graphics/JPEG/itu-t81.pdf, annex B

MARKER = re.compile(rb"\xff++([^\x00\xff])")
SCAN_END = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # neither a stuffed byte nor a restart nor a fill byte
SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
TABLES = frozenset({0xC4, 0xCC, 0xDB, 0xDD})  # Huffman, arithmetic, quantization, restart interval
EOI, SOS, DNL, COM = 0xD9, 0xDA, 0xDC, 0xFE
APP0, APP2, APP14, APP15 = 0xE0, 0xE2, 0xEE, 0xEF
U16 = struct.Struct(">H")


def _jpeg_parts(view: memoryview) -> Iterator[Part]:
    """A frame, its tables and scans, and of the rest only what changes how pixels look."""
    width, height, has_scan = 0, 0, False
    yield 0, 2
    for code, start, contents, end in _jpeg_segments(view):
        if code == COM:
            continue
        if APP0 <= code <= APP15:
            yield from _jpeg_colours(view, code, start, contents, end)
            continue
        if code in SOF and not width:
            height, width, components = struct.unpack_from(">xHHB", view, contents)
            _require(width and components and end - contents == 6 + 3 * components)
        elif code == SOS and width:
            has_scan = True
        elif code == DNL and has_scan:  # the height, if the frame did not know it yet
            (height,) = U16.unpack_from(view, contents)
        else:
            _require(code in TABLES or (code == EOI and has_scan and height))
        yield start, end


def _jpeg_segments(view: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Each segment after the first marker, up to the one that ends the picture.

    The code of its marker, and where marker, contents and end are; the contents of a scan include its pixels.
    """
    end = 2
    for _ in range(MAX_PARTS):
        start, marker = end, MARKER.match(view, end)
        if marker is None:
            break
        code, length_at = view[marker.end() - 1], marker.end()
        if code == EOI:
            yield code, start, length_at, length_at
            return
        (length,) = U16.unpack_from(view, length_at)
        contents, end = length_at + 2, length_at + length
        _require(contents <= end <= len(view))
        if code == SOS:
            _require(length == 6 + 2 * view[contents])
            scan_end = SCAN_END.search(view, end)
            end = scan_end.start() if scan_end else len(view)
        yield code, start, contents, end
    raise _Broken


def _jpeg_colours(view: memoryview, code: int, start: int, contents: int, end: int) -> Iterator[Part]:
    """What such a segment says about colours and density: JFIF without its small picture, Adobe's, an ICC profile."""
    words = bytes(view[contents : min(end, contents + 14)])
    if code == APP2 and words.startswith(b"ICC_PROFILE\0"):
        yield start, end
    elif code == APP0 and words.startswith(b"JFIF\0") and len(words) == 14:
        yield b"\xff\xe0\0\x10" + words[:12] + b"\0\0"
    elif code == APP14 and words.startswith(b"Adobe") and len(words) >= 12:
        yield b"\xff\xee\0\x0e" + words[:12]


# PNG: https://www.w3.org/TR/png-3/#11Chunks

PNG_HEADER = struct.Struct(">8xI4sII")
PNG_CHUNK = struct.Struct(">I4s")
PNG_SHOWN = frozenset(
    b"IHDR PLTE IDAT IEND tRNS gAMA cHRM sRGB iCCP sBIT pHYs bKGD hIST sPLT cICP mDCV cLLI acTL fcTL fdAT".split()
)


def _png_parts(view: memoryview) -> Iterator[Part]:
    """The chunks that show the picture, with their checksums as they are; a viewer checks those."""
    length, kind, width, height = PNG_HEADER.unpack_from(view)
    _require((length, kind) == (13, b"IHDR") and width and height)
    yield 0, 33
    end, has_pixels = 33, False
    for _ in range(MAX_PARTS):
        start, (length, kind) = end, PNG_CHUNK.unpack_from(view, end)
        end = start + 12 + length
        _require(end <= len(view) and kind != b"IHDR")
        if kind in PNG_SHOWN:
            yield start, end
        else:
            _require(kind.isalpha() and kind[:1].islower())  # no picture is shown without a chunk in upper case
        has_pixels = has_pixels or kind == b"IDAT"
        if kind == b"IEND":
            _require(has_pixels and not length)
            return
    raise _Broken


# GIF: https://www.w3.org/Graphics/GIF/spec-gif89a.txt

GIF_SCREEN = struct.Struct("<6xHHB")
GIF_IMAGE = struct.Struct("<5xHHB")
IMAGE, EXTENSION, TRAILER = 0x2C, 0x21, 0x3B
GRAPHIC_CONTROL, APPLICATION = 0xF9, 0xFF
LOOPS = frozenset({b"\x0bNETSCAPE2.0", b"\x0bANIMEXTS1.0"})


def _gif_parts(view: memoryview) -> Iterator[Part]:
    """The screen, the images with their control, and how often they repeat."""
    width, height, flags = GIF_SCREEN.unpack_from(view)
    _require(width and height)
    end, has_image, steps = 13 + _gif_colours(flags), False, iter(range(MAX_PARTS))
    yield 0, end
    for _ in steps:
        start, block = end, view[end]
        if block == IMAGE:
            width, height, flags = GIF_IMAGE.unpack_from(view, start)
            _require(width and height)
            end, has_image = _gif_data_end(view, start + 11 + _gif_colours(flags), steps), True
            yield start, end
        elif block == EXTENSION:
            end = _gif_data_end(view, start + 2, steps)
            yield from _gif_extension(view, start, end)
        else:
            _require(block == TRAILER and has_image)
            yield start, start + 1
            return
    raise _Broken


def _gif_colours(flags: int) -> int:
    """How many bytes the table of colours has that these flags announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _gif_data_end(view: memoryview, at: int, steps: Iterator[int]) -> int:
    """Where the blocks that begin there end, the empty one included."""
    for _ in steps:
        size = view[at]
        at += size + 1
        if not size:
            return at
    raise _Broken


def _gif_extension(view: memoryview, start: int, end: int) -> Iterator[Part]:
    """An image's control, or the number of repeats without other blocks of its program."""
    label = view[start + 1]
    if label == GRAPHIC_CONTROL:
        _require(end - start == 8 and view[start + 2] == 4)
        yield start, end
    elif label == APPLICATION and bytes(view[start + 2 : start + 14]) in LOOPS:
        repeats = list(_gif_repeats(view, start + 14))
        if repeats:  # without them, decoders take what comes next for their number
            yield from ((start, start + 14), *repeats, (end - 1, end))


def _gif_repeats(view: memoryview, at: int) -> Iterator[Part]:
    """Of the blocks that begin there those that say how often the images repeat."""
    while size := view[at]:
        if size == 3 and view[at + 1] == 1:
            yield at, at + 4
        at += size + 1


# WebP: https://www.rfc-editor.org/rfc/rfc9649

WEBP_CHUNK = struct.Struct("<4sI")
WEBP_FRAME_SHOWN = frozenset({b"ALPH", b"VP8 ", b"VP8L"})
WEBP_SHOWN = WEBP_FRAME_SHOWN | {b"VP8X", b"ICCP", b"ANIM", b"ANMF"}
WEBP_TELLS = 0x0C  # the flags that announce EXIF and XMP


def _webp_parts(view: memoryview) -> Iterator[Part]:
    """The chunks that show the picture, in a file of their size."""
    _, size = WEBP_CHUNK.unpack_from(view)
    _require(8 + size <= len(view))
    chunks = list(_webp_chunks(view, 12, 8 + size, WEBP_SHOWN, iter(range(MAX_PARTS))))
    yield b"RIFF" + (4 + _size(chunks)).to_bytes(4, "little") + b"WEBP"
    yield from chunks


def _webp_chunks(
    view: memoryview, start: int, end: int, shown: frozenset[bytes], steps: Iterator[int]
) -> Iterator[Part]:
    """Of the chunks in that span those to be shown, up to an image: only words may follow it."""
    has_image = is_over = False
    for _ in steps:
        if start == end:
            _require(has_image)
            return
        kind, size = WEBP_CHUNK.unpack_from(view, start)
        contents, after = start + 8, start + 8 + size
        _require(after <= end)
        if kind in shown and not is_over:
            is_over = kind in (b"VP8 ", b"VP8L")
            has_image = has_image or is_over or kind == b"ANMF"
            yield from _webp_chunk(view, kind, contents, after, steps)
            if size & 1 and kind != b"ANMF":  # whose size becomes even
                yield b"\0"
        start = min(after + (size & 1), end)
    raise _Broken


def _webp_chunk(view: memoryview, kind: bytes, contents: int, end: int, steps: Iterator[int]) -> Iterator[Part]:
    """A chunk to be shown: a frame without words in it, the header without flags for them, others as they are."""
    start, size = contents - 8, end - contents
    if kind == b"ANMF":
        chunks = list(_webp_chunks(view, contents + 16, end, WEBP_FRAME_SHOWN, steps))
        yield WEBP_CHUNK.pack(kind, 16 + _size(chunks))
        yield contents, contents + 16
        yield from chunks
        return
    if kind == b"VP8X":
        _require(start == 12 and size == 10)
        yield start, contents
        yield bytes([view[contents] & ~WEBP_TELLS])
        yield contents + 1, end
        return
    if kind == b"VP8 ":
        flags, code, width, height = struct.unpack_from("<B2x3sHH", view, contents)
        _require(size >= 10 and code == b"\x9d\x01\x2a" and not flags & 1 and width & 0x3FFF and height & 0x3FFF)
    elif kind == b"VP8L":
        _require(size >= 5 and view[contents] == 0x2F)
    yield start, end


def _size(parts: list[Part]) -> int:
    return sum(len(part) if isinstance(part, bytes) else part[1] - part[0] for part in parts)


def _require(is_so: object) -> None:
    """Give the file up if this is not so."""
    if not is_so:
        raise _Broken


KINDS = (
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg", _jpeg_parts),
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png", _png_parts),
    (re.compile(rb"GIF8[79]a"), "image/gif", _gif_parts),
    (re.compile(rb"RIFF[\x00-\xff]{4}WEBP"), "image/webp", _webp_parts),
)
