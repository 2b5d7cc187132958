"""Durations as people write them: 90s, 10m, 1h, 1h 30m, 7d. Pure."""

import re

from wire.errors import Refused

UNITS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}  # the greatest first
DURATION = re.compile(r"(?:[0-9]{1,9}[dhms] ?)+", re.ASCII)
PART = re.compile(r"([0-9]+)([dhms])")
FULL_NAMES = {"grace": "grace period", "expires": "time until it expires"}
MAX_CHARACTERS = 40


def seconds_of(text: str, field: str, least_s: int, most_s: int) -> int:
    """The seconds of a duration from `least_s` to `most_s`; `Refused` (400) that names the field for any other."""
    written, name = text.strip().lower(), FULL_NAMES.get(field, field)
    if len(written) > MAX_CHARACTERS or not DURATION.fullmatch(written):
        raise Refused(400, f'Write the {name} like 10m, 1h or 7d, not "{text[:100]}".', field=field)
    seconds = sum(int(number) * UNITS_S[unit] for number, unit in PART.findall(written))
    if not least_s <= seconds <= most_s:
        bounds = f"from {short(least_s)} to {short(most_s)}"
        raise Refused(400, f"The {name} must be {bounds}.", field=field)
    return seconds


def short(seconds: int, most: int = 4) -> str:
    """A duration in its greatest units, at most so many, as `seconds_of` reads it."""
    return " ".join(_parts(seconds)[:most]) or "0s"


def in_words(seconds: int, most: int = 4) -> str:
    """A duration in its greatest units, at most so many, as a sentence has it: "1 h 8 min", "7 days"."""
    words = {"d": "days", "h": "h", "m": "min", "s": "s"}
    parts = _parts(seconds)[:most] or ["0s"]
    return " ".join("1 day" if part == "1d" else f"{part[:-1]} {words[part[-1]]}" for part in parts)


def _parts(seconds: int) -> list[str]:
    parts = []
    for unit, length in UNITS_S.items():
        number, seconds = divmod(seconds, length)
        if number:
            parts.append(f"{number}{unit}")
    return parts
