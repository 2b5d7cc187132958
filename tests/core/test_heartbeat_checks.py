"""The states of a heartbeat, and what its owner is told, exactly once."""

import pytest

from core import heartbeat_checks, retries
from models import Account
from store import database
from store import heartbeats as stored_heartbeats
from tests.support.accounts import account_set
from tests.support.heartbeats import EMAIL, Pinged, told
from tests.support.holding import QUIET
from tests.support.rows import each
from tests.support.times import DAY_S, HOUR_S, MINUTE_S, at, local_ms, utc

DOWN = ("Backup is down", "Last ping: 2026-11-21 10:00. The next was expected 2026-11-21 11:00.")


# --- the states ---------------------------------------------------------------------------------------------


def test_a_heartbeat_is_new_until_its_first_ping(owner, beat, passes):
    passes(400 * DAY_S)
    assert (beat.state, beat.watch["deadlineAt"], told(owner)) == ("new", None, [])


def test_a_ping_makes_a_heartbeat_up_until_its_period_ends(beat, passes, moved_clock):
    beat.ping()
    assert beat.watch["deadlineAt"] == moved_clock.ms + HOUR_S * 1000
    passes(HOUR_S - 1)
    assert beat.state == "up"
    beat.ping()
    passes(HOUR_S - 1)
    assert beat.state == "up"


def test_an_overdue_heartbeat_is_late_during_its_grace_without_a_notification(owner, beat, passes):
    beat.ping()
    passes(HOUR_S)
    assert (beat.state, told(owner)) == ("late", [])
    passes(10 * MINUTE_S - 1)
    assert (beat.state, told(owner)) == ("late", [])
    beat.ping()
    assert (beat.state, told(owner)) == ("up", [])


def test_a_heartbeat_is_down_after_its_grace_and_notifies_once(owner, beat, passes, moved_clock):
    beat.ping()
    passes(HOUR_S)
    passes(10 * MINUTE_S)
    assert (beat.state, beat.watch["deadlineAt"], beat.watch["downSince"]) == ("down", None, moved_clock.ms)
    passes(DAY_S)
    assert told(owner) == [DOWN]
    assert owner.listed()[0]["priority"] == 4


def test_a_ping_brings_a_heartbeat_up_and_replaces_the_notification(owner, browser, beat, passes):
    beat.ping()
    passes(2 * HOUR_S)
    passes(3 * HOUR_S + 5 * MINUTE_S + 2)
    beat.ping()
    beat.ping()
    passes(1)
    assert told(owner) == [DOWN, ("Backup is up", "It was down for 3h 5m.")]
    up, down = owner.listed()
    assert (up["priority"], up["tag"]) == (2, down["tag"])
    assert owner.get(f"/notifications/{down['id']}").json["notification"]["replacedBy"] == up["id"]
    tags = {message["notification"]["tag"] for message in browser.messages}
    assert (len(browser.messages), len(tags), beat.state) == (2, 1, "up")


@each("signal, why", [("/fail", ""), ("/1", " with exit code 1"), ("/255", " with exit code 255")])
def test_a_reported_failure_makes_a_heartbeat_down_in_any_state(service, owner, signal, why):
    before, beat = told(owner), Pinged(service, owner, "--period", "1h")
    beat.ping(signal)
    beat.ping(signal)
    assert (beat.state, told(owner)) == ("down", [*before, ("Backup is down", f"It reported a failure{why}.")])


def test_a_start_changes_no_state(owner, beat, passes):
    beat.ping("/start")
    assert (beat.state, beat.watch["lastPingAt"]) == ("new", None)
    beat.ping()
    passes(HOUR_S)
    beat.ping("/start")
    passes(10 * MINUTE_S)
    assert (beat.state, told(owner)) == ("down", [DOWN])


def test_a_paused_heartbeat_does_not_change_and_starts_a_new_period_when_resumed(owner, beat, passes, moved_clock):
    beat.ping()
    beat.run("pause", beat.id)
    passes(DAY_S)
    beat.ping("/fail")
    assert (beat.state, told(owner)) == ("paused", [])
    beat.run("resume", beat.id)
    assert (beat.state, beat.watch["deadlineAt"]) == ("up", moved_clock.ms + HOUR_S * 1000)
    beat.run("resume", beat.id)
    passes(2 * HOUR_S)
    assert beat.state == "down"


