"""`fill`: a template's `{{ path | filter }}` placeholders with the values of a payload (CONTRACT 4, templates).

Pure. The template is read in one pass that is linear however it is written; nothing in a payload is evaluated or
looked at twice. Building stops at the output's limit, and the work of paths and filters is bounded. It never fails:
what cannot be filled stays visible as it was written.
"""

import difflib
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, NamedTuple

from core import local_time
from wire.errors import Refused
from wire.json_text import as_json
from wire.strict_json import Number

LONGEST_TEXT = 10_000  # characters that a filter looks at
WORK = 1_000_000  # characters, roughly, that one template's paths and filters may look at
ITEM_WORK = 100  # an item of an array costs as much as so many characters
KEY_WORK = 25  # and so does trying one key
JSON_WORK = 40  # and a character of JSON
LOOK_WORK = 3  # an item that is only looked at
DATE_WORK = 1_000
LONGEST_DATE = 64
MOST_DECIMALS = 20
MOST_PATHS = 300  # that are offered of a payload
LONGEST_PATH = 200
GUESS_WORK = 200_000  # comparing two texts costs about the product of their lengths
LONGEST_NUMBER = 400  # digits; a double has at most 309 before its point

# Possessive throughout: what was passed is never tried again. A `{{` within begins anew, but for quotes after a bar,
# and three at most of the beginnings before any place can have it within quotes: so it stays linear.
PLACEHOLDER = re.compile(
    r"""\{\{(?!\{)
    (?P<path> (?: [^{}|]++ | \{(?!\{) | \}(?!\}) )*+ )
    (?P<filters> (?: \| (?: [^{}|"']++ | "[^"]*+" | '[^']*+' | \{(?!\{) | \}(?!\}) )*+ )*+ )
    \}\}""",
    re.VERBOSE,
)
WRITTEN_ARGUMENT = r""" (?: "[^"]*+" | '[^']*+' | [0-9]{1,18}+ ) """
ARGUMENT = re.compile(WRITTEN_ARGUMENT, re.VERBOSE)
FILTER = re.compile(
    rf"""\| \s*+ (?P<name> [^\s|:"']*+ ) \s*+
    (?: : \s*+ (?P<arguments> {WRITTEN_ARGUMENT} (?: \s*+ , \s*+ {WRITTEN_ARGUMENT} )?+ ) \s*+ (?=\||\Z)
      | : \s*+ (?P<other> [^|:,"'{{}}]++ ) (?=\||\Z) )?+
    (?P<surplus> (?: [^|"']++ | "[^"]*+" | '[^']*+' )*+ )""",
    re.VERBOSE,
)
WRITABLE = re.compile(r"(?!\s)[^{}|\r\n]+(?<!\s)")  # a path that a template can hold
POSITION = re.compile(r"0|[1-9][0-9]{0,8}")
JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,9})?")
UNIX_TIME = re.compile(r"(?![0-9]{8}\Z)[0-9]{1,14}(?:\.[0-9]{1,9})?")  # eight digits are a date in ISO 8601

WORDS = {True: "true", False: "false", None: "null"}
Argument = str | int | tuple[str | int, ...] | None  # a tuple for two


class Filled(NamedTuple):
    """The text, and the paths that the payload lacks: those placeholders are still in it."""

    text: str
    missing: tuple[str, ...]


class Stuck(NamedTuple):
    """The value of a placeholder that stays as it is written: the filter that cannot apply (none: there is no path).

    `is_costly` when no work is left for it.
    """

    filter: str = ""
    is_costly: bool = False


class _CannotApply(Exception):
    """A filter that does not fit its value."""


class _WrongArgument(_CannotApply):
    """A filter that does not take what follows its name."""


class _OutOfWork(_CannotApply):
    """No work is left."""


class _Full(Exception):
    """As much text is built as is wanted."""


class _Missing:
    """What a payload lacks."""


MISSING = _Missing()


def fill(template: str, payload: dict[str, Any], limit: int, zone: str = "UTC") -> Filled:
    """The template with the payload's values (as `parse_event` gives them), in at most `limit` characters.

    Dates are shown in `zone`.
    """
    missing = dict[str, None]()
    parts, length, end = [], 0, 0
    for placeholder, value in values(template, payload, zone):
        parts.append(template[end : placeholder.start()])
        if value is MISSING:
            missing[placeholder["path"].strip()] = None
        shown = placeholder[0] if value is MISSING or isinstance(value, Stuck) else rendered(value, limit + 1)
        parts.append(shown)
        length += len(parts[-2]) + len(shown)
        end = placeholder.end()
        if length > limit:
            break
    parts.append(template[end:])
    return Filled(cut("".join(parts), limit), tuple(missing))


