"""How heartbeats treat downtime of the service and changes of its clock."""

import itertools

import pytest

from core import heartbeat_checks, mails
from process import clock
from store import database, deliveries
from store import mails as stored_mails
from tests.support.alarms import ring
from tests.support.channels import add_webhook
from tests.support.heartbeats import Pinged, told
from tests.support.tables import query
from tests.support.times import DAY_S, HOUR_S, MINUTE_S, utc


def test_a_heartbeat_late_when_the_service_stopped_is_up_after_the_restart(beat, passes, restarted):
    beat.ping()
    passes(HOUR_S + MINUTE_S)
    assert beat.state == "late"
    restarted(1)
    assert beat.state == "late"  # another process may have taken its ping
    passes(40)
    assert beat.state == "up"


def test_other_deadlines_move_by_the_length_of_the_downtime_however_many_processes_start(beat, passes, restarted):
    beat.ping()
    deadline = beat.watch["deadlineAt"]
    passes(10)
    restarted(20 * MINUTE_S)
    for _ in range(2):
        assert (beat.state, beat.watch["deadlineAt"]) == ("up", deadline + 20 * MINUTE_S * 1000)
        restarted(0)


@pytest.mark.parametrize("step_s", [-HOUR_S, 5 * HOUR_S])
def test_a_step_of_the_wall_clock_causes_no_false_alarm_and_delays_no_true_one(
    owner, beat, passes, moved_clock, step_s
):
    beat.ping()
    passes(MINUTE_S)
    moved_clock.set_wall(moved_clock.ms + step_s * 1000)
    passes(MINUTE_S)
    assert (beat.state, told(owner)) == ("up", [])
    passes(HOUR_S + 11 * MINUTE_S)
    assert beat.state == "down"


@pytest.mark.parametrize("step_s", [-10, 10])
def test_a_deadline_moves_by_as_much_as_the_clock_was_set(beat, passes, moved_clock, step_s):
    beat.ping()
    deadline = beat.watch["deadlineAt"]
    passes(20)
    moved_clock.set_wall(moved_clock.ms + step_s * 1000)
    passes(1)
    assert beat.watch["deadlineAt"] - deadline in (step_s * 1000, step_s * 1000 + 1000)


def test_that_the_service_is_alive_is_written_every_half_minute(service, moved_clock, monkeypatch):
    written = []
    service.work()
    monkeypatch.setattr(heartbeat_checks.server_notes, "put", lambda name, value: written.append(value))
    for _ in range(120):
        moved_clock.advance(1)
        heartbeat_checks.follow_clock()
    assert len(written) == 4


