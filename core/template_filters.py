"""The filters of templates, the paths into a payload, and a bound on the work of both.

Pure. A filter takes a value, its argument and the `Work` that is left; it raises `CannotApply` if it does not fit the
value. Nothing in a payload is evaluated.
"""

import fnmatch
import hashlib
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any

from core import local_time
from core.value_text import as_text, cut, scalar_text
from wire.errors import Refused
from wire.strict_json import Number, parse_embedded

MAX_TEXT = 10_000  # characters that a filter reads
WORK = 1_000_000  # characters, roughly, that the paths and filters of an alert's templates may read
ITEM_WORK = 100  # an item of an array, in characters that could be read instead; likewise below
KEY_WORK = 25  # looking a key up
JSON_WORK = 40  # writing a character of JSON
MAX_EMBEDDED = 100_000  # characters that `parse_json` reads
PARSE_WORK = 3  # reading a character of JSON
LOOK_WORK = 3  # an item that is only looked at
DATE_WORK = 1_000
MAX_DATE_CHARACTERS = 64
MAX_LAYOUT = 100  # characters: a width such as %5000Y makes each of them hundreds
MAX_DECIMALS = 20
MAX_NUMBER_DIGITS = 400  # a double has at most 309 digits before its point
HASH_DIGITS = 16
UNITS = [Decimal(f"1e-{decimals}") for decimals in range(MAX_DECIMALS + 1)]  # of a rounded number
EXACT = Context(prec=MAX_NUMBER_DIGITS)

POSITION = re.compile(r"0|[1-9][0-9]{0,8}")
JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,9})?")
UNIX_TIME = re.compile(r"(?![0-9]{8}\Z)[0-9]{1,14}(?:\.[0-9]{1,9})?")  # eight digits are a date in ISO 8601

Argument = str | int | tuple[str | int, ...] | None  # a tuple for two


class CannotApply(Exception):
    """The filter does not fit its value."""


class WrongArgument(CannotApply):
    """The filter takes no such argument."""


class OutOfWork(CannotApply):
    """No work is left for the filter."""


MISSING = object()  # the value at a path that a payload lacks


class Work:
    """The work left for so many templates: half in equal shares, half for the first placeholders that need more."""

    def __init__(self, zone: str = "UTC", templates: int = 1) -> None:
        self.zone = zone
        self.share_of_template, self.common, self.left = WORK // 2 // templates, WORK // 2, 0
        self.embedded: dict[str, Any] = {}  # texts that were parsed as JSON

    def begin(self, placeholders: int = 1) -> "Work":
        """Begin with the next of so many placeholders of a template, which each have a share of their own."""
        self.left = self.share_of_template // placeholders
        return self

    def spend(self, amount: int) -> None:
        """Take the amount from the share, then from the common half; `OutOfWork` if neither has it."""
        self.left -= amount
        if self.left >= 0:
            return
        beyond, self.left = -self.left, 0
        if beyond > self.common:
            self.common = 0
            raise OutOfWork
        self.common -= beyond

    def text(self, value: object, limit: int = MAX_TEXT) -> str:
        """The value as a text of at most `limit` characters; costs work by its length."""
        rate = JSON_WORK if isinstance(value, (dict, list)) else 1
        affordable = (self.left + self.common) // rate
        text = as_text(value, min(limit, MAX_TEXT, affordable + 1))
        self.spend(len(text) * rate)
        return text

    def items(self, value: object) -> Iterator[Any]:
        """The items of an array."""
        for item in _array(value):
            self.spend(ITEM_WORK)
            yield item


def resolve(value: Any, path: str, work: Work) -> Any:
    """Follow the path. At each object the longest key wins that the path begins with, up to a dot or the end.

    Shorter keys are tried until they cost more than all the work.
    """
    rest: str | None = path
    while rest is not None:
        if isinstance(value, dict):
            end, cost = len(rest), KEY_WORK + len(rest) // 8
            while rest[:end] not in value:
                end = rest.rfind(".", 0, end)
                if end < 0 or cost > WORK:
                    work.spend(cost)
                    return MISSING
                cost += KEY_WORK + end // 8
            work.spend(cost)
            value, rest = value[rest[:end]], rest[end + 1 :] if end < len(rest) else None
        elif isinstance(value, list):
            work.spend(KEY_WORK)
            key, dot, after = rest.partition(".")
            place = int(key) if POSITION.fullmatch(key) else len(value)
            if place >= len(value):
                return MISSING
            value, rest = value[place], after if dot else None
        else:
            return MISSING
    return value


