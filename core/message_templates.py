"""`fill`: a template's `{{ path | filter }}` placeholders with the values of a payload (CONTRACT 4, templates).

Pure. One pass reads the template, in linear time whatever it holds; nothing in a payload is evaluated or filled in
turn. Building stops at the limit of the output, and the work of paths and filters is bounded. It never fails: what
cannot be filled stays visible as it was written.
"""

import difflib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from core.template_filters import (
    FILTERS,
    ITEM_WORK,
    MISSING,
    Argument,
    CannotApply,
    OutOfWork,
    Work,
    WrongArgument,
    is_empty,
    resolve,
)
from core.value_text import as_text, cut
from wire.errors import Refused

MAX_PATHS = 300  # of a payload, offered to whoever writes a template
MAX_PATH_CHARACTERS = 200
MAX_USUAL_CHARACTERS = 200  # of the filters of a placeholder
GUESS_WORK = 200_000  # comparing two texts costs about the product of their lengths

# Possessive quantifiers never backtrack. A `{{` inside a placeholder starts a new one, except in quotes after a bar;
# at most three openings can claim one quoted region, so matching is linear.
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


class Filter(NamedTuple):
    """A filter as it is written behind a path."""

    name: str
    argument: Argument
    path: str | None  # what is there in the place of an argument: only `default` takes it
    has_surplus: bool  # whether something that is no argument follows


class Filled(NamedTuple):
    """The text, and the paths that the payload lacks: those placeholders are still in it."""

    text: str
    missing: tuple[str, ...]


class Stuck(NamedTuple):
    """The value of a placeholder that stays as it is written: the filter that cannot apply, if it has a path.

    `is_costly` when no work was left for the filter.
    """

    filter: str = ""
    is_costly: bool = False


def fill(template: str, payload: dict[str, Any], limit: int, zone: str = "UTC") -> Filled:
    """The template with the payload's values (as `parse_event` gives them), in at most `limit` characters.

    Dates are shown in `zone`.
    """
    missing: dict[str, None] = {}
    parts, length, end = [], 0, 0
    for placeholder, value in values(template, payload, zone):
        parts.append(template[end : placeholder.start()])
        if value is MISSING:
            missing[placeholder["path"].strip()] = None
        shown = placeholder[0] if value is MISSING or isinstance(value, Stuck) else as_text(value, limit + 1)
        parts.append(shown)
        length += len(parts[-2]) + len(shown)
        end = placeholder.end()
        if length > limit:
            break
    parts.append(template[end:])
    return Filled(cut("".join(parts), limit), tuple(missing))


def values(template: str, payload: dict[str, Any], zone: str) -> Iterator[tuple[re.Match[str], Any]]:
    """Each placeholder with its value, which may be `MISSING` or `Stuck`."""
    work = Work(zone, template.count("{{") or 1)
    for placeholder in PLACEHOLDER.finditer(template):
        yield placeholder, _value(placeholder, payload, work.begin())


def misused(placeholder: re.Match[str]) -> str | None:
    """The first filter that takes no such argument, whatever its value is; None if all take theirs."""
    filters = _filters(placeholder["filters"])
    wrong = (one.name for one in filters if not _takes(one))
    return next(wrong, "default" if _ends_in_path(filters) else None)


def _takes(one: Filter) -> bool:
    try:
        _apply(one, None, {}, Work("UTC", 1).begin())
    except WrongArgument:
        return False
    except CannotApply:
        return True
    return True


def paths(payload: dict[str, Any]) -> list[str]:
    """At most `MAX_PATHS` paths in a payload, as a template can name them; of an array, the first two items."""
    found, waiting = list[str](), deque[tuple[str, Any]]([("", payload)])
    while waiting and len(found) < MAX_PATHS:
        path, value = waiting.popleft()
        if path:
            found.append(path)
        children = list(value.items()) if isinstance(value, dict) else []
        if isinstance(value, list):
            children = [(str(place), item) for place, item in enumerate(value[:2])]
        named = ((f"{path}.{key}" if path else key, child) for key, child in children[:MAX_PATHS])
        waiting.extend(
            (name, child) for name, child in named if len(name) <= MAX_PATH_CHARACTERS and WRITABLE.fullmatch(name)
        )
    return found


def likely_paths(missing: Iterable[str], known: list[str]) -> dict[str, str | None]:
    """For each path that a payload lacks, the `known` path that was perhaps meant, judged by the last keys.

    When there is too much to compare, the later paths get no guess.
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
    """Raise `Refused` (400) for a filter that does not exist."""
    for placeholder in PLACEHOLDER.finditer(template):
        for one in _filters(placeholder["filters"]):
            if placeholder["path"].strip() and one.name not in FILTERS:
                known = ", ".join(FILTERS)
                raise Refused(400, f'There is no filter "{one.name[:100]}": the filters are {known}.')


# --- a placeholder's value ----------------------------------------------------------------------------------


def _value(placeholder: re.Match[str], payload: dict[str, Any], work: Work) -> Any:
    """What to show for the placeholder: a value, `MISSING` or `Stuck`."""
    path = placeholder["path"].strip()
    if not path:
        return Stuck()
    try:
        value = resolve(payload, path, work)
    except CannotApply:
        return MISSING  # no work is left to find it
    filters = _filters(placeholder["filters"])
    if _ends_in_path(filters):
        return Stuck("default")
    try:
        for one in filters:
            value = _apply(one, value, payload, work)
    except CannotApply as fault:
        return Stuck(one.name, isinstance(fault, OutOfWork))
    return value


def _ends_in_path(filters: tuple[Filter, ...]) -> bool:
    """Whether the last default is a path. It must be a text, so that a misspelt path does not go unnoticed."""
    defaults = [one for one in filters if one.name == "default"]
    return bool(defaults and defaults[-1].path)


def _apply(one: Filter, value: Any, payload: dict[str, Any], work: Work) -> Any:
    """The value behind the filter; `default: path` replaces an empty value with the one at that path."""
    known = FILTERS.get(one.name)
    if known is None or one.has_surplus or (one.path and one.name != "default"):
        raise WrongArgument
    work.spend(ITEM_WORK)
    if one.path:
        return resolve(payload, one.path, work) if is_empty(value) else value
    if value is MISSING and one.name != "default":
        return MISSING
    return known(value, one.argument, work)


def _filters(written: str) -> tuple[Filter, ...]:
    """The filters behind a path; usual ones are kept, as an alert's events are filled into the same template."""
    return _usual_filters(written) if len(written) <= MAX_USUAL_CHARACTERS else _read_filters(written)


def _read_filters(written: str) -> tuple[Filter, ...]:
    return tuple(map(_read_filter, FILTER.finditer(written)))


def _read_filter(one: re.Match[str]) -> Filter:
    arguments = tuple(map(_argument, ARGUMENT.findall(one["arguments"] or "")))
    argument = arguments if len(arguments) > 1 else next(iter(arguments), None)
    return Filter(one["name"], argument, (one["other"] or "").strip() or None, bool(one["surplus"]))


def _argument(written: str) -> str | int:
    return int(written) if written.isdecimal() else written[1:-1]


_usual_filters = lru_cache(maxsize=500)(_read_filters)
