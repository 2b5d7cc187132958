"""Notifications with `deliverAt`."""

import pytest

from core import retries, scheduled
from store import database
from store import scheduled as queries
from tests.support.alarms import bodies, detail, every, rung, send_at
from tests.support.devices import subscribe
from tests.support.holding import MORNING, held, statuses
from tests.support.postgresql import sqlite_only
from tests.support.rows import each
from tests.support.tables import copy_first_row
from tests.support.times import DAY_S, HOUR_S

HOUR_MS = HOUR_S * 1000
BY_ACCOUNT = "notification_scheduled_of_account"


@pytest.fixture
def later(owner, browser, moved_clock):
    """The id of a notification that is delivered in an hour."""
    return send_at(owner, moved_clock.ms + HOUR_MS)


def test_it_is_held_until_then_and_goes_out_at_once(owner, browser, later, passes, moved_clock):
    sent_at = moved_clock.ms
    assert detail(owner, later) == {
        "id": later,
        "title": "MCP - Later",
        "body": "later",
        "status": "held",
        "createdAt": sent_at,
        "deliverAt": sent_at + HOUR_MS,
        "deliveries": [],
    }
    passes(HOUR_S - 1)
    assert (owner.listed()[0]["status"], browser.pushes) == ("held", [])
    passes(1)
    assert (owner.listed()[0]["status"], bodies(browser)) == ("delivered", ["later"])
    passes(DAY_S)
    assert len(browser.pushes) == 1


def test_its_release_wakes_the_retries(service, owner, later, moved_clock):
    moved_clock.advance(HOUR_S)
    retries.batches.due.clear()
    assert not scheduled.release_due(moved_clock.ms - 1) and not retries.batches.due.is_set()
    scheduled.release_due(moved_clock.ms)
    assert retries.batches.due.is_set()
    assert owner.listed()[0]["status"] == "pending"


def test_it_goes_to_the_devices_that_there_are_then(owner, push_service, browser, later, passes):
    other = subscribe(owner, push_service)
    passes(HOUR_S)
    assert (bodies(browser), bodies(other)) == (["later"], ["later"])


@pytest.mark.parametrize("priority, pushed", [(1, 0), (2, 0), (4, 1)])
def test_its_priority_says_to_which_devices_it_goes(service, owner, browser, passes, moved_clock, priority, pushed):
    device = owner.get("/devices").json["devices"][0]["id"]
    service.flask("device", "set", "owner@example.org", device, "--min-priority", "4")
    id_ = send_at(owner, moved_clock.ms + HOUR_MS, priority=priority)
    passes(HOUR_S)
    assert (detail(owner, id_)["status"], len(browser.pushes)) == ("delivered", pushed)


def test_quiet_hours_do_not_hold_it(owner, browser, night, passes, moved_clock):
    send_at(owner, moved_clock.ms + HOUR_MS)
    passes(HOUR_S)
    assert bodies(browser) == ["later"]


def test_a_digest_does_not_take_it_along(service, owner, browser, night, until, works, moved_clock):
    id_ = send_at(owner, moved_clock.ms + 24 * HOUR_MS)
    held(service.alert(), "a", "b")
    until(MORNING)
    works()
    assert len(browser.messages) == 1
    assert (statuses(owner), detail(owner, id_)["deliveries"]) == (
        {"a": "delivered", "b": "delivered", "later": "held"},
        [],
    )


def test_one_whose_push_a_crash_cut_off_is_pushed_when_its_lease_has_ended(
    owner, browser, later, passes, moved_clock
):
    moved_clock.advance(HOUR_S)
    scheduled.release_due(moved_clock.ms)
    seqs = database.run("SELECT notification_seq, device_seq FROM delivery").fetchall()
    with database.transaction(1):
        assert len(retries.deliveries.claim(seqs, moved_clock.ms, moved_clock.ms + 30_000)) == 1  # and it dies
    passes(29)
    assert browser.pushes == []
    passes(1)
    assert (detail(owner, later)["status"], bodies(browser)) == ("delivered", ["later"])


def test_one_that_expired_while_the_service_was_away_is_failed(owner, browser, passes, moved_clock):
    more = {"expiresAt": moved_clock.ms + 2 * HOUR_MS, "acknowledge": True}
    id_ = send_at(owner, moved_clock.ms + HOUR_MS, **more)
    passes(2 * HOUR_S)
    found = detail(owner, id_)
    assert (found["status"], found["acknowledge"]["state"], browser.pushes) == ("failed", "expired", [])


def test_one_that_is_replaced_before_is_never_sent(owner, browser, passes, moved_clock):
    first = send_at(owner, moved_clock.ms + HOUR_MS, "first", tag="reminder")
    second = send_at(owner, moved_clock.ms + 2 * HOUR_MS, "second", tag="reminder")
    found = detail(owner, first)
    assert (found["status"], found["replacedBy"]) == ("failed", second)
    passes(HOUR_S)
    passes(HOUR_S)
    assert bodies(browser) == ["second"]