def test_while_the_database_cannot_be_written_heartbeats_are_not_judged_and_it_counts_as_downtime(
    owner, beat, passes, moved_clock, monkeypatch
):
    beat.ping()
    passes(MINUTE_S)

    def refuse(*_):
        raise database.WriteFailed("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(heartbeat_checks.server_notes, "put", refuse)
        moved_clock.advance(2 * HOUR_S)
        assert heartbeat_checks.check_due(moved_clock.ms) is False
        assert heartbeat_checks.check_due(moved_clock.ms) is False
    heartbeat_checks.check_due(moved_clock.ms)
    assert (beat.state, beat.watch["deadlineAt"], told(owner)) == ("up", moved_clock.ms + HOUR_S * 1000, [])


@pytest.mark.parametrize("options", [("--period", "1d"), ("--cron", "0 10 * * *")])
def test_daily_restarts_while_a_heartbeat_is_late_delay_its_notification_once(
    service, owner, passes, until, restarted, options
):
    beat = Pinged(service, owner, *options, "--grace", "30m")
    beat.ping()
    for day, state in ((22, "up"), (23, "down")):
        until(f"2026-11-{day}T10:05")
        passes(0)
        restarted(10)
        passes(40)
        until(f"2026-11-{day}T10:45")
        passes(0)
        assert beat.state == state
    assert len(told(owner)) == 1


@pytest.mark.parametrize("back_s, is_next", [(-60, True), (-70, False)])
def test_a_heartbeat_due_within_a_minute_of_the_restart_is_expected_one_period_later(
    beat, passes, restarted, moved_clock, back_s, is_next
):
    beat.ping()
    deadline = beat.watch["deadlineAt"]
    passes(10)
    away_s = HOUR_S - 10 + back_s
    restarted(away_s)
    later_ms = moved_clock.ms + HOUR_S * 1000 if is_next else deadline + away_s * 1000
    assert beat.watch["deadlineAt"] == later_ms


# --- a cron expression whose ping was passed over already ---------------------------------------------------


@pytest.fixture
def passed_over(service, owner, passes, until, restarted):
    """A heartbeat at ten each day, with half an hour of grace: yesterday's ping was expected during a downtime."""
    beat = Pinged(service, owner, "--cron", "0 10 * * *", "--grace", "30m")
    beat.ping()
    until("2026-11-22T09:50")
    passes(0)
    restarted(20 * MINUTE_S)
    assert beat.watch["deadlineAt"] == utc("2026-11-23T10:00")
    return beat


def test_the_grace_of_a_late_cron_is_longer_by_the_downtime(passed_over, passes, until, restarted):
    until("2026-11-23T10:05")
    passes(0)
    restarted(2 * HOUR_S)
    assert (passed_over.state, passed_over.watch["deadlineAt"]) == ("late", utc("2026-11-23T12:30"))


def test_the_grace_of_a_cron_that_was_due_in_the_downtime_begins_with_the_return(
    passed_over, passes, until, restarted
):
    until("2026-11-23T09:50")
    passes(0)
    restarted(2 * HOUR_S)
    passes(0)
    assert (passed_over.state, passed_over.watch["deadlineAt"]) == ("late", utc("2026-11-23T12:20"))


def test_a_late_cron_goes_by_the_wall_clock_that_is_set_back(passed_over, passes, until, moved_clock):
    until("2026-11-23T10:05")
    passes(0)
    moved_clock.set_wall(moved_clock.ms - 4 * MINUTE_S * 1000)
    passes(1)
    assert (passed_over.state, passed_over.watch["deadlineAt"]) == ("late", utc("2026-11-23T10:30"))


# --- a process that was frozen ------------------------------------------------------------------------------


@pytest.fixture
def frozen(moved_clock):
    """Let the process stand still for so long; the monotonic clock may stand still too, as when a laptop sleeps."""

    def freeze(seconds, monotonic_s=None):
        moved_clock.ms += seconds * 1000
        moved_clock.monotonic += seconds if monotonic_s is None else monotonic_s
        heartbeat_checks.check_due(moved_clock.ms)

    return freeze


@pytest.mark.parametrize("gap", ["stopped", "frozen", "asleep"])
def test_what_was_due_in_a_gap_is_expected_one_period_after_it_and_is_down_if_it_does_not_come(
    owner, beat, passes, restarted, frozen, moved_clock, gap
):
    beat.ping()
    passes(30 * MINUTE_S)
    if gap == "stopped":
        restarted(5 * HOUR_S)
    else:
        frozen(5 * HOUR_S, monotonic_s=0 if gap == "asleep" else None)
    assert (beat.state, beat.watch["deadlineAt"], told(owner)) == ("up", moved_clock.ms + HOUR_S * 1000, [])
    passes(HOUR_S + 10 * MINUTE_S)
    assert beat.state == "down"


def test_a_slow_worker_moves_no_deadlines(service, owner, moved_clock, frozen):
    beat = Pinged(service, owner, "--period", "1h", "--grace", "1m")
    beat.ping()
    deadline, began = beat.watch["deadlineAt"], moved_clock.ms
    for seconds in itertools.cycle((1, 20, 5, 29, 2)):
        if moved_clock.ms >= began + HOUR_S * 1000:
            break
        frozen(seconds)
        assert beat.watch["deadlineAt"] in (deadline, deadline + MINUTE_S * 1000)
    assert beat.state == "late"


def test_time_spent_in_other_jobs_is_not_taken_for_a_step_of_the_clock(beat, moved_clock):
    heartbeat_checks.check_due(moved_clock.ms)
    beat.ping()
    deadline, round_began = beat.watch["deadlineAt"], moved_clock.ms + 1000
    moved_clock.advance(10)
    heartbeat_checks.check_due(round_began)
    moved_clock.advance(1)
    heartbeat_checks.check_due(moved_clock.ms)
    assert beat.watch["deadlineAt"] == deadline


# --- pings that come before the worker looks ----------------------------------------------------------------


@pytest.mark.parametrize("step_s", [-5 * HOUR_S, 5 * HOUR_S])
def test_a_ping_right_after_the_clock_was_set_is_expected_again_a_period_later(beat, passes, moved_clock, step_s):
    beat.ping()
    passes(MINUTE_S)
    moved_clock.set_wall(moved_clock.ms + step_s * 1000)
    beat.ping()
    deadline = beat.watch["deadlineAt"]
    passes(1)
    assert (beat.state, beat.watch["deadlineAt"]) == ("up", deadline)


@pytest.mark.parametrize("away_s", [5, DAY_S])
def test_a_ping_right_after_a_start_is_expected_again_a_period_later(make_service, beat, passes, moved_clock, away_s):
    beat.ping()
    passes(MINUTE_S)
    moved_clock.advance(away_s)
    make_service()
    beat.ping()
    deadline = beat.watch["deadlineAt"]
    passes(1)
    passes(40)
    assert beat.watch["deadlineAt"] == deadline


# --- since when it is down ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step_s", [-5 * HOUR_S, 5 * HOUR_S])
def test_how_long_it_was_down_does_not_change_when_the_clock_is_set(owner, beat, passes, moved_clock, step_s):
    beat.ping("/fail")
    passes(MINUTE_S)
    moved_clock.set_wall(moved_clock.ms + step_s * 1000)
    passes(MINUTE_S)
    assert beat.watch["downSince"] == moved_clock.ms - 2 * MINUTE_S * 1000
    beat.ping()
    assert told(owner)[-1] == ("Backup is up", "It was down for 2m.")


def test_the_duration_of_an_outage_includes_downtime_of_the_service(owner, beat, passes, restarted, frozen):
    beat.ping("/fail")
    passes(MINUTE_S)
    frozen(HOUR_S)
    restarted(HOUR_S)
    beat.ping()
    assert told(owner)[-1] == ("Backup is up", "It was down for 2h 1m.")


# --- several processes on one database ----------------------------------------------------------------------


class Process:
    """A process that watches: what it remembers is its own."""

    def __init__(self):
        self.remembered = {"_began": None, "_looked": None, "_noted": None, "_noted_s": 0.0}
        self.began_at = clock.now_ms()

    def look(self):
        vars(heartbeat_checks).update(self.remembered)
        clock.began_at = self.began_at
        now = heartbeat_checks.follow_clock()
        self.remembered = {name: vars(heartbeat_checks)[name] for name in self.remembered}
        return now


@pytest.fixture
def both(service, moved_clock):
    """Two processes that have looked once a second for a while."""
    both = Process(), Process()
    look_for(100, moved_clock, *both)
    return both


def look_for(seconds, moved_clock, *processes):
    for _ in range(seconds):
        moved_clock.advance(1)
        for process in processes:
            process.look()


def test_a_process_that_starts_while_others_run_moves_no_deadlines(beat, both, moved_clock):
    beat.ping()
    deadline = beat.watch["deadlineAt"]
    for _ in range(5):
        look_for(13, moved_clock, *both)
        look_for(40, moved_clock, *both, third := Process())
        assert third.look()
    assert beat.watch["deadlineAt"] == deadline


def test_a_starting_process_judges_nothing_until_it_knows_whether_others_run(both, moved_clock):
    look_for(1, moved_clock, third := Process())
    assert not third.look()
    look_for(31, moved_clock, *both)
    assert third.look()


def test_a_process_that_was_frozen_while_others_ran_moves_no_deadlines(beat, both, moved_clock):
    beat.ping()
    deadline = beat.watch["deadlineAt"]
    look_for(10 * MINUTE_S, moved_clock, both[0])
    look_for(2, moved_clock, *both)
    assert beat.watch["deadlineAt"] == deadline


@pytest.mark.parametrize("away_s, moved", [(600, (600_000, 640_000)), (5, (30_000, 45_000))])
def test_when_all_processes_restart_one_moves_the_deadlines(beat, both, moved_clock, away_s, moved):
    beat.ping()
    deadline = beat.watch["deadlineAt"]
    look_for(1, moved_clock, *both)
    moved_clock.advance(away_s)
    look_for(60, moved_clock, Process(), Process(), Process())
    assert moved[0] <= beat.watch["deadlineAt"] - deadline <= moved[1]


@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S])
def test_when_the_clock_of_all_processes_is_set_one_moves_the_deadlines(
    service, owner, beat, both, moved_clock, step_s
):
    down = Pinged(service, owner, "--period", "1h", name="Other")
    down.ping("/fail")
    beat.ping()
    deadline, since = beat.watch["deadlineAt"], down.watch["downSince"]
    moved_clock.set_wall(moved_clock.ms + step_s * 1000)
    look_for(60, moved_clock, *both)
    if step_s < 0:
        assert -3_600_000 <= beat.watch["deadlineAt"] - deadline <= -3_569_000
    assert beat.state == "up" and down.watch["downSince"] - since == step_s * 1000


