"""Checks of the fields of requests, forms and commands; each raises `Refused` (400) that names the field."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from wire.errors import Refused

MAX_NAME_CHARACTERS = 100
MAX_TITLE_CHARACTERS = 1_000  # of a title without the prefix, and of a title template
MAX_BODY_CHARACTERS = 10_000
MAX_SEARCH_CHARACTERS = 200
MAX_SHOWN_CHARACTERS = 50  # of a word that is refused


def required_text(payload: Mapping[str, Any], field: str, within: str = "") -> str:
    """The field, which must be a string; null counts as missing. A refusal has `within` before the field's name."""
    value = optional_text(payload, field, within)
    if value is None:
        raise Refused(400, f"{within}{field} is required.", field=field)
    return value


def only_known(sent: dict[str, Any], *known: str) -> dict[str, Any]:
    """`sent`, all of whose fields must be among the `known` ones."""
    unknown = next((field for field in sent if field not in known), None)
    if unknown is not None:
        shown = unknown[:MAX_NAME_CHARACTERS]
        raise Refused(400, f"{shown} is not known: only {', '.join(known)} can be set.", field=unknown)
    return sent


def counted(number: int, word: str) -> str:
    """The number with the word, as a plural unless it is one."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def either(words: Iterable[str]) -> str:
    """The words as a choice in a sentence: `a, b or c`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def optional_text(payload: Mapping[str, Any], field: str, within: str = "") -> str | None:
    """The field, which must be a string unless it is missing or null (None)."""
    value = payload.get(field)
    return None if value is None else checked_string(value, f"{within}{field}")


def not_among(word: str, known: Iterable[str]) -> str:
    """A word that is not known, as refusals show it, with the known ones like it: `"bel". Did you mean bell?`."""
    shown = word[:MAX_SHOWN_CHARACTERS]
    near = difflib.get_close_matches(shown.lower(), sorted(known), 3)
    return f'"{shown}". Did you mean {either(near)}?' if near else f'"{shown}".'


def checked_string(value: Any, field: str) -> str:
    """`value`, if it is a string."""
    if not isinstance(value, str):
        raise Refused(400, f"{field} must be a string.", field=field)
    return value


def checked_flag(value: Any, field: str) -> bool:
    """`value`, if it is true or false."""
    if not isinstance(value, bool):
        raise Refused(400, f"{field} must be true or false.", field=field)
    return value


def checked_choice(value: Any, field: str, of: Iterable[str]) -> str:
    """`value`, if it is one of these words."""
    if not isinstance(value, str) or value not in of:
        raise Refused(400, f"{field} must be {either(of)}.", field=field)
    return value


def checked_length(value: str, field: str, longest: int) -> str:
    """`value`, if it is neither blank nor longer than `longest` characters."""
    if not value.strip():
        raise Refused(400, f"{field} must not be blank.", field=field)
    if len(value) > longest:
        raise Refused(400, f"{field} is {len(value)} characters long: at most {longest} are allowed.", field=field)
    return value


def checked_name(value: str, field: str = "name") -> str:
    """`value` trimmed, if it has 1 to 100 characters that can be stored."""
    return checked_text(value.strip(), field, MAX_NAME_CHARACTERS)


def checked_text(value: str, field: str, longest: int) -> str:
    """`value`, if it is not blank and has at most `longest` characters, which can be stored."""
    text = checked_length(value, field, longest)
    if any("\ud800" <= c <= "\udfff" or c == "\0" for c in text):
        raise Refused(400, f"{field} is not valid text.", field=field)
    return text


def checked_seconds(value: Any, field: str, least: int, most: int) -> int:
    """`value`, if it is a whole number of seconds within these bounds."""
    if type(value) is not int or not least <= value <= most:
        raise Refused(400, f"{field} must be a whole number of seconds from {least} to {most:,}.", field=field)
    return value
