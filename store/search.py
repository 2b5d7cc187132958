"""Searching the history: texts in title or body, in any case, with filters.

A search reads rows until it has found a page or has spent its budget, so that no search keeps others waiting.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from store.database import AFTER_ALL, run
from store.notification_days import QUARTER_HOUR
from store.notifications import AGED_FROM, STATUS
from wire.notification import DEFAULT_PRIORITY, TITLE_PREFIX

SEARCH_COST = 2_000_000  # the budget of one page, in ASCII characters that are read and compared: 2 ns each
ROW_COST = 600  # of a row, besides its characters, whether the filters exclude it or not
PAGE_COST = 500  # of a page of the file that only one of the rows is on
ROWS_OF_PAGE = 16  # about so many rows follow each other on a page
DAY_MS = 86_400_000
MIN_PIECE, MAX_PIECE = 8, 64  # rows whose texts are looked at together
MAX_FIND = 16  # characters of a term that `in` still finds in nearly linear time


class Wanted(NamedTuple):
    """The conditions of a search, which must all hold: texts in title or body, status, sender, priority, time."""

    terms: tuple[str, ...] = ()
    status: str | None = None
    alert_seq: int | None = None
    api_key_seq: int | None = None
    priority: int | None = None
    begin: int = 0
    until: int = AFTER_ALL
    is_bare: bool = False  # the prefix of all titles does not count


class Span(NamedTuple):
    """The seqs to search, both ends excluded; newest first, or oldest first with `is_upward`."""

    before: int = AFTER_ALL
    after: int = 0
    is_upward: bool = False


class Found(NamedTuple):
    """The seqs that a search found, in its order; the seq beyond which it goes on; whether it is done."""

    seqs: list[int]
    last: int
    is_done: bool


Row = tuple[int, str | None, str]  # that may match: its seq, its title (None if the filters exclude it), its body

ACCOUNTS = "account_seq = :account"
ALERTS = "alert_seq = :alert_seq AND +account_seq = :account"  # by the alert's index
FEW = "account_seq = :account AND n.status IN ('failed', 'held')"  # by the index of these
FILTERS = {
    "status": f"{STATUS} = :status",
    "priority": f"coalesce(priority, {DEFAULT_PRIORITY}) = :priority",
    "api_key_seq": "api_key_seq = :api_key_seq",
}


@cache
def candidates(where: str, is_upward: bool = False, *filters: str) -> str:
    """The statement that reads the rows of `where`, and looks at each with these filters; each takes its time."""
    title = f"CASE WHEN {' AND '.join(FILTERS[name] for name in filters)} THEN n.title END" if filters else "n.title"
    return (
        f"SELECT n.seq, {title}, n.body FROM notification n"
        f" WHERE {where} AND seq < :before AND seq > :after AND {AGED_FROM} >= :since"
        " AND created_at >= :begin AND created_at < :until AND is_digest = 0"
        f" ORDER BY seq {'ASC' if is_upward else 'DESC'} LIMIT :rows"
    )


def fold(text: str) -> str:
    """The form in which a search compares texts: case does not count (Unicode)."""
    return text.casefold()


class _Term:
    """A text that is looked for, in time that is linear in the text that it is looked for in.

    `in` takes up to 40 times as long for a long needle that repeats itself; a regular expression never does.
    """

    def __init__(self, term: str) -> None:
        self._needle = fold(term)
        self._find = re.compile(re.escape(self._needle)).search if len(self._needle) > MAX_FIND else None

    def is_in(self, text: str) -> bool:
        """Whether a folded text holds it."""
        return self._needle in text if self._find is None else self._find(text) is not None


def search(account_seq: int, span: Span, since: int, limit: int, wanted: Wanted) -> Found:
    """Find up to `limit` notifications with seqs in `span` and not older than time `since`.

    Reads a bounded number of rows: it may find fewer than `limit`, even none, and not be done.
    """
    terms, read, cost = list(map(_Term, wanted.terms)), 0, 0
    prefix = TITLE_PREFIX if wanted.is_bare else ""
    seqs: list[int] = []
    values = {"account": account_seq, "since": since, "rows": SEARCH_COST // ROW_COST}
    last = span.after if span.is_upward else span.before
    rows = run(_statement(wanted, span.is_upward), {**values, **span._asdict(), **wanted._asdict()})
    for piece in _pieces(rows):
        without = _cost_without_hit(terms, piece)
        if without:
            end = piece[-1][0]
            cost += without + _reading_cost(len(piece), last, end)
            last, read, piece = end, read + len(piece), []
        for seq, title, body in piece:
            cost += _reading_cost(1, last, seq)
            if title is None:
                cost += len(body)
            else:
                cost += _folding_cost(title) + _folding_cost(body)
                is_hit, further = _has_all(terms, fold(title.removeprefix(prefix)), fold(body))
                cost += further
                if is_hit and len(seqs) == limit:
                    return Found(seqs, seqs[-1], False)
                if is_hit:
                    seqs.append(seq)
            last, read = seq, read + 1
            if cost > SEARCH_COST:
                break
        if cost > SEARCH_COST:
            return Found(seqs, last, False)
    return Found(seqs, last, read < values["rows"])


def _pieces(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows, a few at a time: few at first, as a page is often full soon."""
    left, size = iter(rows), MIN_PIECE
    while piece := list(islice(left, size)):
        yield piece
        size = min(MAX_PIECE, size * 2)


