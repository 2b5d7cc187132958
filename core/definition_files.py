"""The files of `pocketbell apply` and `pocketbell export`. Must not know where a file comes from."""

import tomllib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

from core import definitions
from core.definitions import KINDS, Fields, Kind, Known
from core.value_text import cut
from models import Account
from store.database import trial
from wire.errors import Refused
from wire.toml_text import Lines, lines_of, toml_string

ACCOUNT = "account"
KIND_OF = {kind.name: kind for kind in KINDS}
ONLY_IF_CHANGED = ("preset", "isActive")  # to set these again does more than to keep them
MAX_SHOWN = 50  # characters of a value in a change


class Wanted(NamedTuple):
    """A table of a file: which of its kind it is there, and its fields, checked."""

    kind: Kind
    place: int
    fields: Fields


class File:
    """A file of definitions, checked as far as that needs no account; `Refused` (400) names the line."""

    def __init__(self, text: str) -> None:
        text = text.removeprefix("\ufeff") + "\n"  # without it, tomllib names no place in the last line
        try:
            tables = tomllib.loads(text)
        except RecursionError:
            raise Refused(400, "Arrays or tables are too deep within each other.") from None
        except ValueError as error:
            last = text.rstrip().count("\n") + 1
            said = str(error).replace("at end of document", f"at line {last}, the last one")
            raise Refused(400, f"This is not TOML: {said}.") from None
        self._text = text
        for name, value in tables.items():
            with self.line(name):
                _check_form(name, value)
        with self.line(ACCOUNT):
            self.account = definitions.checked_account(tables.get(ACCOUNT, {}))
        self.wanted = dict[Known, Wanted]()
        for kind in KINDS:
            for place, fields in enumerate(tables.get(kind.name, ())):
                with self.line(kind.name, place):
                    self._add(kind, place, fields)

    @cached_property
    def _lines(self) -> Lines:
        return lines_of(self._text)

    def _add(self, kind: Kind, place: int, sent: Fields) -> None:
        fields = kind.checked(sent)
        known = kind.known(fields)
        if before := self.wanted.get(known):
            line = self._lines.get((kind.name, before.place, ""), 1)
            raise Refused(400, f"{' '.join(known)} is in line {line} already.", field=kind.known_by[0])
        self.wanted[known] = Wanted(kind, place, fields)

    @contextmanager
    def line(self, name: str, place: int = 0) -> Iterator[None]:
        """Let a refusal of this table say the line of the field, or of the table if that does not have it."""
        try:
            yield
        except Refused as refused:
            line = self._lines.get((name, place, refused.field)) or self._lines.get((name, place, ""), 1)
            raise Refused(refused.status, f"Line {line}, {name}: {refused.message}") from None


def _check_form(name: str, value: Any) -> None:
    if name != ACCOUNT and name not in KIND_OF:
        known = ", ".join(f"[[{kind}]]" for kind in KIND_OF)
        raise Refused(400, f"This is not known: a file has {known} and [{ACCOUNT}].")
    is_many = isinstance(value, list) and all(isinstance(one, dict) for one in value)
    if not (isinstance(value, dict) if name == ACCOUNT else is_many):
        raise Refused(400, f"This must be a table: {f'[{name}]' if name == ACCOUNT else f'[[{name}]]'}.")


def apply(account: Account, file: File, now: int, prune: bool = False, dry_run: bool = False) -> list[str]:
    """Make the account as the file says, all or nothing, and return a line for each change.

    With `prune`, what the file does not name is removed; with `dry_run`, nothing changes. `Refused` names the line.
    """
    said, before = list[str](), definitions.account_fields(account)
    change_account = definitions.account_change(account, file.account, now)  # may take long
    with trial(account.seq, dry_run):
        if differences := _differences(before, definitions.account_fields(change_account())):
            said.append(f"{ACCOUNT}: {differences}")
        there = _by_known(account)
        if prune:
            said += _removed(account, file, there)
        for known, one in file.wanted.items():
            with file.line(one.kind.name, one.place):
                said += _put(account, one, there.get(known, []), now)
    return said


def _removed(account: Account, file: File, there: dict[Known, list[Any]]) -> Iterator[str]:
    for known, found in there.items():
        if known not in file.wanted:
            for one in found:
                KIND_OF[known[0]].delete(account.seq, one.id)
                yield f"{' '.join(known)}: remove"


def _put(account: Account, wanted: Wanted, found: list[Any], now: int) -> Iterator[str]:
    kind, _, fields = wanted
    label, old = " ".join(kind.known(fields)), kind.only(found)
    if old is None:
        kind.create(account, fields, now)
        yield f"{label}: make"
        return
    before = _defined(kind, old)
    changed = {field for field, value in fields.items() if (None if value == "" else value) != before.get(field)}
    if changed:
        given = {field: value for field, value in fields.items() if field in changed or field not in ONLY_IF_CHANGED}
        after = _defined(kind, kind.update(account.seq, old.id, given, now))
        if differences := _differences(before, after):
            yield f"{label}: {differences}"


def _by_known(account: Account) -> dict[Known, list[Any]]:
    """The definitions that the account has, the oldest of a kind first."""
    found = defaultdict[Known, list[Any]](list)
    for kind in KINDS:
        for one in reversed(kind.of_account(account.seq)):
            found[kind.known(kind.fields_of(one))].append(one)
    return found


def _defined(kind: Kind, one: Any) -> Fields:
    """The fields as the owner set them: a pause after a flood is a state, which no file has or ends."""
    is_paused = kind is definitions.ALERT and one.paused_at is not None
    return kind.fields_of(one) | ({"isActive": True} if is_paused else {})


def _differences(before: Fields, after: Fields) -> str:
    """`graceS 600 → 900`, for each field that changed."""
    fields = [field for field in before | after if before.get(field) != after.get(field)]
    return ", ".join(f"{field} {_shown(before.get(field))} → {_shown(after.get(field))}" for field in fields)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else cut(str(value), MAX_SHOWN)


def text_of(account: Account) -> str:
    """The account's definitions and settings as a file; `Refused` (409) if two of a kind are known by the same."""
    tables = [_table(f"[{ACCOUNT}]", definitions.account_fields(account))]
    for known, found in _by_known(account).items():
        kind = KIND_OF[known[0]]
        try:
            one = kind.only(found)
        except Refused as refused:
            raise Refused(409, f"{' '.join(known)}: {refused.message}") from None
        tables.append(_table(f"[[{kind.name}]]", _defined(kind, one)))
    return "\n".join(tables)


def _table(header: str, fields: Fields) -> str:
    """A table, in which an empty text says that there is none."""
    lines = (f"{field} = {_toml(value)}\n" for field, value in fields.items())
    return f"{header}\n{''.join(lines)}"


def _toml(value: Any) -> str:
    if isinstance(value, (bool, int)):
        return str(value).lower()
    return toml_string(value or "")