def test_without_devices_it_is_in_the_history(owner, passes, moved_clock):
    id_ = send_at(owner, moved_clock.ms + HOUR_MS)
    assert detail(owner, id_)["status"] == "held"
    passes(HOUR_S)
    assert detail(owner, id_)["status"] == "delivered"


def test_a_replay_is_answered_as_held_and_sends_nothing(owner, browser, passes, moved_clock):
    sent = {"title": "Later", "body": "later", "deliverAt": moved_clock.ms + HOUR_MS}
    first = owner.post("/notifications/send", sent, headers={"Idempotency-Key": "k"})
    passes(HOUR_S)
    again = owner.post("/notifications/send", sent, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json, len(browser.messages)) == (200, first.json, 1)
    assert again.json["notification"]["status"] == "held"


@pytest.fixture
def slow(monkeypatch, moved_clock):
    """The accounts for which something is released, one after the other; three releases take as long as a piece."""
    release, released = scheduled._release, []

    def slow(seq, account_seq, now):
        moved_clock.advance(scheduled.WRITERS_WAIT_S / 3)
        released.append(account_seq)
        release(seq, account_seq, now)

    monkeypatch.setattr(scheduled, "_release", slow)
    return released


def test_writers_do_not_wait_until_many_are_released(owner, moved_clock, slow):
    for number in range(7):
        send_at(owner, moved_clock.ms + HOUR_MS, str(number))
    moved_clock.advance(HOUR_S)
    left = []
    while scheduled._release_some():
        left.append(len(queries.due(1, moved_clock.ms, 10)))
    assert left == [4, 1, 0]


def test_accounts_take_turns_however_many_of_anothers_are_due(service, owner, moved_clock, slow, monkeypatch):
    send_at(owner, moved_clock.ms + HOUR_MS)
    copy_first_row(service, 2 * scheduled.RELEASED_AT_ONCE, 0)
    service.account("other@example.org", "pro")
    other = service.caller("other@example.org")
    for number in range(4):
        send_at(other, moved_clock.ms + HOUR_MS + 1, str(number))
    moved_clock.advance(HOUR_S + 1)
    monkeypatch.setattr(scheduled, "_last", 0)
    scheduled.release_due(moved_clock.ms)
    assert slow[:11] == [1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 1]


def test_its_age_counts_from_when_it_is_delivered(service, owner, moved_clock):
    kept = send_at(owner, moved_clock.ms + 60 * 24 * HOUR_MS)
    owner.send()
    every(service, moved_clock, 45 * DAY_S)  # a starter account keeps 30 days
    assert database.run("SELECT id FROM notification").fetchall() == [(kept,)]
    every(service, moved_clock, 16 * DAY_S, 2)
    for query in ("", "?search=later"):
        assert [(one["id"], one["status"]) for one in owner.listed(query)] == [(kept, "delivered")]
    assert detail(owner, kept)["status"] == "delivered"
    every(service, moved_clock, 15 * DAY_S, 2)
    assert database.run("SELECT id FROM notification").fetchall() == []


def test_what_waits_for_longer_than_the_history_is_listed(service, owner, moved_clock):
    kept = send_at(owner, moved_clock.ms + 60 * 24 * HOUR_MS)
    every(service, moved_clock, 45 * DAY_S)
    for query in ("", "?search=later"):
        assert [one["id"] for one in owner.listed(query)] == [kept]
    assert detail(owner, kept)["status"] == "held"


def test_one_that_is_sent_after_longer_than_the_history_repeats(service, owner, browser, moved_clock):
    day = send_at(owner, moved_clock.ms + 31 * 24 * HOUR_MS, acknowledge=True)
    every(service, moved_clock, 31 * DAY_S)
    every(service, moved_clock, 60, 3)
    assert (len(browser.messages), rung(owner, day)) == (4, ("waiting", 3))


def test_many_that_wait_do_not_keep_what_is_too_old(service, owner, moved_clock):
    """More than a piece of the removal looks at."""
    kept = send_at(owner, moved_clock.ms + 60 * 24 * HOUR_MS)
    copy_first_row(service, 1_200, 0)
    owner.send()
    every(service, moved_clock, 31 * DAY_S)
    assert len(owner.listed("?limit=100")) == 100
    assert database.run("SELECT count(*), min(status) FROM notification").fetchone() == (1_201, "held")
    assert detail(owner, kept)["status"] == "held"


@sqlite_only
@each(
    "statement, values, index",
    [
        (queries.IS_DUE, (0,), "notification_scheduled (deliver_at>? AND deliver_at<?)"),
        (queries.NEXT_ACCOUNT, {"after": 0, "now": 0}, f"{BY_ACCOUNT} (account_seq>?)"),
        (
            queries.DUE,
            {"account": 1, "now": 0, "limit": 1},
            f"{BY_ACCOUNT} ((account_seq,deliver_at)>(?,?) AND (account_seq,deliver_at)<(?,?))",
        ),
    ],
)
def test_the_release_reads_the_indexes_of_what_is_scheduled(service, statement, values, index):
    plan = [row[3] for row in database.run(f"EXPLAIN QUERY PLAN {statement}", values)]
    searches = [step for step in plan if "notification" in step]
    assert searches and all(step.endswith(f"USING INDEX {index}") for step in searches)