# --- what else follows the clock ----------------------------------------------------------------------------


@pytest.fixture
def pending(service, owner, browser, moved_clock):
    """Answers with when the retry, repeat and fallback of a notification, a mail, and the end of a limit are due."""
    with database.transaction(1):
        mails.add(1, "password", clock.now_ms())
        stored_mails.put_limit(1, stored_mails.Limit((), 1), None, clock.now_ms())
    add_webhook(owner)
    browser.then(503)
    ring(owner)

    def due():
        columns = "next_at, due_at, next_attempt_at, until"
        (others,) = query(service, f"SELECT {columns} FROM alarm, fallback, mail, mail_limit")
        return deliveries.next_due_at(), *others

    return due


def set_back(moved_clock, seconds, *processes):
    """Set the wall clock back, as the processes see a second later."""
    moved_clock.set_wall(moved_clock.ms - round(seconds * 1000))
    look_for(1, moved_clock, *processes)


def earlier_s(before, after):
    return [(then - now) // 1000 for then, now in zip(before, after, strict=True)]


def test_repeats_of_each_account_are_moved_once(service, owner, both, moved_clock):
    service.account("other@example.org")
    for caller in (owner, owner, service.caller("other@example.org")):
        ring(caller)
    due_at = "SELECT next_at FROM alarm ORDER BY notification_seq"
    before = [row[0] for row in query(service, due_at)]
    set_back(moved_clock, HOUR_S, *both)
    assert earlier_s(before, [row[0] for row in query(service, due_at)]) == [HOUR_S] * 3


def test_each_step_back_counts_also_to_where_the_clock_was(pending, both, moved_clock):
    before = pending()
    for _ in range(3):
        set_back(moved_clock, HOUR_S, *both)
        set_back(moved_clock, -HOUR_S, *both)
    assert earlier_s(before, pending()) == [3 * HOUR_S] * 5


def test_a_clock_that_was_set_back_while_nothing_ran_is_followed_at_the_start(pending, both, moved_clock):
    before = pending()
    moved_clock.advance(10)
    set_back(moved_clock, HOUR_S, Process(), Process())
    assert all(HOUR_S - 45 <= by_s <= HOUR_S for by_s in earlier_s(before, pending()))


def test_repeats_go_on_if_the_clock_is_set_forward_soon_after_a_start(service, pending, both, moved_clock):
    ends_at = "SELECT ends_at FROM alarm"
    ((before,),) = query(service, ends_at)
    look_for(1, moved_clock, started := Process())
    set_back(moved_clock, -HOUR_S, started)
    assert query(service, ends_at) == [(before + HOUR_S * 1000,)]


def test_small_corrections_of_the_clock_and_steps_forward_make_nothing_due_earlier(pending, both, moved_clock):
    before = pending()
    for _ in range(10):
        set_back(moved_clock, 1.9, *both)
    set_back(moved_clock, -HOUR_S, *both)
    assert pending() == before


def test_a_step_that_cannot_be_noted_is_followed_when_it_can(pending, both, moved_clock, monkeypatch):
    before = pending()

    def fail(*_):
        raise database.WriteFailed("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(heartbeat_checks.server_notes, "put", fail)
        set_back(moved_clock, HOUR_S, *both)
    assert pending() == before
    look_for(1, moved_clock, *both)
    assert earlier_s(before, pending()) == [HOUR_S] * 5
