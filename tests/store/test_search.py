"""Searching the history: looking in several rows at once finds what looking in one after the other finds."""

import random

import pytest

from models import sha256_of
from process import clock
from store import search
from store.database import transaction
from store.notifications import Notification
from store.senders import find_caller
from wire.notification import Content

PARTS = ("backup", "Backup", "ſtraße", "STRASSE", "\u212aelvin", "kelvin", "disk", " ", "\n", "ﬁne", "fine", "é", "x")


@pytest.mark.parametrize("seed", range(3))
def test_pieces_change_nothing_of_what_is_found(owner, monkeypatch, seed):
    sender = find_caller(sha256_of(owner.key))
    record(sender, random.Random(seed))
    spans = search.Span(), search.Span(is_upward=True)
    terms = [("backup",), ("strasse",), ("kelvin", "disk"), ("fine",), ("absent",), ("x", "é"), ("kb",), ()]
    asked = [(span, limit, some) for span in spans for limit in (1, 7, 1_000) for some in terms]
    found = [answers(sender, asked)]
    for name in ("MIN_PIECE", "MAX_PIECE"):
        monkeypatch.setattr(search, name, 1)
    found.append(answers(sender, asked))
    assert found[0] == found[1] and any(one.seqs for one in found[0])


def record(sender, chance):
    with transaction(sender.account_seq):
        for _ in range(150):
            title, body = ("".join(chance.choices(PARTS, k=chance.randrange(1, 4))) for _ in range(2))
            Notification.record(sender, Content(title, body), "delivered", "2026-11-21", clock.now_ms())


def answers(sender, asked):
    return [search.search(sender.account_seq, span, 0, limit, search.Wanted(terms)) for span, limit, terms in asked]
