"""Searching the history: text in title or body, in any case, with filters. Callers pass the time.

A search reads rows until it has found a page or has spent its budget, so that no search keeps others waiting.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from store.database import AFTER_ALL, run
from store.notifications import AGED_FROM, STATUS
from store.rows import columns
from wire.notification import DEFAULT_PRIORITY

SEARCH_COST = 2_500_000  # the budget of one page, in folded ASCII characters
ROW_COST = 800  # of a row whose text is searched, besides its characters
EXCLUDED_ROW_COST = 400  # of a row that the filters exclude
MAX_FIND = 16  # characters of a term that `in` still finds in nearly linear time


class Wanted(NamedTuple):
    """What a search looks for, all of it: text in title or body, a status, an alert, a priority, before `until`."""

    term: str = ""
    status: str | None = None
    alert_seq: int | None = None
    priority: int | None = None
    until: int = AFTER_ALL


class Found(NamedTuple):
    """The seqs that a search found, newest first; the seq before which it goes on; whether it is done."""

    seqs: list[int]
    before: int
    is_done: bool


class Candidate(NamedTuple):
    """A row that may be what is looked for; `title` is None if the filters exclude it."""

    seq: int
    title: str | None
    body: str


CANDIDATES = (
    f"SELECT {columns(Candidate, 'n', title='CASE WHEN n.is_wanted THEN n.title END')} FROM (SELECT seq, title, body,"
    f" ({STATUS} = :status OR :status IS NULL)"
    f" AND (coalesce(priority, {DEFAULT_PRIORITY}) = :priority OR :priority IS NULL)"
    " AS is_wanted FROM notification n"
    f" WHERE {{}} AND seq < :before AND {AGED_FROM} >= :since AND created_at < :until AND is_digest = 0"
    " ORDER BY seq DESC LIMIT :rows) n"
)
OF_ACCOUNT = CANDIDATES.format("account_seq = :account")
OF_ALERT = CANDIDATES.format("alert_seq = :alert_seq AND +account_seq = :account")  # by the alert's index
OF_FEW = CANDIDATES.format("account_seq = :account AND n.status IN ('failed', 'held')")  # by the index of these


def search(account_seq: int, before: int, since: int, limit: int, wanted: Wanted) -> Found:
    """Find up to `limit` notifications older than seq `before` and not older than time `since`.

    Reads a bounded number of rows: it may find less than `limit`, even none, and not be done.
    """
    is_in, seqs, read, cost = _contains(fold(wanted.term)), list[int](), 0, 0
    values = {"account": account_seq, "before": before, "since": since, "rows": SEARCH_COST // EXCLUDED_ROW_COST}
    for seq, title, body in run(_statement(wanted), {**values, **wanted._asdict()}):
        cost += EXCLUDED_ROW_COST if title is None else ROW_COST + _folding_cost(title) + _folding_cost(body)
        if title is not None and (is_in(fold(title)) or is_in(fold(body))):
            if len(seqs) == limit:
                return Found(seqs, seqs[-1], False)
            seqs.append(seq)
        before, read = seq, read + 1
        if cost > SEARCH_COST:
            return Found(seqs, before, False)
    return Found(seqs, before, read < values["rows"])


def _statement(wanted: Wanted) -> str:
    """The statement that reads the fewest rows."""
    if wanted.alert_seq is not None:
        return OF_ALERT
    return OF_FEW if wanted.status in ("failed", "held") else OF_ACCOUNT


def fold(text: str) -> str:
    """The form in which a search compares texts: case does not count (Unicode)."""
    return text.casefold()


def _contains(needle: str) -> Callable[[str], bool]:
    """Whether a folded text holds `needle`, in time that is linear in the text.

    `in` takes up to 40 times as long for a long needle that repeats itself; a regular expression never does.
    """
    if len(needle) <= MAX_FIND:
        return lambda text: needle in text
    find = re.compile(re.escape(needle)).search
    return lambda text: find(text) is not None


def _folding_cost(text: str) -> int:
    """The cost of folding a text; characters beyond ASCII take about ten times as long."""
    return len(text) if text.isascii() else 10 * len(text)
