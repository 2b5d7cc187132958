"""Which files are pictures, and what stays of them: the pixels, and no word about their maker, place and time."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import picture_files as files
from tests.support.picture_files import (
    ALPHA,
    ANIMATION,
    CONTROL,
    ICC,
    LOOP,
    LOSSLESS,
    LOSSY,
    SCAN,
    SCAN_HEADER,
    SECRET,
    TABLES,
    blocks,
    chunk,
    gif,
    image,
    jpeg,
    png,
    riff,
    segment,
    webp,
)
from tests.support.rows import each
from wire.picture_formats import MAX_PARTS, Picture, cut_picture

EXAMPLES = [file for _, plain, wordy in files.KINDS for file in (plain, wordy)]
RESTARTS = segment(0xDD, b"\0\1")


def cut(file):
    picture = cut_picture(file)
    return picture and picture.data


@each("content_type, plain, wordy", files.KINDS)
def test_a_picture_loses_its_words_and_nothing_else(content_type, plain, wordy):
    assert SECRET in wordy
    assert cut_picture(wordy) == cut_picture(plain) == Picture(plain, content_type)


@each("plain", [plain for _, plain, _ in files.KINDS])
def test_a_file_that_ends_too_early_is_no_picture(plain):
    assert [size for size in range(len(plain)) if cut_picture(plain[:size])] == []


SHOWN = b"gAMA cHRM sRGB iCCP sBIT PLTE bKGD hIST tRNS pHYs sPLT cICP mDCV cLLI acTL fcTL fdAT".split()


@each(
    "file",
    [
        jpeg(ICC, files.ADOBE),
        jpeg(RESTARTS, scan=SCAN + b"\xff\xd0" + SCAN + b"\xff\xd7" + SCAN),
        jpeg(scan=b"\xff\0\xff\0\x7f\xff\0"),
        jpeg(scan=SCAN + b"\xff\xff\xff"),  # fill bytes before the end
        jpeg(frame=b"\xff\xff" + files.frame(code=0xC2), before_end=TABLES + SCAN_HEADER + SCAN + SCAN_HEADER + SCAN),
        jpeg(segment(0xCC, b"\0\x10"), frame=files.frame(code=0xC9)),
        jpeg(frame=files.frame(height=0), before_end=segment(0xDC, b"\0\x08")),
        png(*(chunk(kind, b"x" * 5) for kind in SHOWN)),
        gif().replace(b"GIF89a", b"GIF87a"),
        gif(image(colours=b"rgb" * 4)),
        gif(image(data=b"!\xfe\x01;"), CONTROL, image()),
        gif(LOOP.replace(b"NETSCAPE2.0", b"ANIMEXTS1.0"), image()),
        gif(image(colours=b"rgb" * 4), screen=files.SCREEN[:10] + b"\0\0\0"),
        webp(),
        webp(LOSSY),
        webp(files.extended(0x20), riff(b"ICCP", b"odd"), LOSSLESS),
        webp(files.extended(0x10), ALPHA, LOSSY),
        files.animated_webp(),
    ],
)
def test_a_picture_keeps_what_changes_how_its_pixels_look(file):
    assert cut(file) == file


@each(
    "file",
    [
        b"",
        b"\xff\xd8\xff",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"<html>" + png(),
        b"\0" + jpeg(),
        b"BM" + bytes(100),
        b"%PDF-1.7",
        files.SIGNATURE.replace(b"\r\n", b"\n") + png()[8:],
        b"GIF88a" + gif()[6:],
        b"RIFF\0\0\0\0WAVE",
        b"\0\0\0\x20ftypavif",
        # JPEG
        jpeg(frame=b""),
        jpeg(frame=files.frame(width=0)),
        jpeg(frame=files.frame(height=0)),
        jpeg(frame=files.frame(height=0), before_end=segment(0xDC, b"\0\0")),
        jpeg(frame=files.FRAME * 2),
        jpeg(frame=segment(0xC0, files.FRAME[4:] + b"more")),
        jpeg(scan=SCAN + b"\xff\x01"),
        jpeg(scan=SCAN + b"\xff\xd8"),
        jpeg(before_end=segment(0xFE, SECRET) + b"between"),
        jpeg(before_end=segment(0xFE, SECRET) + b"\xff\xd0"),
        jpeg(before_end=b"\xff\xe1\0\1"),
        jpeg(before_end=b"\xff\xe1\xff\xff"),
        jpeg(before_end=segment(0xF7, b"")),
        jpeg().replace(SCAN_HEADER + SCAN, b""),
        jpeg().replace(SCAN_HEADER, segment(0xDA, SCAN_HEADER[4:] + b"more")),
        jpeg().replace(SCAN_HEADER, segment(0xDA, b"")),
        # PNG
        png(header=b""),
        png(header=files.png_header(width=0)),
        png(header=files.png_header(height=0)),
        png(header=chunk(b"IHDR", b"\0\0\0\1" * 4)),
        png(chunk(b"CgBI"), header=b"") + png(),
        png(files.png_header()),
        png(pixels=b""),
        png(end=b""),
        png(end=chunk(b"IEND", b"x")),
        png(chunk(b"NEWS")),
        png(chunk(b"te\nt")),
        png(b"\x7f\xff\xff\xfftEXt"),
        png(b"\xff\xff\xff\xfftEXt"),
        png(b"\0\0\0\0"),
        # GIF
        gif(b""),
        gif(screen=files.screen(width=0)),
        gif(screen=files.screen(height=0)),
        gif(image(width=0)),
        gif(image(height=0)),
        gif(b"\0", image()),
        gif(files.extension(0xF9, b"\0" * 4, SECRET), image()),
        gif(files.extension(0xF9), image()),
        gif()[:-1],
        gif(image()[:-1] + b"\xff"),
        # WebP
        webp(files.extended()),
        webp(ANIMATION),
        webp(files.extended(), riff(b"EXIF", SECRET)),
        webp(LOSSLESS, files.extended(4)[:-1]),
        webp(ALPHA, files.extended(), LOSSLESS),
        webp(riff(b"VP8X", b"\0" * 12), LOSSLESS),
        webp(riff(b"VP8 ", LOSSY[8:].replace(b"\2\0\2\0", b"\0\0\2\0"))),
        webp(riff(b"VP8 ", LOSSY[8:].replace(b"\2\0\2\0", b"\2\0\0\xc0"))),
        webp(riff(b"VP8 ", LOSSY[8:16])),
        webp(riff(b"VP8 ", b"\x51" + LOSSY[9:])),
        webp(riff(b"VP8 ", b"not a start code")),
        webp(riff(b"VP8L", b"\x2f\0")),
        webp(riff(b"VP8L", b"\x2e" + LOSSLESS[9:])),
        webp(files.extended(2), ANIMATION, files.animation_frame(ALPHA)),
        webp(files.extended(2), ANIMATION, riff(b"ANMF", b"\0" * 8)),
        webp(LOSSLESS + b"tail"),
        webp(LOSSLESS + b"EXIF\xff\xff\xff\xff"),
        webp()[:4] + b"\xff\xff\xff\xff" + webp()[8:],
        webp()[:4] + b"\0\0\0\0" + webp()[8:],
    ],
)
def test_a_file_of_another_kind_or_whose_parts_lead_nowhere_is_no_picture(file):
    assert cut_picture(file) is None


# JPEG


def test_a_jpegs_pixels_that_look_like_segments_of_words_stay():
    scan = SCAN + b"\xff\0\xe1Exif\xff\xd0\xfe"
    assert cut(jpeg(scan=scan, before_end=segment(0xFE, SECRET) + SCAN_HEADER + scan)) == jpeg(
        scan=scan, before_end=SCAN_HEADER + scan
    )


def test_the_small_picture_within_a_jpegs_first_segment_is_cut():
    small = segment(0xE0, files.JFIF[4:-2] + b"\1\1rgb" + SECRET)
    assert cut(jpeg().replace(files.JFIF, small)) == jpeg()
    assert cut(jpeg(segment(0xEE, files.ADOBE[4:] + SECRET))) == jpeg(files.ADOBE)
    assert cut(jpeg(segment(0xED, files.ADOBE[4:] + SECRET))) == jpeg()  # Photoshop's words


# PNG


def test_a_png_keeps_its_checksums_right_or_wrong():
    wrong = files.PIXELS[:-4] + b"1234"
    assert cut(png(*files.PNG_WORDS, pixels=wrong)) == png(pixels=wrong)


def test_html_after_the_end_of_a_png_is_cut():
    assert cut(png(after=b"<script>alert(1)</script>")) == png()


# GIF


def test_a_gifs_repeats_take_no_other_blocks_with_them():
    loop = LOOP[:-1] + blocks(SECRET, b"\1\0\0", b"\2" + SECRET[:4])
    assert cut(gif(loop, image())) == gif(LOOP[:-1] + LOOP[-5:], image())
    assert cut(gif(files.extension(0xFF, b"NETSCAPE2.0", b"\2\0\0", SECRET), image())) == gif()


# WebP


def test_a_webps_padding_is_there_and_empty():
    odd = riff(b"VP8L", LOSSLESS[8:] + b"\0")
    assert odd[-1:] == b"\0" and len(odd) == len(LOSSLESS) + 2
    assert cut(webp(odd[:-1])) == cut(webp(odd[:-1] + b"x")) == cut(webp(odd[:-1], after=SECRET)) == webp(odd)
    whole, short = (webp(files.extended(2), ANIMATION, files.animation_frame(one)) for one in (odd, odd[:-1]))
    assert cut(short) == cut(whole) == whole


def test_a_webp_has_one_image_after_which_only_words_come():
    assert cut(webp(LOSSLESS, LOSSY, ALPHA)) == webp()


# All kinds


@each(
    "few, many",
    [
        (jpeg(segment(0xFE, b"")), jpeg(segment(0xFE, b"") * MAX_PARTS)),
        (png(chunk(b"tEXt")), png(chunk(b"tEXt") * MAX_PARTS)),
        (gif(files.extension(0xFE, b"1"), image()), gif(files.extension(0xFE, *[b"1"] * MAX_PARTS), image())),
        (gif(files.extension(0xFE), image()), gif(files.extension(0xFE) * MAX_PARTS, image())),
        (webp(riff(b"abcd", b""), LOSSLESS), webp(riff(b"abcd", b"") * MAX_PARTS, LOSSLESS)),
    ],
)
def test_a_file_of_nothing_but_tiny_parts_is_no_picture(few, many):
    assert cut_picture(few) is not None
    assert cut_picture(many) is None


@settings(max_examples=50)
@given(st.sampled_from(EXAMPLES), st.data())
def test_whatever_the_bytes_are_they_are_no_picture_or_one_that_stays_as_it_is(file, data):
    at = data.draw(st.integers(0, len(file)))
    until = data.draw(st.integers(at, len(file)) | st.just(at + 1))
    strange = file[:at] + data.draw(st.binary(max_size=12) | st.sampled_from(EXAMPLES)) + file[until:]
    picture = cut_picture(strange)
    if picture is not None:
        assert len(picture.data) <= len(strange) + 2  # two bytes of padding
        assert cut_picture(picture.data) == picture
