"""Small pictures as files, made by hand: with and without words about their maker, place and time."""

import struct
import zlib

SECRET = b"N 52.5163 E 13.3777 by Erika"  # what no picture says after it was cut

# JPEG: 8 x 8 grey pixels, whose Huffman tables know two sizes of steps (0 and 6) and the end of a block.

SOI, EOI = b"\xff\xd8", b"\xff\xd9"
SCAN = b"\x7a\x7f"  # a step of six bits, the end of the block, and ones up to a whole byte


def segment(code, contents):
    return struct.pack(">BBH", 0xFF, code, len(contents) + 2) + contents


def frame(width=8, height=8, code=0xC0):
    return segment(code, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")


FRAME = frame()
JFIF = segment(0xE0, b"JFIF\0\1\2\1\0H\0H\0\0")
ADOBE = segment(0xEE, b"Adobe\0d\0\0\0\0\0")
ICC = segment(0xE2, b"ICC_PROFILE\0\1\1 a profile")
TABLES = (
    segment(0xDB, b"\0" + b"\1" * 64)
    + segment(0xC4, b"\0" + bytes([0, 2, *[0] * 14]) + b"\0\6")
    + segment(0xC4, b"\x10" + bytes([1, *[0] * 15]) + b"\0")
)
SCAN_HEADER = segment(0xDA, b"\1\1\0\0\x3f\0")
JPEG_WORDS = (
    segment(0xE1, b"Exif\0\0MM\0\x2a\0\0\0\x08\0\0 " + SECRET),
    segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta>" + SECRET),
    segment(0xED, b"Photoshop 3.0\x008BIM\4\4" + SECRET),
    segment(0xE2, b"MPF\0" + SECRET),
    segment(0xE0, b"JFXX\0\x10" + SOI + SECRET + EOI),
    segment(0xFE, SECRET),
    *(segment(0xE0 + number, SECRET) for number in range(16)),
)


def jpeg(*before_frame, frame=FRAME, scan=SCAN, before_scan=b"", before_end=b"", after=b""):
    """A JPEG with these segments after its first one, and more at places that are named."""
    head = SOI + JFIF + b"".join(before_frame)
    return head + TABLES + frame + before_scan + SCAN_HEADER + scan + before_end + EOI + after


def jpeg_with_words():
    words = b"".join(JPEG_WORDS)
    return jpeg(words, before_scan=words, before_end=words, after=SECRET)


# PNG

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, contents=b""):
    return struct.pack(">I", len(contents)) + kind + contents + struct.pack(">I", zlib.crc32(kind + contents))


def png_header(width=2, height=2):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))


PNG_HEADER = png_header()
PIXELS = chunk(b"IDAT", zlib.compress(b"\0\x10\x20" * 2))
PNG_END = chunk(b"IEND")
PNG_WORDS = (
    chunk(b"tEXt", b"Author\0" + SECRET),
    chunk(b"zTXt", b"Author\0\0" + SECRET),
    chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + SECRET),
    chunk(b"eXIf", b"MM\0\x2a" + SECRET),
    chunk(b"tIME", b"\x07\xea\1\2\3\4\5"),
    chunk(b"prVt", SECRET),
    chunk(b"caNv", SECRET),
)


def png(*chunks, header=PNG_HEADER, pixels=PIXELS, end=PNG_END, after=b""):
    """A PNG with these chunks between its header and its pixels."""
    return SIGNATURE + header + b"".join(chunks) + pixels + end + after


def png_with_words():
    words = b"".join(PNG_WORDS)
    return png(words, pixels=PIXELS + words, after=SECRET)


# GIF: 2 x 2 pixels of four colours; codes of three bits: clear, 0, 1, 2, (four bits:) 3, end.


def blocks(*contents):
    return b"".join(bytes([len(one)]) + one for one in contents) + b"\0"


def screen(width=2, height=2):
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x81, 0, 0) + bytes(range(12))


def image(width=2, height=2, colours=b"", data=b"\x44\x34\x05"):
    flags = 0x81 if colours else 0
    return b"," + struct.pack("<HHHHB", 0, 0, width, height, flags) + colours + b"\2" + blocks(data)


def extension(label, *contents):
    return b"!" + bytes([label]) + blocks(*contents)


