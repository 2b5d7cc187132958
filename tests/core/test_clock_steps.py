"""When the wall clock is set back: what is due is brought forward once, however many processes see the step."""

import pytest

from core import clock_steps, heartbeat_checks, mails
from process import clock
from store import database, deliveries, server_notes
from store import mails as stored_mails
from tests.support.alarms import ring
from tests.support.channels import add_webhook
from tests.support.tables import query
from tests.support.times import HOUR_S


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


class Process:
    """A process that serves the database, as far as it follows the clock."""

    def __init__(self):
        self.seen = clock_steps._difference_ms

    def look(self):
        clock_steps._difference_ms = self.seen
        clock_steps.follow(clock.now_ms())
        self.seen = clock_steps._difference_ms


def set_back(moved_clock, seconds):
    moved_clock.set_wall(moved_clock.ms - round(seconds * 1000))


def moved(before, after):
    return [(then - now) // 1000 for then, now in zip(before, after, strict=True)]


@pytest.fixture
def processes(service):
    two = Process(), Process()
    for one in two:
        one.look()
    return two


def look(processes):
    for one in processes:
        one.look()


def test_due_times_of_each_account_are_moved_once(service, owner, processes, moved_clock):
    service.account("other@example.org")
    for caller in (owner, owner, service.caller("other@example.org")):
        ring(caller)
    due_at = "SELECT next_at FROM alarm ORDER BY notification_seq"
    before = [row[0] for row in query(service, due_at)]
    set_back(moved_clock, HOUR_S)
    look(processes)
    assert moved(before, [row[0] for row in query(service, due_at)]) == [HOUR_S] * 3


def test_each_step_counts_also_back_to_where_the_clock_was(pending, processes, moved_clock):
    before = pending()
    for _ in range(3):
        set_back(moved_clock, HOUR_S)
        look(processes)
        moved_clock.advance(1)
        set_back(moved_clock, -HOUR_S)
        look(processes)
    assert moved(before, pending()) == [3 * HOUR_S] * 5


def test_a_step_counts_after_one_that_happened_while_nothing_ran(pending, processes, moved_clock):
    set_back(moved_clock, HOUR_S)
    look(processes)
    before = pending()
    moved_clock.advance(120)
    set_back(moved_clock, -HOUR_S)
    clock_steps._difference_ms = None
    restarted = Process(), Process()
    look(restarted)
    set_back(moved_clock, HOUR_S)
    look(restarted)
    assert moved(before, pending()) == [HOUR_S] * 5


def test_a_clock_that_was_set_back_while_nothing_ran_is_followed_at_the_start(pending, moved_clock):
    heartbeat_checks.follow_clock()
    before = pending()
    set_back(moved_clock, HOUR_S)
    clock_steps._difference_ms = None
    Process().look()
    assert moved(before, pending()) == [HOUR_S] * 5


def test_small_corrections_of_the_clock_move_no_due_times(pending, processes, moved_clock):
    before = pending()
    for _ in range(10):
        set_back(moved_clock, 1.9)
        look(processes)
    set_back(moved_clock, -HOUR_S)
    look(processes)
    assert pending() == before


def test_a_step_that_cannot_be_noted_is_followed_when_it_can(pending, processes, moved_clock, monkeypatch):
    before = pending()
    set_back(moved_clock, HOUR_S)

    def fail(*_):
        raise database.WriteFailed("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(server_notes, "put", fail)
        for one in processes:
            with pytest.raises(database.WriteFailed):
                one.look()
    look(processes)
    assert moved(before, pending()) == [HOUR_S] * 5


def test_each_machine_follows_its_own_clock_and_few_are_remembered(pending, processes, moved_clock, monkeypatch):
    before = pending()
    for number in range(clock_steps.MAX_MACHINES + 5):
        monkeypatch.setattr(clock, "machine", lambda number=number: f"machine {number}")
        set_back(moved_clock, HOUR_S)
        look(processes)
        set_back(moved_clock, -HOUR_S)
        look(processes)
    assert moved(before, pending()) == [25 * HOUR_S] * 5
    assert len(clock_steps.json.loads(server_notes.find(clock_steps.NOTE))) == clock_steps.MAX_MACHINES


def test_a_machine_has_one_name_as_long_as_it_runs(monkeypatch):
    assert clock.machine() == clock.machine() != ""
    clock.machine.cache_clear()
    monkeypatch.setattr(clock.Path, "read_text", lambda path: (_ for _ in ()).throw(FileNotFoundError()))
    try:
        assert clock.machine() == clock.os.uname().nodename
    finally:
        clock.machine.cache_clear()
