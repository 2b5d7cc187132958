"""Searching the history: looking in several rows at once finds what looking in one after the other finds."""

import random

import pytest

from models import sha256_of
from process import clock
from store import notifications, search
from store.database import run, transaction
from store.senders import find_caller
from wire.notification import Content

PARTS = ("backup", "Backup", "ſtraße", "STRASSE", "\u212aelvin", "kelvin", "disk", " ", "\n", "ﬁne", "fine", "é", "x")


@pytest.mark.parametrize("seed", range(3))
def test_a_search_in_pieces_finds_the_same(owner, monkeypatch, seed):
    sender = find_caller(sha256_of(owner.key), clock.now_ms())
    record(sender, random.Random(seed))
    spans = search.Span(), search.Span(is_upward=True)
    terms = [("backup",), ("strasse",), ("kelvin", "disk"), ("fine",), ("absent",), ("x", "é"), ("kb",), ()]
    wanted = [search.Wanted(some, priority=priority) for some in terms for priority in (None, 1)]
    asked = [(span, limit, one) for span in spans for limit in (1, 7, 1_000) for one in wanted]
    found = [answers(sender, asked)]
    for name in ("MIN_PIECE", "MAX_PIECE"):
        monkeypatch.setattr(search, name, 1)
    found.append(answers(sender, asked))
    assert found[0] == found[1] and any(one.seqs for one in found[0])


@pytest.mark.parametrize("is_upward", [False, True])
def test_a_page_reads_fewer_rows_where_they_are_scattered_among_other_accounts(owner, monkeypatch, is_upward):
    sender = find_caller(sha256_of(owner.key), clock.now_ms())
    record(sender, random.Random(1), 200)
    span = search.Span(is_upward=is_upward)
    monkeypatch.setattr(search, "SEARCH_COST", 40 * (search.ROW_COST + search.PAGE_COST))
    together = passed(sender, span)
    with transaction(sender.account_seq):
        run("UPDATE notification SET seq = -100 * seq")  # first out of the way of the others
        run("UPDATE notification SET seq = -seq")
    scattered = passed(sender, span)
    assert sum(together) == sum(scattered) == 200
    assert max(scattered) <= 41 < max(together) <= 75, (together, scattered)


def passed(sender, span):
    """How many rows each page of a search passes over, until it is done."""
    numbers, found = [], search.Found([], 0, False)
    while not found.is_done:
        (found,) = answers(sender, [(span, 50, search.Wanted(("absent",)))])
        begin, end = sorted((span.after if span.is_upward else span.before, found.last))
        within = "seq >= ? AND seq < ?" if not span.is_upward else "seq > ? AND seq <= ?"
        numbers.append(run(f"SELECT count(*) FROM notification WHERE {within}", (begin, end)).fetchone()[0])
        span = span._replace(after=found.last) if span.is_upward else span._replace(before=found.last)
    return numbers


def record(sender, chance, number=150):
    with transaction(sender.account_seq):
        for _ in range(number):
            title, body = ("".join(chance.choices(PARTS, k=chance.randrange(1, 4))) for _ in range(2))
            content = Content(title, body, priority=chance.choice((None, 1)))
            notifications.record(sender, content, "delivered", "2026-11-21", clock.now_ms())


def answers(sender, asked):
    return [search.search(sender.account_seq, span, 0, limit, wanted) for span, limit, wanted in asked]