@each("meanwhile", ["", "/fail", "/start"])
def test_a_heartbeat_paused_while_down_is_down_when_resumed_until_it_succeeds(owner, beat, passes, meanwhile):
    before = len(told(owner))
    beat.ping("/fail")
    since = beat.watch["downSince"]
    beat.run("pause", beat.id)
    assert (beat.state, beat.watch["downSince"]) == ("paused", None)
    passes(HOUR_S)
    beat.ping(meanwhile)
    beat.run("resume", beat.id)
    assert (beat.state, beat.watch["downSince"], beat.watch["deadlineAt"]) == ("down", since, None)
    passes(HOUR_S)
    beat.ping("/fail")
    beat.ping()
    assert [title for title, _ in told(owner)[before:]] == ["Backup is down", "Backup is up"]
    assert told(owner)[-1][1] == "It was down for 2h."
    assert beat.state == "up"


def test_a_changed_period_counts_from_the_change(beat, passes, moved_clock):
    beat.ping()
    passes(HOUR_S)
    beat.run("set", beat.id, "--period", "2h")
    assert (beat.state, beat.watch["deadlineAt"]) == ("up", moved_clock.ms + 2 * HOUR_S * 1000)
    beat.run("set", beat.id, "--name", "Other", "--priority", "5")
    assert beat.watch["deadlineAt"] == moved_clock.ms + 2 * HOUR_S * 1000


@each("signals, command, state", [((), "list", "new"), (("",), "pause", "paused"), (("/fail",), "list", "down")])
def test_a_changed_period_does_not_change_a_heartbeat_that_is_not_expected(service, owner, signals, command, state):
    beat = Pinged(service, owner, "--period", "1h")
    for signal in signals:
        beat.ping(signal)
    beat.run(command, *([beat.id] if command == "pause" else []))
    beat.run("set", beat.id, "--period", "2h")
    assert (beat.state, beat.watch["deadlineAt"]) == (state, None)


def test_a_down_notification_has_the_heartbeats_priority_and_the_recovery_at_most_that(service, owner, passes):
    beat = Pinged(service, owner, "--period", "1m", "--grace", "1m", "--priority", "min")
    beat.ping("/fail")
    beat.ping()
    assert [one["priority"] for one in owner.listed()] == [1, 1]


# --- quiet hours --------------------------------------------------------------------------------------------


def test_quiet_hours_hold_a_down_notification_of_any_priority(service, owner, browser, passes, until):
    account_set("--quiet-hours", QUIET)
    until("2026-11-21T23:00")
    for priority in ("normal", "high", "urgent"):
        Pinged(service, owner, "--period", "7d", "--priority", priority).ping("/fail")
    passes(1)
    assert ([one["status"] for one in owner.listed()], browser.pushes) == (["held"] * 3, [])
    until("2026-11-22T07:00")
    passes(0)
    assert [one["status"] for one in owner.listed()] == ["delivered"] * 3
    assert [one["notification"]["title"] for one in browser.messages] == ["MCP - 3 notifications"]


# --- exactly once -------------------------------------------------------------------------------------------


def test_a_stored_down_notification_wakes_the_worker(browser, beat):
    retries.batches.due.clear()
    with database.transaction(1):
        beat.ping("/fail")
        assert not retries.batches.due.is_set()
    assert retries.batches.due.is_set()


def test_a_ping_before_the_worker_runs_prevents_the_down_notification(owner, beat, moved_clock, monkeypatch):
    beat.ping()
    moved_clock.advance(2 * HOUR_S)
    ((_, seq),) = stored_heartbeats.due(moved_clock.ms, 10)
    stale = stored_heartbeats.one(seq)
    beat.ping()
    with monkeypatch.context() as patch, database.transaction(1):
        patch.setattr(stored_heartbeats, "one", lambda _: stale)
        heartbeat_checks._pass_deadline(seq, moved_clock.ms)
    assert (beat.state, told(owner)) == ("up", [])


