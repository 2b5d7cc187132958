"""Rows of the history: consecutive notifications that are alike are one row, a run.

Runs are formed when a page is read, with the reader's filters; storage, search and downloads do not know them. Must
not know requests.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from core.local_time import local_day
from core.plans import history_begin
from models import Account
from process import clock
from store.history import Outline, outlines
from store.search import Span, Wanted, search

MAX_READ = 500  # notifications for one page; a longer run continues on the next page

Run = tuple[Outline, ...]  # newest first


class RunPage(NamedTuple):
    """Runs, newest first; the seq beyond which the next page begins; whether there is none."""

    runs: list[Run]
    last: int
    is_done: bool


def grouped(notifications: Iterable[Outline], zone: str) -> list[Run]:
    """The runs of these ordered notifications: alike, on one day in this time zone, and not waiting."""

    def likeness(one: Outline) -> tuple[object, ...]:
        alone = one.seq if one.is_waiting else None
        return one.title, one.api_key_seq, one.alert_seq, one.priority, local_day(one.created_at, zone), alone

    return [tuple(run) for _, run in groupby(notifications, likeness)]


def read(account: Account, span: Span, wanted: Wanted, limit: int) -> RunPage:
    """Up to `limit` runs of the notifications in this part of the history that pass the filters.

    Reads a bounded number of notifications: there may be fewer runs and more to come, and the last may be incomplete.
    """
    since, size = history_begin(account.plan, clock.now_ms()), limit + 1
    listed: list[Outline] = []
    while True:
        found = search(account.seq, span, since, size, wanted)
        listed += sorted(outlines(found.seqs), reverse=not span.is_upward)
        runs = grouped(listed, account.time_zone)
        if len(runs) > limit:
            return RunPage(_newest_first(runs[:limit], span), runs[limit - 1][-1].seq, False)
        if found.is_done or len(found.seqs) < size or len(listed) == MAX_READ:
            return RunPage(_newest_first(runs, span), found.last, found.is_done)
        span = span._replace(after=found.last) if span.is_upward else span._replace(before=found.last)
        size = min(2 * size, MAX_READ - len(listed))


def _newest_first(runs: list[Run], span: Span) -> list[Run]:
    return [run[::-1] for run in reversed(runs)] if span.is_upward else runs


def around(account: Account, seq: int, wanted: Wanted) -> Run:
    """The run that the notification with this seq is in; empty if it does not pass the filters."""
    newer = read(account, Span(after=seq - 1, is_upward=True), wanted, 1).runs
    older = read(account, Span(before=seq + 1), wanted, 1).runs
    if not newer or newer[0][-1].seq != seq:
        return ()
    return newer[0] + older[0][1:]