def values(template: str, payload: dict[str, Any], zone: str) -> Iterator[tuple[re.Match[str], Any]]:
    """Each placeholder with its value, which may be `MISSING` or `Stuck`."""
    work = _Work(zone, template.count("{{") or 1)
    for placeholder in PLACEHOLDER.finditer(template):
        yield placeholder, _value(placeholder, payload, work.begin())


def misused(placeholder: re.Match[str]) -> str | None:
    """The first filter that does not take what follows its name, be the value whatever it is; None if all do."""
    filters = list(FILTER.finditer(placeholder["filters"]))
    wrong = (one["name"] for one in filters if not _takes(one))
    return next(wrong, "default" if _ends_in_path(filters) else None)


def _takes(one: re.Match[str]) -> bool:
    work = _Work("UTC", 1).begin()
    try:
        _other(one, None, {}, work) if one["other"] else _apply(one, None, work)
    except _WrongArgument:
        return False
    except _CannotApply:
        return True
    return True


def paths(payload: dict[str, Any]) -> list[str]:
    """The paths in a payload, as a template can name them: at most `MOST_PATHS`, of arrays the first two items."""
    found, waiting = list[str](), deque[tuple[str, Any]]([("", payload)])
    while waiting and len(found) < MOST_PATHS:
        path, value = waiting.popleft()
        if path:
            found.append(path)
        children = list(value.items()) if isinstance(value, dict) else []
        if isinstance(value, list):
            children = [(str(place), item) for place, item in enumerate(value[:2])]
        named = ((f"{path}.{key}" if path else key, child) for key, child in children[:MOST_PATHS])
        waiting.extend(
            (name, child) for name, child in named if len(name) <= LONGEST_PATH and WRITABLE.fullmatch(name)
        )
    return found


def likely_paths(missing: Iterable[str], known: list[str]) -> dict[str, str | None]:
    """For the paths that a payload lacks, which of the `known` was meant perhaps, by their last keys.

    Where there is too much to compare, nothing is guessed for the later ones.
    """
    last_keys = {path.rpartition(".")[2]: path for path in reversed(known)}
    meant, left, length = dict[str, str | None](), GUESS_WORK, sum(map(len, last_keys))
    for path in missing:
        key = path.rpartition(".")[2]
        left -= len(key) * length
        near = difflib.get_close_matches(key, last_keys, 1, 0.7) if left >= 0 else []
        meant[path] = last_keys[near[0]] if near else None
    return meant


def check_template(template: str) -> None:
    """Raise `Refused` (400) for a filter that there is not."""
    for placeholder in PLACEHOLDER.finditer(template):
        for one in FILTER.finditer(placeholder["filters"]):
            if placeholder["path"].strip() and one["name"] not in FILTERS:
                known = ", ".join(FILTERS)
                raise Refused(400, f'There is no filter "{one["name"][:100]}": the filters are {known}.')


