"""What the tables of keys, devices and sessions show of a name and of a time."""

import re

from dashboard.page import TILES, age
from tests.support.rows import each
from tests.support.times import DAY_S, HOUR_S

TILE = re.compile(r'<rect [^>]*fill="(#\w+)"/><text [^>]*>(.*?)</text>')


def test_a_key_has_a_tile_with_its_first_letter_in_a_color_of_its_name(service, owner):
    for name in ("backup", "Camera", "שרת", "backup", "<b>"):
        service.caller(name=name)
    colors = [color for color, _ in TILE.findall(owner.get("/app/keys").text)]
    letters = [letter for _, letter in TILE.findall(owner.get("/app/keys").text)]
    assert letters == ["&lt;", "B", "ש", "C", "B"]
    assert colors[1] == colors[4] and set(colors) <= set(TILES)


def test_the_letter_is_easy_to_read_on_every_color():
    for color in TILES:
        red, green, blue = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (red, green, blue)]
        light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        assert 1.05 / (light + 0.05) >= 4.5, color


def test_a_time_is_told_by_its_age_and_exactly_on_hover(service, owner, moved_clock):
    service.caller(name="backup")
    moved_clock.advance(DAY_S)
    shown = owner.page("/app/keys")
    assert (shown.times(), shown.texts_of("time")) == (["2026-11-21 10:00"], ["1 day ago"])


AGES = {
    **{30: "just now", 5 * 60: "5 min ago", 3 * HOUR_S: "3 h ago", 23 * HOUR_S: "23 h ago", DAY_S: "1 day ago"},
    **{29 * DAY_S: "29 days ago", 30 * DAY_S: "1 month ago", 364 * DAY_S: "12 months ago"},
    800 * DAY_S: "2 years ago",
}


@each("seconds, said", AGES.items())
def test_an_age_is_told_in_its_greatest_unit(moved_clock, seconds, said):
    assert age(moved_clock.ms - seconds * 1000) == said