# --- filters ------------------------------------------------------------------------------------------------


def _bare(call: Callable[[Any, Work], Any]) -> Callable[[Any, Argument, Work], Any]:
    """A filter that takes no argument."""

    def checked(value: Any, argument: Argument, work: Work) -> Any:
        if argument is not None:
            raise WrongArgument
        return call(value, work)

    return checked


def _text_argument(argument: Argument) -> str:
    if not isinstance(argument, str):
        raise WrongArgument
    return argument


def _array(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise CannotApply
    return value


def _default(value: Any, argument: Argument, work: Work) -> Any:
    if argument is None or isinstance(argument, tuple):
        raise WrongArgument
    return argument if is_empty(value) else value


def is_empty(value: Any) -> bool:
    """Whether `default` replaces the value."""
    return value is MISSING or value is None or value is False or value in ("", [], {})


def _tidy(value: Any, work: Work) -> str:
    """The text without white space at its ends and without blank lines."""
    lines = work.text(value).split("\n")
    work.spend(KEY_WORK * len(lines))
    return "\n".join(line.rstrip() for line in lines if line.strip()).strip()


def _truncate(value: Any, argument: Argument, work: Work) -> str:
    if not isinstance(argument, int) or argument < 1:
        raise WrongArgument
    return cut(work.text(value, argument + 1), argument)


def _join(value: Any, argument: Argument, work: Work) -> str:
    separator = " " if argument is None else _text_argument(argument)
    parts: list[str] = []
    length = 0
    for item in work.items(value):
        parts.append(work.text(item))
        length += len(parts[-1]) + len(separator)
        if length > MAX_TEXT + len(separator):
            break
    return separator.join(parts)


def _map(value: Any, argument: Argument, work: Work) -> Any:
    path = _text_argument(argument)
    found = [_first_at(item, path, work) for item in work.items(value)]
    if found and all(item is MISSING for item in found):
        return MISSING
    return [None if item is MISSING else item for item in found]


def _first_at(value: Any, paths: str, work: Work) -> Any:
    """The first value at these paths, separated by bars, that is not empty; else the value at the last path."""
    found: Any = MISSING
    for path in paths.split("|"):
        work.spend(KEY_WORK)
        found = resolve(value, path.strip(), work)
        if not is_empty(found):
            break
    return found


def _where(value: Any, argument: Argument, work: Work) -> list[Any]:
    """The objects whose value at a path, as a text, is the second argument; null and missing ones are empty."""
    path, wanted = argument if isinstance(argument, tuple) else (None, None)
    if not isinstance(path, str):
        raise WrongArgument
    work.spend(LOOK_WORK * len(_array(value)))
    objects = [item for item in value if isinstance(item, dict)]
    return [item for item in objects if _shows(resolve(item, path, work), str(wanted), work)]


def _shows(value: object, text: str, work: Work) -> bool:
    work.spend(KEY_WORK)
    if isinstance(value, (dict, list)):
        return False
    return text == ("" if value is MISSING else as_text(value, len(text) + 1))


def _size(value: Any, work: Work) -> int:
    if not isinstance(value, (str, list, dict)):
        raise CannotApply
    return len(value)


def _round(value: Any, argument: Argument, work: Work) -> Any:
    decimals = 0 if argument is None else argument
    if not isinstance(decimals, int) or decimals > MAX_DECIMALS:
        raise WrongArgument
    literal = value if isinstance(value, str) else _number(value)
    if len(literal) > MAX_NUMBER_DIGITS or not JSON_NUMBER.fullmatch(literal):
        raise CannotApply
    number = Decimal(literal)
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and -exponent <= decimals:
        return value
    rounded = number.quantize(UNITS[decimals], ROUND_HALF_UP, EXACT)
    return f"{rounded or rounded.copy_abs():f}"


def _number(value: Any) -> str:
    if not isinstance(value, (int, Number)) or isinstance(value, bool):
        raise CannotApply
    return scalar_text(value)


def _date(value: Any, argument: Argument, work: Work) -> str:
    work.spend(DATE_WORK)
    layout = _text_argument(argument)
    if len(layout) > MAX_LAYOUT:
        raise WrongArgument
    if not isinstance(value, (str, int, Number)) or isinstance(value, bool):
        raise CannotApply
    if isinstance(value, Number) or (isinstance(value, str) and UNIX_TIME.fullmatch(value)):
        value = float(value)
    if isinstance(value, str) and len(value) > MAX_DATE_CHARACTERS:
        raise CannotApply
    try:
        return local_time.formatted(value, layout, work.zone)
    except local_time.NO_TIME:
        raise CannotApply from None


def _replace(value: Any, argument: Argument, work: Work) -> str:
    """The text with every occurrence of the first argument replaced by the second."""
    old, new = map(str, argument) if isinstance(argument, tuple) else ("", "")
    if not old:
        raise WrongArgument
    text = work.text(value)
    work.spend(text.count(old) * len(new))
    return text.replace(old, new)


def _between(before: str, value: Any, after: str, work: Work) -> str:
    """The text with these around it; nothing for a blank text, so that an optional part leaves no gap."""
    text = work.text(value)
    return before + text + after if text.strip() else ""


def _translate(value: Any, argument: Argument, work: Work) -> Any:
    """The first word of a table such as "up=is up, *=is down" whose key fits the text; else the value itself."""
    table, text = _table(_text_argument(argument)), work.text(value)
    work.spend((KEY_WORK + len(text)) * len(table))
    return next((word for key, word in table if key.match(text)), value) if text else value


@lru_cache(maxsize=1_000)
def _table(written: str) -> list[tuple[re.Pattern[str], str]]:
    """The pairs of a table; in a key, an asterisk stands for any text."""
    table = []
    for pair in written.split(","):
        key, equals, word = (part.strip() for part in pair.partition("="))
        if not key or not equals:
            raise WrongArgument
        table.append((re.compile(fnmatch.translate(re.sub(r"([?[])", r"[\1]", key))), word))
    return table


def _hash(value: Any, work: Work) -> str:
    """The same short text for the same value; an empty text for an empty value, so that it looks like none."""
    if isinstance(value, str):
        work.spend(len(value))
        text = value
    else:
        text = work.text(value)
        if len(text) >= MAX_TEXT:
            raise OutOfWork  # the unread rest might differ
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS] if text else ""