def cut(text: str, limit: int) -> str:
    """The text in at most `limit` characters, with `…` where something is left out."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def rendered(value: object, limit: int) -> str:
    """The first `limit` characters of how a value is shown."""
    if isinstance(value, str):
        return value[:limit]
    if isinstance(value, dict | list):
        return _compact_json(value, limit)
    return "" if value is None else _scalar(value)[:limit]


def _scalar(value: object) -> str:
    """A number, a boolean or null as in the JSON."""
    if isinstance(value, Number):
        return value.decode()
    return WORDS[value] if value is None or isinstance(value, bool) else str(value)


def _compact_json(value: object, limit: int) -> str:
    parts, left = list[str](), limit

    def add(part: str) -> None:
        nonlocal left
        parts.append(part)
        left -= len(part)
        if left <= 0:
            raise _Full

    with suppress(_Full):
        _write_json(value, add, limit)
    return "".join(parts)[:limit]


def _write_json(value: object, add: Callable[[str], None], limit: int) -> None:
    if isinstance(value, dict):
        separator = "{"
        for key, item in value.items():
            add(f"{separator}{as_json(key[:limit])}:")
            _write_json(item, add, limit)
            separator = ","
        add("}" if value else "{}")
    elif isinstance(value, list):
        add("[")
        for position, item in enumerate(value):
            if position:
                add(",")
            _write_json(item, add, limit)
        add("]")
    else:
        add(as_json(value[:limit]) if isinstance(value, str) else _scalar(value))


# --- a placeholder's value ----------------------------------------------------------------------------------


class _Work:
    """What filling may still cost: half is shared out evenly, and the other half is for whoever comes first."""

    def __init__(self, zone: str, placeholders: int) -> None:
        self.zone = zone
        self.share, self.common, self.left = WORK // 2 // placeholders, WORK // 2, 0

    def begin(self) -> "_Work":
        """The next placeholder, with a share of its own."""
        self.left = self.share
        return self

    def spend(self, amount: int) -> None:
        beyond = max(0, amount - self.left)
        self.left = max(0, self.left - amount)
        if beyond > self.common:
            self.common = 0
            raise _OutOfWork
        self.common -= beyond

    def text(self, value: object, limit: int = LONGEST_TEXT) -> str:
        rate = JSON_WORK if isinstance(value, dict | list) else 1
        affordable = (self.left + self.common) // rate
        text = rendered(value, min(limit, LONGEST_TEXT, affordable + 1))
        self.spend(len(text) * rate)
        return text

    def items(self, value: object) -> Iterator[Any]:
        """Those of an array."""
        for item in _array(value):
            self.spend(ITEM_WORK)
            yield item


def _value(placeholder: re.Match[str], payload: dict[str, Any], work: _Work) -> Any:
    """What to show for the placeholder: a value, `MISSING` or `Stuck`."""
    path = placeholder["path"].strip()
    if not path:
        return Stuck()
    try:
        value = _resolve(payload, path, work)
    except _CannotApply:
        return MISSING  # as far as can be told
    filters = list(FILTER.finditer(placeholder["filters"]))
    if _ends_in_path(filters):
        return Stuck("default")
    try:
        for one in filters:
            value = _other(one, value, payload, work) if one["other"] else _apply(one, value, work)
    except _CannotApply as fault:
        return Stuck(one["name"], isinstance(fault, _OutOfWork))
    return value


def _ends_in_path(filters: list[re.Match[str]]) -> bool:
    """Whether the last default names a path: it must be a text, so that a misspelt path does not go unnoticed."""
    defaults = [one for one in filters if one["name"] == "default"]
    return bool(defaults and defaults[-1]["other"])


def _resolve(value: Any, path: str, work: _Work) -> Any:
    """Follow the path; at each object the longest key wins that is the rest of the path, or the rest up to a dot."""
    while True:
        if isinstance(value, dict):
            end = _longest_key(value, path, work)
            if end < 0:
                return MISSING
            value = value[path[:end]]
        elif isinstance(value, list):
            work.spend(KEY_WORK)
            end = path.find(".") if "." in path else len(path)
            if not POSITION.fullmatch(path[:end]) or int(path[:end]) >= len(value):
                return MISSING
            value = value[int(path[:end])]
        else:
            return MISSING
        if end == len(path):
            return value
        path = path[end + 1 :]


def _longest_key(value: dict[str, Any], path: str, work: _Work) -> int:
    """Where it ends in the path; -1 when there is none."""
    end = len(path)
    while end >= 0:
        work.spend(KEY_WORK + end // 8)
        if path[:end] in value:
            return end
        end = path.rfind(".", 0, end)
    return -1


# --- filters ------------------------------------------------------------------------------------------------


def _apply(one: re.Match[str], value: Any, work: _Work) -> Any:
    known = FILTERS.get(one["name"])
    if known is None or one["surplus"]:
        raise _WrongArgument
    arguments = [_argument(written) for written in ARGUMENT.findall(one["arguments"] or "")]
    work.spend(ITEM_WORK)
    if value is MISSING and known is not _default:
        return MISSING
    return known(value, tuple(arguments) if len(arguments) > 1 else next(iter(arguments), None), work)


def _other(one: re.Match[str], value: Any, payload: dict[str, Any], work: _Work) -> Any:
    """`default: path`: what is there in the place of an empty value."""
    if one["name"] != "default" or one["surplus"]:
        raise _WrongArgument
    work.spend(ITEM_WORK)
    return _resolve(payload, one["other"].strip(), work) if _is_empty(value) else value


def _argument(written: str) -> str | int:
    return int(written) if written.isdecimal() else written[1:-1]


def _no(argument: Argument) -> None:
    if argument is not None:
        raise _WrongArgument


def _text_argument(argument: Argument) -> str:
    if not isinstance(argument, str):
        raise _WrongArgument
    return argument


def _array(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _CannotApply
    return value


def _default(value: Any, argument: Argument, work: _Work) -> Any:
    if argument is None or isinstance(argument, tuple):
        raise _WrongArgument
    return argument if _is_empty(value) else value


def _is_empty(value: Any) -> bool:
    return value is MISSING or value is None or value is False or value in ("", [], {})


def _upcase(value: Any, argument: Argument, work: _Work) -> str:
    _no(argument)
    return work.text(value).upper()


def _downcase(value: Any, argument: Argument, work: _Work) -> str:
    _no(argument)
    return work.text(value).lower()


def _capitalize(value: Any, argument: Argument, work: _Work) -> str:
    _no(argument)
    return work.text(value).capitalize()


def _truncate(value: Any, argument: Argument, work: _Work) -> str:
    if not isinstance(argument, int) or argument < 1:
        raise _WrongArgument
    return cut(work.text(value, argument + 1), argument)


def _join(value: Any, argument: Argument, work: _Work) -> str:
    separator = " " if argument is None else _text_argument(argument)
    parts, length = list[str](), 0
    for item in work.items(value):
        parts.append(work.text(item))
        length += len(parts[-1]) + len(separator)
        if length > LONGEST_TEXT + len(separator):
            break
    return separator.join(parts)


def _map(value: Any, argument: Argument, work: _Work) -> Any:
    path = _text_argument(argument)
    found = [_resolve(item, path, work) for item in work.items(value)]
    if found and all(item is MISSING for item in found):
        return MISSING
    return [None if item is MISSING else item for item in found]


def _where(value: Any, argument: Argument, work: _Work) -> list[Any]:
    """The objects whose path shows as the second argument; null and what is missing show as nothing."""
    path, wanted = argument if isinstance(argument, tuple) else (None, None)
    if not isinstance(path, str):
        raise _WrongArgument
    work.spend(LOOK_WORK * len(_array(value)))
    objects = [item for item in value if isinstance(item, dict)]
    return [item for item in objects if _shows(_resolve(item, path, work), str(wanted), work)]


def _shows(value: object, text: str, work: _Work) -> bool:
    work.spend(KEY_WORK)
    if isinstance(value, dict | list):
        return False
    return text == ("" if value is MISSING else rendered(value, len(text) + 1))


def _size(value: Any, argument: Argument, work: _Work) -> int:
    _no(argument)
    if not isinstance(value, str | list | dict):
        raise _CannotApply
    return len(value)


def _first(value: Any, argument: Argument, work: _Work) -> Any:
    _no(argument)
    return _array(value)[0] if _array(value) else MISSING


def _last(value: Any, argument: Argument, work: _Work) -> Any:
    _no(argument)
    return _array(value)[-1] if _array(value) else MISSING


def _round(value: Any, argument: Argument, work: _Work) -> Any:
    decimals = 0 if argument is None else argument
    if not isinstance(decimals, int) or decimals > MOST_DECIMALS:
        raise _WrongArgument
    literal = value if isinstance(value, str) else _number(value)
    if len(literal) > LONGEST_NUMBER or not JSON_NUMBER.fullmatch(literal):
        raise _CannotApply
    number = Decimal(literal)
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and -exponent <= decimals:
        return value
    rounded = number.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, Context(prec=LONGEST_NUMBER))
    return f"{rounded or rounded.copy_abs():f}"


def _number(value: Any) -> str:
    if not isinstance(value, int | Number) or isinstance(value, bool):
        raise _CannotApply
    return _scalar(value)


def _date(value: Any, argument: Argument, work: _Work) -> str:
    work.spend(DATE_WORK)
    layout = _text_argument(argument)
    if not isinstance(value, str | int | Number) or isinstance(value, bool):
        raise _CannotApply
    if isinstance(value, Number) or (isinstance(value, str) and UNIX_TIME.fullmatch(value)):
        value = float(value)
    if isinstance(value, str) and len(value) > LONGEST_DATE:
        raise _CannotApply
    try:
        return local_time.formatted(value, layout, work.zone)
    except ValueError:
        raise _CannotApply from None


FILTERS: dict[str, Callable[[Any, Argument, _Work], Any]] = {
    "default": _default,
    "upcase": _upcase,
    "downcase": _downcase,
    "capitalize": _capitalize,
    "truncate": _truncate,
    "join": _join,
    "map": _map,
    "size": _size,
    "first": _first,
    "last": _last,
    "round": _round,
    "date": _date,
    "where": _where,
}
