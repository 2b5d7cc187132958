"""What others may name: an alert, an API key, a heartbeat or a rule, found by its id or its name.

Must not know requests.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from core import metric_rules
from core.definitions import KINDS
from models import ApiKey
from store.subjects import SUBJECTS
from wire.errors import Refused, existing

BY_NAME = re.compile(f"({'|'.join(SUBJECTS)}):(.+)", re.DOTALL)
MAX_SHOWN = 100  # characters of what was not found

FIND: dict[str, Callable[[int, str], Any]] = {kind.name: kind.find for kind in KINDS}
FIND["key"] = lambda account_seq, id_: existing(ApiKey.first("account_seq = ? AND id = ?", account_seq, id_))
LISTS: dict[str, Callable[[int], list[Any]]] = {kind.name: kind.of_account for kind in KINDS}
LISTS["key"] = lambda account_seq: [key for key in ApiKey.of_account(account_seq) if key.revoked_at is None]


def find(account_seq: int, what: str, id_: str) -> Any:
    """The account's alert, key, heartbeat or rule with that id; `Refused` (404) if there is none, or no such kind."""
    return existing(FIND.get(what))(account_seq, id_)


def named(
    account_seq: int, text: str, beside: str = "", others: Iterable[tuple[str, str, str]] = ()
) -> tuple[str, str]:
    """What a person names as `alert:`, `key:`, `heartbeat:` or `rule:` with an id or a name, and its id.

    A rule's name is that of its metric. `others`, each a kind, an id and a name, may be named, too. `Refused` (400)
    for other words, of which `beside` may be one, (404) if there is none, (409) if several have the name.
    """
    found = BY_NAME.fullmatch(text)
    if not found:
        words = f"{beside}, or one of" if beside else "one of"
        whats = ", ".join(f"{what}:NAME" for what in SUBJECTS)
        raise Refused(400, f'Write {words} {whats}, not "{text[:MAX_SHOWN]}".')
    what, name = found[1], found[2].strip()
    listed = {id_: (other,) for kind, id_, other in others if kind == what}
    listed |= {one.id: _names(one) for one in LISTS[what](account_seq)}
    alike = [id_ for id_ in listed if id_ == name] or [id_ for id_, names in listed.items() if name in names]
    if not alike:
        raise Refused(404, f'There is no {what} "{name[:MAX_SHOWN]}".')
    if len(alike) > 1:
        ids = ", ".join(alike[:5])
        raise Refused(409, f'{len(alike)} {what}s have the name "{name}": use an id, such as {ids}.')
    return what, alike[0]


def of_account(account_seq: int) -> list[tuple[str, list[tuple[str, str]]]]:
    """All that the account has of each kind: the id of each, and its name, in the order of the names."""
    found = {what: [(one.id, name_of(one)) for one in LISTS[what](account_seq)] for what in SUBJECTS}
    return [(what, sorted(some, key=lambda one: one[1].lower())) for what, some in found.items()]


def name_of(one: Any) -> str:
    """The name that pages show: for a rule, that of its metric."""
    return _names(one)[-1]


def _names(one: Any) -> tuple[str, ...]:
    return (one.metric_id, metric_rules.metric_title(one)) if hasattr(one, "metric_id") else (one.name,)