def _parse_json(value: Any, argument: Argument, work: Work) -> Any:
    """A text parsed as JSON, or the value in it at a path; missing if it is no JSON. A text is parsed once."""
    path = None if argument is None else _text_argument(argument)
    if not isinstance(value, str) or len(value) > MAX_EMBEDDED:
        raise CannotApply
    if value not in work.embedded:
        work.spend(len(value) * PARSE_WORK)
        try:
            work.embedded[value] = parse_embedded(value)
        except Refused:
            work.embedded[value] = MISSING
    return work.embedded[value] if path is None else _first_at(work.embedded[value], path, work)


FILTERS: dict[str, Callable[[Any, Argument, Work], Any]] = {
    "default": _default,
    "upcase": _bare(lambda value, work: work.text(value).upper()),
    "downcase": _bare(lambda value, work: work.text(value).lower()),
    "capitalize": _bare(lambda value, work: work.text(value).capitalize()),
    "tidy": _bare(_tidy),
    "truncate": _truncate,
    "join": _join,
    "map": _map,
    "size": _bare(_size),
    "first": _bare(lambda value, work: (_array(value) or [MISSING])[0]),
    "last": _bare(lambda value, work: (_array(value) or [MISSING])[-1]),
    "round": _round,
    "date": _date,
    "where": _where,
    "replace": _replace,
    "append": lambda value, argument, work: _between("", value, _text_argument(argument), work),
    "prepend": lambda value, argument, work: _between(_text_argument(argument), value, "", work),
    "translate": _translate,
    "hash": _bare(_hash),
    "parse_json": _parse_json,
}