def _cost_without_hit(terms: list[_Term], piece: list[Row]) -> int:
    """The cost of searching all texts at once, if one of the terms is nowhere; else 0.

    That takes half as long as looking in one row after the other. Folding goes from character to character, so it
    finds all that is in a text. Texts beyond ASCII have a budget of their own and are looked at one by one.
    """
    if not terms:
        return 0
    _, titles, bodies = zip(*piece, strict=True)
    text = "\n".join(filter(None, titles + bodies))
    if not text.isascii() or _has_all(terms, fold(text), "")[0]:
        return 0
    return len(text)


FIRST_ID = "SELECT min(id) FROM notification WHERE id >= ? AND id < ?"
LAST_ID = "SELECT max(id) FROM notification WHERE id >= ? AND id < ?"
FIRST_SEQ = "SELECT min(seq) FROM notification WHERE id >= ? AND id < ?"
LAST_SEQ = "SELECT max(seq) FROM notification WHERE id >= ? AND id < ?"


def span_between(begin: int, until: int) -> Span:
    """The seqs of all notifications made from `begin` until before `until`, and perhaps of others.

    An id begins with its time. The first and the last day are read whole, because the clock may have been set back.
    """
    asked = f"{begin:012x}", f"{until:012x}"
    first, last = run(FIRST_ID, asked).fetchone()[0], run(LAST_ID, asked).fetchone()[0]
    if first is None:
        return Span(before=0)
    of_first_day = first, f"{min(until, int(first[:12], 16) + DAY_MS):012x}"
    of_last_day = f"{max(begin, int(last[:12], 16) - DAY_MS):012x}", asked[1]
    return Span(run(LAST_SEQ, of_last_day).fetchone()[0] + 1, run(FIRST_SEQ, of_first_day).fetchone()[0] - 1)


FAILED = (
    f"SELECT {QUARTER_HOUR} AS start, count(*) FROM notification n WHERE {FEW} AND {STATUS} = 'failed'"
    " AND seq > :after AND created_at >= :since AND is_digest = 0 GROUP BY start"
)


def count_failed_by_quarter_hour(account_seq: int, since: int) -> list[tuple[int, int]]:
    """Count the failed notifications made since then: the start (ms) of a quarter of an hour, and how many."""
    values = {"account": account_seq, "since": since, "after": span_between(since, AFTER_ALL).after}
    return run(FAILED, values).fetchall()


def _statement(wanted: Wanted, is_upward: bool) -> str:
    """The statement that reads the fewest rows."""
    filters = (name for name in FILTERS if getattr(wanted, name) is not None)
    few_or_all = FEW if wanted.status in ("failed", "held") else ACCOUNTS
    return candidates(few_or_all if wanted.alert_seq is None else ALERTS, is_upward, *filters)


def _has_all(terms: list[_Term], title: str, body: str) -> tuple[bool, int]:
    """Whether each term is in one of the folded texts, and the cost of looking for more than the first."""
    for place, term in enumerate(terms):
        if not (term.is_in(title) or term.is_in(body)):
            return False, place * (len(title) + len(body))
    return True, max(0, len(terms) - 1) * (len(title) + len(body))


def _reading_cost(rows: int, last: int, end: int) -> int:
    """The cost of reading this number of rows with seqs after `last` up to `end`.

    Where the account's rows lie scattered among those of others, each is on a page of its own.
    """
    return ROW_COST * rows + PAGE_COST * min(rows, abs(end - last) // ROWS_OF_PAGE)


def _folding_cost(text: str) -> int:
    """The cost of folding a text; characters beyond ASCII take about ten times as long."""
    return len(text) if text.isascii() else 10 * len(text)
