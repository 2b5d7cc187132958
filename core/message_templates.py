"""`fill`: a template's `{{ path | filter }}` placeholders with the values of a payload.

Pure. A template is read in one pass, always in linear time; nothing in a payload is evaluated or filled again.
Values are written up to the limit of the output, and the work of paths and filters is bounded. It never fails: a
placeholder that cannot be filled stays visible as written.
"""

import difflib
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
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

MAX_PATHS = 300  # of a payload, offered to the template's author
MAX_PATH_CHARACTERS = 200
MAX_KEPT_TEMPLATES = 200
MAX_KEPT_CHARACTERS = 1_000  # of a template that is kept as it was read
GUESS_WORK = 200_000  # comparing two texts costs about the product of their lengths

# Possessive quantifiers and atomic groups never backtrack. A `{{` inside a placeholder starts a new one, except in
# quotes after a bar; at most three openings can claim one quoted region, so matching is linear.
PLACEHOLDER = re.compile(
    r"""\{\{(?!\{)
    (?P<path> (?> (?: [^{}|]++ | \{(?!\{) | \}(?!\}) )* ) )
    (?P<filters> (?> (?: \| (?: [^{}|"']++ | "[^"]*+" | '[^']*+' | \{(?!\{) | \}(?!\}) )* )* ) )
    \}\}""",
    re.VERBOSE,
)
WRITTEN_ARGUMENT = r""" (?: "[^"]*+" | '[^']*+' | [0-9]{1,18}+ ) """
OTHER_ARGUMENT = r""" [^\s|:,"'{}] [^|:,"'{}]*+ """
ARGUMENT = re.compile(WRITTEN_ARGUMENT, re.VERBOSE)
WRITTEN_ALTERNATIVE = rf" {WRITTEN_ARGUMENT} (?= \s*+ (?: [,|] | \Z ) ) | {OTHER_ARGUMENT} "
ALTERNATIVE = re.compile(WRITTEN_ALTERNATIVE, re.VERBOSE)
FILTER = re.compile(
    rf"""\| \s*+ (?P<name> [^\s|:"']*+ ) \s*+
    (?> : \s*+ (?P<arguments> {WRITTEN_ARGUMENT} (?: \s*+ , \s*+ {WRITTEN_ARGUMENT} )? ) \s*+ (?=\||\Z)
      | : \s*+ (?P<other> {OTHER_ARGUMENT} (?> (?: , \s*+ (?: {WRITTEN_ALTERNATIVE} ) \s*+ )* ) )
        (?=\||\Z) )?
    (?P<surplus> (?: [^|"']++ | "[^"]*+" | '[^']*+' )* )""",
    re.VERBOSE,
)
WRITABLE = re.compile(r"(?!\s)[^{}|\r\n]+(?<!\s)")  # a path that a template can hold


class Filter(NamedTuple):
    """A filter as it is written behind a path."""

    name: str
    argument: Argument
    path: str | None  # in place of an argument: only `default` takes one
    call: Callable[[Any, Argument, Work], Any] | None  # None if it cannot be applied as it is written


class Placeholder(NamedTuple):
    """A placeholder of a template."""

    before: str  # the template's own text in front of it, from the placeholder before
    written: str
    path: str
    filters: tuple[Filter, ...]
    ends_in_path: bool  # its last default is a path: it must be a text, so that a misspelt path does not go unnoticed


class Template(NamedTuple):
    """A template as it was read."""

    placeholders: tuple[Placeholder, ...]
    rest: str  # the text behind the last placeholder


class Filled(NamedTuple):
    """The text, and the paths that the payload lacks, whose placeholders are in the text unless it was cut before."""

    text: str
    missing: tuple[str, ...]


class Stuck(NamedTuple):
    """The value of a placeholder that stays as it is written: the filter that cannot apply, if it has a path."""

    filter: str = ""
    is_costly: bool = False  # no work was left for the filter


def fill(template: str, payload: dict[str, Any], limit: int, work: Work | None = None) -> Filled:
    """The template with the values of a payload of `parse_event`, in at most `limit` characters."""
    texts, missing, _ = parts(template, payload, limit, work or Work())
    return Filled(cut("".join(texts), limit), missing)


