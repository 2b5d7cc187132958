"""Notifications with `deliverAt`."""

import pytest

from core import retries, scheduled
from store import database
from store import scheduled as queries
from tests.support.alarms import bodies, detail, every, rung, send_at
from tests.support.holding import held, statuses
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


def test_a_scheduled_notification_is_held_until_its_time_and_pushed_at_once(
    owner, browser, later, passes, moved_clock
):
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


def test_releasing_a_scheduled_notification_wakes_the_retries(service, owner, later, moved_clock):
    moved_clock.advance(HOUR_S)
    retries.batches.due.clear()
    assert not scheduled.release_due(moved_clock.ms - 1) and not retries.batches.due.is_set()
    scheduled.release_due(moved_clock.ms)
    assert retries.batches.due.is_set()
    assert owner.listed()[0]["status"] == "pending"


@each("priority, pushed", [(1, 0), (2, 0), (4, 1)])
def test_a_scheduled_notification_goes_to_devices_by_its_priority(
    service, owner, browser, passes, moved_clock, priority, pushed
):
    device = owner.get("/devices").json["devices"][0]["id"]
    service.flask("device", "set", "owner@example.org", device, "--min-priority", "4")
    id_ = send_at(owner, moved_clock.ms + HOUR_MS, priority=priority)
    passes(HOUR_S)
    assert (detail(owner, id_)["status"], len(browser.pushes)) == ("delivered", pushed)


def test_quiet_hours_do_not_hold_a_scheduled_notification(owner, browser, night, passes, moved_clock):
    send_at(owner, moved_clock.ms + HOUR_MS)
    passes(HOUR_S)
    assert bodies(browser) == ["later"]


def test_a_digest_does_not_contain_scheduled_notifications(service, owner, browser, night, moved_clock, morning):
    id_ = send_at(owner, moved_clock.ms + 24 * HOUR_MS)
    held(service.alert(), "a", "b")
    morning()
    assert len(browser.messages) == 1
    assert (statuses(owner), detail(owner, id_)["deliveries"]) == (
        {"a": "delivered", "b": "delivered", "later": "held"},
        [],
    )


def test_a_scheduled_push_interrupted_by_a_crash_is_made_when_its_lease_ends(
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


def test_a_scheduled_notification_that_expired_during_downtime_fails(owner, browser, passes, moved_clock):
    more = {"expiresAt": moved_clock.ms + 2 * HOUR_MS, "acknowledge": True}
    id_ = send_at(owner, moved_clock.ms + HOUR_MS, **more)
    passes(2 * HOUR_S)
    found = detail(owner, id_)
    assert (found["status"], found["acknowledge"]["state"], browser.pushes) == ("failed", "expired", [])


def test_a_scheduled_notification_replaced_before_its_time_is_never_pushed(owner, browser, passes, moved_clock):
    first = send_at(owner, moved_clock.ms + HOUR_MS, "first", tag="reminder")
    second = send_at(owner, moved_clock.ms + 2 * HOUR_MS, "second", tag="reminder")
    found = detail(owner, first)
    assert (found["status"], found["replacedBy"]) == ("failed", second)
    passes(HOUR_S)
    passes(HOUR_S)
    assert bodies(browser) == ["second"]


def test_a_replay_of_a_scheduled_send_answers_held_and_sends_nothing(owner, browser, passes, moved_clock):
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
        left.append(len(queries.due(account=1, now=moved_clock.ms, limit=10)))
    assert left == [4, 1, 0]


def test_accounts_take_turns_however_many_are_due_on_one(service, owner, moved_clock, slow, monkeypatch):
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


def test_a_scheduled_notification_is_listed_and_its_age_counts_from_its_delivery(service, owner, moved_clock):
    kept = send_at(owner, moved_clock.ms + 60 * 24 * HOUR_MS)
    owner.send()
    for days, times, status in ((45, 1, "held"), (16, 2, "delivered")):  # a starter account keeps 30 days
        every(service, moved_clock, days * DAY_S, times)
        assert database.run("SELECT id FROM notification").fetchall() == [(kept,)]
        for query in ("", "?search=later"):
            assert [(one["id"], one["status"]) for one in owner.listed(query)] == [(kept, status)]
        assert detail(owner, kept)["status"] == status
    every(service, moved_clock, 15 * DAY_S, 2)
    assert database.run("SELECT id FROM notification").fetchall() == []


def test_an_alarm_scheduled_beyond_the_history_repeats(service, owner, browser, moved_clock):
    day = send_at(owner, moved_clock.ms + 31 * 24 * HOUR_MS, acknowledge=True)
    every(service, moved_clock, 31 * DAY_S)
    every(service, moved_clock, 60, 3)
    assert (len(browser.messages), rung(owner, day)) == (4, ("waiting", 3))


def test_many_scheduled_notifications_do_not_stop_pruning(service, owner, moved_clock):
    """There are more than one step of the removal reads."""
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
        (queries.is_due.__self__.statement, (0,), "notification_scheduled (deliver_at>? AND deliver_at<?)"),
        (queries.next_account.__self__.statement, {"after": 0, "now": 0}, f"{BY_ACCOUNT} (account_seq>?)"),
        (
            queries.due.__self__.statement,
            {"account": 1, "now": 0, "limit": 1},
            f"{BY_ACCOUNT} ((account_seq,deliver_at)>(?,?) AND (account_seq,deliver_at)<(?,?))",
        ),
    ],
)
def test_the_release_reads_the_indexes_of_what_is_scheduled(service, statement, values, index):
    plan = [row[3] for row in database.run(f"EXPLAIN QUERY PLAN {statement}", values)]
    searches = [step for step in plan if "notification" in step]
    assert searches and all(step.endswith(f"USING INDEX {index}") for step in searches)