SCREEN = screen()
CONTROL = extension(0xF9, b"\0\x0a\0\0")
LOOP = extension(0xFF, b"NETSCAPE2.0", b"\1\0\0")
GIF_WORDS = (
    extension(0xFE, SECRET, SECRET),
    extension(0x01, b"\0" * 12, SECRET),
    extension(0xFF, b"XMP DataXMP", SECRET),
    extension(0xFF, b"ICCRGBG1012", SECRET),
    extension(0x42, SECRET),
)


def gif(*parts, screen=SCREEN, after=b""):
    """A GIF with these parts, or with one image."""
    return screen + b"".join(parts or [image()]) + b";" + after


def gif_with_words():
    words = b"".join(GIF_WORDS)
    return gif(words, LOOP, words, CONTROL, words, image(), words, CONTROL, image(), words, after=SECRET)


# WebP: 2 x 2 pixels; without loss in one colour, whose codes have one symbol each and need no bits.


def riff(kind, contents):
    return struct.pack("<4sI", kind, len(contents)) + contents + b"\0" * (len(contents) & 1)


def _lossless(width, height):
    code, only = (1, 1), (0, 1)  # a simple code, of one symbol
    symbols = (code, only, (1, 1), (0x55, 8)) * 4 + (code, only, only, only)
    bits = length = 0
    for value, size in ((0x2F, 8), (width - 1, 14), (height - 1, 14), (0, 1), (0, 3), (0, 3), *symbols):
        bits, length = bits | value << length, length + size
    return riff(b"VP8L", bits.to_bytes((length + 7) // 8, "little"))


LOSSLESS = _lossless(2, 2)
LOSSY = riff(b"VP8 ", bytes.fromhex("5001009d012a020002000fc0fe250000434a3800cca5c378b800"))
ALPHA = riff(b"ALPH", b"\0\xff\x80\x40\0")
WEBP_WORDS = riff(b"EXIF", b"MM\0\x2a" + SECRET), riff(b"XMP ", SECRET), riff(b"abcd", SECRET + b"odd")
TELLS = 0x0C  # the flags of files with EXIF and XMP


def extended(flags=0):
    return riff(b"VP8X", bytes([flags, 0, 0, 0]) + struct.pack("<HBHB", 1, 0, 1, 0))


def animation_frame(*chunks):
    return riff(
        b"ANMF", b"\0" * 6 + struct.pack("<HBHB", 1, 0, 1, 0) + b"\x64\0\0\0" + b"".join(chunks or [LOSSLESS])
    )


def webp(*chunks, after=b""):
    """A WebP with these chunks, or with one image."""
    body = b"WEBP" + b"".join(chunks or [LOSSLESS])
    return b"RIFF" + struct.pack("<I", len(body)) + body + after


ANIMATION = riff(b"ANIM", b"\xff\xff\xff\xff\0\0")


def webp_with_words():
    return webp(extended(0x10 | TELLS), *WEBP_WORDS, ALPHA, LOSSY, *WEBP_WORDS, after=SECRET)


def animated_webp(flags=0, words=()):
    frames = animation_frame(*words, LOSSLESS, *words), *words, animation_frame(ALPHA, *words, LOSSY)
    return webp(extended(0x12 | flags), *words, ANIMATION, *words, *frames, *words)


# All kinds: the type, the file without words, and the same file with them.

KINDS = (
    ("image/jpeg", jpeg(), jpeg_with_words()),
    ("image/png", png(), png_with_words()),
    ("image/gif", gif(LOOP, CONTROL, image(), CONTROL, image()), gif_with_words()),
    ("image/webp", webp(extended(0x10), ALPHA, LOSSY), webp_with_words()),
    ("image/webp", animated_webp(), animated_webp(TELLS, WEBP_WORDS)),
)


# A form that sends a notification with a picture

ELSEWHERE = "https://x.example/cam.jpg"
BOUNDARY = "between-the-parts"


def jpeg_of(size):
    """A picture of so many bytes."""
    return jpeg(scan=b"\x11" * (size - len(jpeg(scan=b""))))


def form_with(picture):
    """The body of a multipart form with this picture."""
    parts = (("title", b"Door"), ("body", b"motion"), ('image"; filename="cam.jpg', picture))
    written = b"".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + content + b"\r\n"
        for name, content in parts
    )
    return written + f"--{BOUNDARY}--\r\n".encode()
