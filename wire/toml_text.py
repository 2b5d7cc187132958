"""TOML as text: writing strings, and finding the lines of tables and fields, which tomllib does not tell. Pure."""

import contextlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import Any

ENDS = re.compile(r"\"\"\"|'''|]")  # one of them is in the last line of whatever has several lines
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

Lines = dict[tuple[str, int, str], int]


def toml_string(text: str) -> str:
    """The text as TOML's string, over several lines if it has several."""
    opened = "\n" if "\n" in text else ""
    if ("\\" in text or '"' in text) and "'" not in text and not UNSEEN.search(text):
        quotes = "'''" if opened else "'"
        return f"{quotes}{opened}{text}{quotes}"
    quotes = '"""' if opened else '"'
    escaped = (json.dumps(line, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f") for line in text.split("\n"))
    return quotes + opened + "\n".join(escaped) + quotes


def lines_of(text: str) -> Lines:
    """The lines of tables and their fields in valid TOML: by the table's name, which one of this name, and the field.

    The field "" is the table itself.
    """
    found, counts, table = Lines(), Counter[str](), None
    for line, statement, lines in _statements(text.replace("\r\n", "\n")):
        is_header = lines[0].lstrip().startswith("[")
        if table and not is_header:
            for field in statement:
                found.setdefault((*table, field), line)
            continue
        for name, value in statement.items():
            values, behind = (value, _places(value, lines)) if isinstance(value, list) else ([value], [0])
            for one, lines_behind in zip(values, behind, strict=True):
                counts[name] += isinstance(value, list)
                header = name, max(0, counts[name] - 1)
                for field in ("", *(one if isinstance(one, dict) else ())):
                    found.setdefault((*header, field), line + lines_behind)
                table = header if is_header else None
    return found


def _places(array: list[Any], lines: list[str]) -> list[int]:
    """By how many lines each of the array's values ends behind the first of these lines, which are the array."""
    found = list[int]()
    for number in range(len(lines) - 1):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            (values,) = tomllib.loads("\n".join([*lines[: number + 1], "]"])).values()
            found += [number] * (len(values) - len(found))
    return found + [len(lines) - 1] * (len(array) - len(found))


def _statements(text: str) -> Iterator[tuple[int, dict[str, Any], list[str]]]:
    """Each header, field or comment: its first line, what it means by itself, and its lines.

    A statement ends with the first line that makes it valid: before, a bracket or a text is open.
    """
    kept = list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        kept.append(line)
        if len(kept) == 1 or ENDS.search(line):
            try:
                statement = tomllib.loads("\n".join(kept))
            except tomllib.TOMLDecodeError:
                continue
            yield number - len(kept) + 1, statement, kept
            kept = []