@each("signal", ["/fail", ""])
def test_a_heartbeats_state_does_not_change_without_its_notification(service, owner, beat, monkeypatch, signal):
    """As when the process dies between the two: both are one transaction."""
    beat.ping("/fail" if not signal else "")
    before = beat.watch, told(owner)

    def die(*_):
        raise SystemExit

    monkeypatch.setattr(heartbeat_checks.maintenance, "tell", die)
    with pytest.raises(SystemExit):
        service.client.post(beat.path + signal)
    assert (beat.watch, told(owner)) == before
    monkeypatch.undo()


def test_a_heartbeat_deleted_after_it_was_found_due_is_skipped(service, owner, monkeypatch, caplog):
    monkeypatch.setattr(stored_heartbeats, "due", lambda now, most: [(Account.find(EMAIL).seq, 10**9)])
    service.work()
    assert caplog.text == ""


# --- cron ---------------------------------------------------------------------------------------------------


def nightly(service, owner, cron="30 2 * * *", zone="Europe/Berlin"):
    account_set("--timezone", zone)
    return Pinged(service, owner, "--cron", cron)


@each(
    "pinged, expected",
    [
        ("2026-11-20T02:30", "2026-11-21T02:30"),
        ("2027-03-27T02:31", "2027-03-28T03:00"),  # there is no 02:30: it runs right after the change
        ("2027-03-28T03:00", "2027-03-29T02:30"),
        ("2027-10-30T02:31", "2027-10-31T02:30"),  # 02:30 comes twice: it runs the first time
        ("2027-10-31T02:31", "2027-11-01T02:30"),
    ],
)
def test_a_cron_expression_is_in_the_accounts_time_zone_in_nights_of_a_change_too(
    service, owner, moved_clock, pinged, expected
):
    beat = nightly(service, owner)
    at(moved_clock, pinged, "Europe/Berlin")
    beat.ping()
    assert beat.watch["deadlineAt"] == local_ms(expected, "Europe/Berlin")


def test_a_ping_in_the_hour_that_comes_twice_does_not_make_a_cron_overdue(service, owner, passes, until):
    beat = nightly(service, owner)
    until("2027-10-31T01:14")  # 02:14 the second time: it ran at 02:30 the first time
    beat.ping()
    assert beat.watch["deadlineAt"] == local_ms("2027-11-01T02:30", "Europe/Berlin")
    passes(HOUR_S)
    assert (beat.state, told(owner)) == ("up", [])


def test_a_changed_time_zone_moves_the_next_time_of_a_cron(service, owner, passes, until, moved_clock):
    beat = nightly(service, owner, zone="UTC")
    until("2026-11-22T07:30")  # 02:30 in New York
    beat.ping()
    account_set("--timezone", "America/New_York")
    until("2026-11-23T03:00")
    passes(0)
    assert (beat.state, beat.watch["deadlineAt"]) == ("up", utc("2026-11-23T07:30"))


def test_a_changed_time_zone_moves_neither_a_period_nor_a_late_cron(service, owner, beat, passes, until):
    late = nightly(service, owner, zone="UTC")
    late.ping()
    until("2026-11-22T02:35")
    beat.ping()
    passes(0)
    before = [(one.state, one.watch["deadlineAt"]) for one in (late, beat)]
    account_set("--timezone", "America/New_York")
    assert [(one.state, one.watch["deadlineAt"]) for one in (late, beat)] == before
    assert [state for state, _ in before] == ["late", "up"]


def test_a_ping_while_the_clock_was_a_year_ahead_does_not_keep_a_cron_up_for_a_year(
    service, owner, passes, until, moved_clock
):
    beat = nightly(service, owner, zone="UTC")
    right = moved_clock.ms
    moved_clock.set_wall(right + 365 * DAY_S * 1000)
    passes(1)
    beat.ping()
    moved_clock.set_wall(right)
    passes(1)
    until("2026-11-22T02:41")
    passes(0)
    assert beat.state == "down"


# --- bounds -------------------------------------------------------------------------------------------------


def test_the_newest_sixty_pings_are_kept(beat, moved_clock):
    for number in range(65):
        beat.ping(data=str(number))
        moved_clock.advance(2)
    rows = database.run("SELECT body FROM ping ORDER BY seq").fetchall()
    assert [row[0] for row in rows] == [str(number) for number in range(5, 65)]
