"""Rows of the history: consecutive notifications that are alike are one, and none is lost or listed twice."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import runs
from core.runs import grouped
from process.clock import HOUR_MS
from store.history import Outline
from store.search import Found, Span, Wanted
from tests.support.rows import each
from tests.support.times import utc

ZONE = "Europe/Berlin"
NOON = utc("2026-11-21T12:00")
ALIKE = Outline(1, "id", NOON, "MCP - Door", 3, 7, None, "delivered", 0)
OTHERS = {
    "title": "MCP - Window",
    "priority": 4,
    "api_key_seq": 8,
    "alert_seq": 1,
    "is_waiting": 1,
    "created_at": NOON - 24 * HOUR_MS,
}

kinds = st.tuples(
    st.sampled_from(["a", "b"]), st.sampled_from([3, 5]), st.sampled_from([1, 2]), st.sampled_from([0, 0, 0, 1])
)
some = settings(max_examples=40, deadline=None)
histories = st.lists(st.tuples(kinds, st.sampled_from([0, 0, 0, HOUR_MS, 7 * HOUR_MS])), max_size=40)


def outlines_of(drawn):
    """The drawn history, newest first: each as long before the one that follows it as was drawn."""
    made, at = [], NOON
    for place, ((title, priority, key, waits), pause) in enumerate(drawn):
        at -= pause
        seq = len(drawn) - place
        made.append(Outline(seq, str(seq), at, title, priority, key, None, "delivered", waits))
    return made


def flat(some):
    return [one for run in some for one in run]


@some
@given(histories)
def test_consecutive_alike_notifications_are_one_run_and_no_others_are(drawn):
    found = grouped(outlines_of(drawn), ZONE)
    assert all(grouped(run, ZONE) == [run] for run in found)
    assert all(len(grouped((before[-1], after[0]), ZONE)) == 2 for before, after in pairwise(found))


@each("field", OTHERS)
def test_a_changed_title_source_priority_or_day_or_a_waiting_notification_begins_a_run(field):
    other = ALIKE._replace(**{field: OTHERS[field]})
    assert len(grouped([ALIKE, ALIKE], ZONE)) == 1
    assert len(grouped([ALIKE, other], ZONE)) == len(grouped([other, ALIKE], ZONE)) == 2


def test_two_waiting_notifications_are_two_rows():
    waiting = [ALIKE._replace(seq=seq, is_waiting=1) for seq in (2, 1)]
    assert len(grouped(waiting, ZONE)) == 2


@each("zone, rows", [("Europe/Berlin", 2), ("UTC", 1)])
def test_a_day_ends_at_midnight_of_the_accounts_zone(zone, rows):
    late, early = utc("2026-11-21T22:59"), utc("2026-11-21T23:01")
    assert len(grouped([ALIKE._replace(created_at=early), ALIKE._replace(created_at=late)], zone)) == rows


class Stored:
    """A history in place of the database's: a search reads so many at most."""

    def __init__(self, monkeypatch, history, budget):
        self.history, self.budget = history, budget
        monkeypatch.setattr(runs, "search", self.search)
        monkeypatch.setattr(runs, "outlines", lambda seqs: [one for one in history if one.seq in seqs])
        monkeypatch.setattr(runs, "MAX_READ", 12)

    def search(self, _account_seq, span, _since, limit, _wanted):
        left = [one.seq for one in self.history if span.after < one.seq < span.before]
        left = left[::-1] if span.is_upward else left
        read = left[: min(limit, self.budget)]
        last = read[-1] if read else (span.after if span.is_upward else span.before)
        return Found(read, last, read == left)

    def pages(self, limit, span):
        """All pages, from the one with this span on."""
        account = SimpleNamespace(seq=1, plan="pro", time_zone=ZONE)
        found = []
        while True:
            page = runs.read(account, span, Wanted(), limit)
            found.append(page.runs)
            assert len(page.runs) <= limit
            if page.is_done:
                return found
            span = span._replace(after=page.last) if span.is_upward else span._replace(before=page.last)


@some
@given(histories, st.integers(1, 5), st.integers(1, 12))
def test_joined_pages_equal_the_history(drawn, limit, budget):
    history = outlines_of(drawn)
    with pytest.MonkeyPatch.context() as patch:
        stored = Stored(patch, history, budget)
        down = stored.pages(limit, Span())
        up = stored.pages(limit, Span(is_upward=True))
    assert flat(flat(down)) == history
    assert flat(flat(reversed(up))) == history


@some
@given(histories, st.integers(1, 5))
def test_a_page_splits_only_very_long_runs(drawn, limit):
    history = outlines_of(drawn)
    with pytest.MonkeyPatch.context() as patch:
        stored = Stored(patch, history, 12)
        patch.setattr(runs, "MAX_READ", 100)
        stored.budget = 100
        assert flat(stored.pages(limit, Span())) == grouped(history, ZONE)
        assert flat(reversed(stored.pages(limit, Span(is_upward=True)))) == grouped(history, ZONE)