def parts(template: str, payload: dict[str, Any], limit: int, work: Work) -> tuple[list[str], tuple[str, ...], bool]:
    """In turn the template's own text and a placeholder's; the missing paths; whether each placeholder was filled.

    The values have at most `limit` characters and one more together.
    """
    texts: list[str] = []
    missing: dict[str, None] = {}
    parsed, left, is_filled = read(template), limit + 1, True
    for placeholder, value in values(parsed, payload, work):
        if value is MISSING:
            missing[placeholder.path] = None
        if value is MISSING or isinstance(value, Stuck):
            text, is_filled = placeholder.written, False
        else:
            text = as_text(value, left)
            left -= len(text)
        texts += placeholder.before, text
    return [*texts, parsed.rest], tuple(missing), is_filled


def values(template: Template, payload: dict[str, Any], work: Work) -> Iterator[tuple[Placeholder, Any]]:
    """Each placeholder with its value, which may be `MISSING` or `Stuck`."""
    for placeholder in template.placeholders:
        yield placeholder, _value(placeholder, payload, work.begin(len(template.placeholders)))


def misused(placeholder: Placeholder) -> str | None:
    """The name of the first filter with a wrong argument; None if all are right."""
    wrong = (one.name for one in placeholder.filters if not _takes(one))
    return next(wrong, "default" if placeholder.ends_in_path else None)


def _takes(one: Filter) -> bool:
    try:
        _apply(one, None, {}, Work().begin())
    except CannotApply as fault:
        return not isinstance(fault, WrongArgument)
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
    """For each path that a payload lacks, the `known` path with the most similar last key, if any.

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
    for placeholder in read(template).placeholders:
        for one in placeholder.filters:
            if placeholder.path and one.name not in FILTERS:
                known = ", ".join(FILTERS)
                raise Refused(400, f'There is no filter "{one.name[:100]}": the filters are {known}.')


# --- a placeholder's value ----------------------------------------------------------------------------------


def _value(placeholder: Placeholder, payload: dict[str, Any], work: Work) -> Any:
    """The value to show for the placeholder, or `MISSING` or `Stuck`."""
    _, _, path, filters, ends_in_path = placeholder
    if not path:
        return Stuck()
    try:
        value = resolve(payload, path, work)
    except CannotApply:
        return MISSING  # no work is left to find it
    if ends_in_path:
        return Stuck("default")
    try:
        for one in filters:
            value = _apply(one, value, payload, work)
    except CannotApply as fault:
        return Stuck(one.name, isinstance(fault, OutOfWork))
    return value


def _apply(one: Filter, value: Any, payload: dict[str, Any], work: Work) -> Any:
    """The value behind the filter; `default: path` replaces an empty value with the path's value."""
    name, argument, path, call = one
    if call is None:
        raise WrongArgument
    work.spend(ITEM_WORK)
    if path:
        return resolve(payload, path, work) if is_empty(value) else value
    if value is MISSING and name != "default":
        return MISSING
    return call(value, argument, work)


# --- reading a template -------------------------------------------------------------------------------------


def read(template: str) -> Template:
    """The template's parts, cached unless it is long: an alert's events use the same template."""
    return _usual(template) if len(template) <= MAX_KEPT_CHARACTERS else _read(template)


def _read(template: str) -> Template:
    placeholders, end = list[Placeholder](), 0
    for found in PLACEHOLDER.finditer(template):
        filters = tuple(chain.from_iterable(map(_read_filter, FILTER.finditer(found["filters"]))))
        before = template[end : found.start()]
        defaults = [one for one in filters if one.name == "default"]
        ends_in_path = bool(defaults and defaults[-1].path)
        placeholders.append(Placeholder(before, found[0], found["path"].strip(), filters, ends_in_path))
        end = found.end()
    return Template(tuple(placeholders), template[end:])


_usual = lru_cache(maxsize=MAX_KEPT_TEMPLATES)(_read)


def _read_filter(found: re.Match[str]) -> Iterator[Filter]:
    """The filter as it is written; a `default` with several alternatives is one filter for each."""
    name, call = found["name"], None if found["surplus"] else FILTERS.get(found["name"])
    if found["other"] is None:
        arguments = tuple(map(_argument, ARGUMENT.findall(found["arguments"] or "")))
        yield Filter(name, arguments if len(arguments) > 1 else next(iter(arguments), None), None, call)
        return
    for written in ALTERNATIVE.findall(found["other"]):
        is_text = ARGUMENT.fullmatch(written) is not None
        argument, path = (_argument(written), None) if is_text else (None, written.strip())
        yield Filter(name, argument, path, call if name == "default" else None)


def _argument(written: str) -> str | int:
    return int(written) if written.isdecimal() else written[1:-1]
