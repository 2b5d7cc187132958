"""The settings file: lines of NAME=value, checked against the names of the settings. Must not know a setting."""

import difflib
import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from settings.variables import SettingError, printable

# A name, then a value in quotes or without; a # at the beginning or behind a space begins a comment.
VALUE = r"""'(?P<one>[^']*)'|"(?P<two>[^"\\]*)"|(?P<bare>[^\s'"#]\S*(?:\s+[^\s#]\S*)*)?"""
LINE = re.compile(rf"(?:export\s+)?(?P<name>[A-Za-z_]\w*)=(?:{VALUE})(?:\s+#.*)?", re.ASCII)
LIKE = 0.81  # as difflib compares names: HOSTS is like HOST, PGHOST is not


class Line(NamedTuple):
    """A setting of the file: its value, and the place to name if that is wrong."""

    value: str
    place: str


def read_file(path: Path, known: Collection[str]) -> dict[str, Line]:
    """The settings of the file by name; `SettingError` with a sentence for each line that is wrong.

    A variable that is none of ours is ignored, unless its name says that it was meant to be one.
    """
    found, faults = dict[str, Line](), list[str]()
    for number, text in enumerate(_text(path).split("\n"), 1):
        place = f"{printable(str(path))}, line {number}: "
        stripped = text.strip()
        if not stripped or stripped.startswith("#"):
            continue
        line = LINE.fullmatch(stripped)
        if not line:
            faults.append(f"{place}this is not NAME=value, with the whole value in quotes or none of it.")
        elif line["name"] in known:
            found[line["name"]] = Line(line["one"] or line["two"] or line["bare"] or "", place)
        elif meant := _meant(line["name"], known):
            faults.append(f"{place}{line['name']} is not a setting: {meant}")
    if faults:
        raise SettingError("\n".join(faults))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingError(f"The settings file {printable(str(path))} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingError(f"The settings file {printable(str(path))} is not UTF-8.") from None


def _meant(name: str, known: Collection[str]) -> str:
    """What to say of an unknown name that looks like one of the settings; empty if it does not."""
    upper = name.upper()
    if like := difflib.get_close_matches(upper, known, 1, LIKE):
        return f"did you mean {like[0]}?"
    heads = {one.partition("_")[0] for one in known if "_" in one} | {"POCKETBELL"}
    return "see README.md, Settings." if upper.partition("_")[0] in heads else ""
