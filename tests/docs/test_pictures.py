"""The pictures of the pages, and how a moving one is put together."""

import re
import struct
import zlib

import pytest

from tests.support.rows import each
from tests.support.server import ROOT
from tools import apng, sample_data

PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
NAMED = sorted(
    {
        (page.parent / name).resolve()
        for page in PAGES
        for name in re.findall(r'(?:\]\(|src=")([^)"]+\.png)', page.read_text())
    }
)


def png(width, height, color=2):
    """A picture of one grey."""
    lines = (b"\0" + b"\x80" * width * (3 if color == 2 else 4)) * height
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)),
        (b"tEXt", b"Software\0x"),
        (b"IDAT", zlib.compress(lines, 0)),
        (b"IEND", b""),
    )
    return apng.SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )


def pixels(packed):
    return zlib.decompress(packed)


def test_a_moving_picture_has_each_frame_at_its_place_and_for_its_time():
    made = apng.animated(png(8, 6), [apng.Frame(png(8, 6), 0, 0, 900), apng.Frame(png(2, 3), 6, 3, 90)])
    kinds, contents = zip(*apng.chunks(made), strict=True)
    assert kinds == (b"IHDR", b"acTL", b"IDAT", b"fcTL", b"fdAT", b"fcTL", b"fdAT", b"IEND")
    assert struct.unpack(">II", contents[1]) == (2, 0)  # two frames, over and over
    first, second = (struct.unpack(">5IHHBB", content) for content in (contents[3], contents[5]))
    assert first == (0, 8, 6, 0, 0, 900, 1000, 0, 0)
    assert second == (2, 2, 3, 6, 3, 90, 1000, 0, 0)
    assert [content[:4] for content in (contents[4], contents[6])] == [struct.pack(">I", number) for number in (1, 3)]
    assert len(pixels(contents[4][4:])) == 6 * (1 + 8 * 3) and len(pixels(contents[6][4:])) == 3 * (1 + 2 * 3)


def test_every_chunk_has_its_checksum():
    made = apng.animated(png(2, 2), [apng.Frame(png(2, 2), 0, 0, 1)])
    place = len(apng.SIGNATURE)
    for kind, content in apng.chunks(made):
        (sum_,) = struct.unpack_from(">I", made, place + 8 + len(content))
        assert sum_ == zlib.crc32(kind + content)
        place += 12 + len(content)
    assert place == len(made)


@each(
    "frame", [apng.Frame(png(8, 6, color=6), 0, 0, 1), apng.Frame(png(8, 6), 1, 0, 1), apng.Frame(png(8, 6), 0, 1, 1)]
)
def test_a_frame_that_does_not_fit_is_refused(frame):
    with pytest.raises(ValueError, match="a frame"):
        apng.animated(png(8, 6), [frame])


def test_a_file_that_is_no_png_is_refused():
    with pytest.raises(ValueError, match="no PNG"):
        apng.smaller(b"GIF89a")


def test_a_smaller_picture_has_the_same_pixels():
    before = dict(apng.chunks(png(40, 30)))
    after = dict(apng.chunks(apng.smaller(png(40, 30))))
    assert list(after) == [b"IHDR", b"IDAT", b"IEND"] and len(after[b"IDAT"]) < len(before[b"IDAT"]) / 10
    assert after[b"IHDR"] == before[b"IHDR"] and pixels(after[b"IDAT"]) == pixels(before[b"IDAT"])


def test_every_picture_is_on_a_page_and_every_page_shows_pictures_that_are_there():
    assert NAMED and sorted((ROOT / "docs/pictures").iterdir()) == NAMED


@each("path", NAMED)
def test_a_picture_is_small_and_has_a_text_alternative(path):
    assert path.stat().st_size <= 400 * 1024
    pages = "".join(page.read_text() for page in PAGES)
    assert re.search(
        rf'!\[[^]]{{20,}}\]\([^)]*{re.escape(path.name)}\)|alt="[^"]{{20,}}"[^>]*{re.escape(path.name)}|{re.escape(path.name)}"[^>]*alt="[^"]{{20,}}"',
        pages,
    )


def test_the_service_accepts_the_pictures_data(service, moved_clock, push_service, monkeypatch):
    monkeypatch.setattr(sample_data, "DAYS", 2)
    lived = sample_data.Household(service, moved_clock, push_service)
    lived.live()
    shown = lived.callers["nas"].listed("?limit=100")
    assert len(shown) > 10 and {one["status"] for one in shown} == {"delivered"}
    assert {len(browser.messages) for browser in lived.browsers} == {len(shown)}
    assert {beat.state for beat in lived.beats} == {"up"} and lived.rule.state == "ok"
