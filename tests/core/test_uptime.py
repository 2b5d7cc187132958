"""The record of a heartbeat: its uptime, run times and outcomes."""

import pytest

from core import uptime
from core.heartbeats import pause_heartbeat, resume_heartbeat
from models import Account
from store import heartbeats
from tests.support.heartbeats import EMAIL
from tests.support.rows import each
from tests.support.times import DAY_MS, HOUR_S, MINUTE_S

NOW = 100 * DAY_MS


def days(*parts):
    """(word, days ago) as moments, oldest first."""
    return [(word, round(NOW - ago * DAY_MS)) for word, ago in parts]


@each(
    "changes, share",
    [
        ([], None),
        (days(("new", 5)), None),
        (days(("up", 5)), 1),
        (days(("down", 5)), 0),
        (days(("up", 4), ("down", 1)), 0.75),
        (days(("up", 4), ("down", 3), ("up", 2)), 0.75),
        (days(("up", 60), ("down", 15)), 0.5),
        (days(("down", 60), ("up", 45)), 1),
        (days(("up", 20), ("paused", 10), ("up", 1)), 1),
        (days(("up", 20), ("down", 10), ("paused", 5)), 2 / 3),
        (days(("paused", 5)), None),
        (days(("up", 4), ("down", 1), ("up", 2)), 1),  # the clock was set back
        (days(("up", 4), ("down", -3)), 1),  # … to before the last change
        (days(("up", -3), ("down", -5)), None),
    ],
)
def test_uptime_is_the_share_of_the_last_30_days_that_were_up_of_those_that_counted(changes, share):
    assert uptime.record("up", [], changes, NOW, 0).uptime == (None if share is None else pytest.approx(share))


@each(
    "pings, run_times",
    [
        ([], []),
        ([("success", 5)], [None]),
        ([("start", 5), ("success", 9)], [None, 4]),
        ([("start", 5), ("fail", 9)], [None, 4]),
        ([("start", 5), ("log", 6), ("success", 9)], [None, None, 4]),
        ([("start", 5), ("start", 7), ("success", 9), ("success", 10)], [None, None, 2, None]),  # overlapping
        ([("start", 5), ("success", 9), ("success", 12)], [None, 4, None]),
        ([("start", 9), ("success", 5)], [None, None]),  # the clock was set back
    ],
)
def test_a_run_lasts_from_its_latest_start_to_the_next_success_or_failure(pings, run_times):
    assert uptime.record("up", pings, [], NOW, 0).run_times == run_times


@each(
    "state, pings, changes, outcomes",
    [
        ("new", [], [], []),
        ("up", [("success", 1)], [("up", 1)], ["success"]),
        ("late", [("success", 1)], [("up", 1)], ["success", "late"]),
        ("down", [("success", 1)], [("up", 1), ("down", 5)], ["success", "late"]),
        ("up", [("success", 1), ("success", 7)], [("up", 1), ("down", 5), ("up", 7)], ["success", "late"]),
        ("down", [("success", 1), ("fail", 5)], [("up", 1), ("down", 5)], ["success", "fail"]),
        ("down", [("success", 1), ("fail", 6)], [("up", 1), ("down", 5)], ["success", "fail"]),
        ("up", [("fail", 5), ("success", 7)], [("down", 5), ("up", 7)], ["fail", "success"]),
        (
            "up",
            [("fail", 5), ("success", 9)],
            [("down", 5), ("paused", 6), ("down", 7), ("up", 9)],
            ["fail", "success"],
        ),
    ],
)
def test_a_ping_is_late_when_it_was_missed_before(state, pings, changes, outcomes):
    assert uptime.record(state, pings, changes, NOW, 0).outcomes == outcomes


def test_a_late_ping_is_late_by_the_grace_period_and_the_time_that_the_heartbeat_was_down():
    pings, changes = [("success", 1), ("start", 6), ("success", 7)], [("up", 1), ("down", 5), ("up", 7)]
    assert uptime.record("up", pings, changes, NOW, 3).late_by == [None, None, 5]


@each("run_times, usual", [([1, 2, None, 3], None), ([40, 41, 90, 39, None, 40, 41], (40, 41))])
def test_the_middle_half_of_the_runs_is_usual_after_four(run_times, usual):
    assert uptime.Record(None, run_times, [], []).usual_run_times == usual


def recorded(moved_clock):
    """The record of the owner's only heartbeat now."""
    account = Account.find(EMAIL)
    (found,) = uptime.records(account.seq, heartbeats.of_account(account.seq), moved_clock.ms).values()
    return found


def test_each_change_counts_from_when_it_happened_and_late_counts_as_up(beat, passes, moved_clock):
    beat.ping("/start")
    passes(MINUTE_S)
    beat.ping()
    passes(HOUR_S)
    passes(10 * MINUTE_S)
    passes(70 * MINUTE_S)
    assert (beat.state, recorded(moved_clock).uptime) == ("down", 0.5)
    assert recorded(moved_clock).run_time == 60_000
    assert recorded(moved_clock).outcomes == ["start", "success", "late"]


def test_a_paused_time_does_not_count(beat, passes, moved_clock):
    account_seq = Account.find(EMAIL).seq
    beat.ping("/fail")
    passes(MINUTE_S)
    beat.ping()
    passes(MINUTE_S)
    pause_heartbeat(account_seq, beat.id, moved_clock.ms)
    passes(HOUR_S)
    resume_heartbeat(account_seq, beat.id, moved_clock.ms)
    assert recorded(moved_clock).uptime == 0.5


def test_of_the_changes_the_newest_are_kept(beat, monkeypatch):
    monkeypatch.setattr(heartbeats, "KEPT_CHANGES", 3)
    for signal in ("", "/fail", "", "/fail"):
        beat.ping(signal)
    changes = [word for _, word, _, is_change, _ in heartbeats.moments(account=Account.find(EMAIL).seq) if is_change]
    assert changes == ["down", "up", "down"]
