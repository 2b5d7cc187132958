"""A repeat never delays pushes of another account."""

import pytest

from core import alarms, batches, retries
from tests.support.alarms import ring, rung
from tests.support.isolation import account, in_thread, listed, pending


@pytest.fixture
def hangs(ann, device, gate, moved_clock):
    """A repeat of Ann's is under way, and her provider does not answer."""
    device(ann)
    id_ = ring(ann)
    moved_clock.advance(60)
    gate.close(ann)
    alarms.repeat_due(moved_clock.ms)
    assert gate.holds(1)
    yield id_
    gate.open()
    alarms.batches.finish()


def test_a_repeat_that_hangs_delays_neither_sends_nor_retries_nor_repeats_of_others(
    hangs, bob, device, gate, moved_clock
):
    phone = device(bob)
    pending(bob, phone)
    ring(bob)
    assert (len(phone.messages), gate.holds(1)) == (1, True)
    moved_clock.advance(30)
    retries.retry_due(moved_clock.ms)
    assert gate.until(lambda: len(phone.messages) == 2) and gate.holds(1)
    moved_clock.advance(30)
    alarms.repeat_due(moved_clock.ms)
    assert gate.until(lambda: len(phone.messages) == 3) and gate.holds(1)


def test_a_repeat_that_hangs_takes_no_slot_of_what_its_own_account_sends(hangs, ann, gate):
    status = in_thread(ann)
    assert gate.holds(2)
    gate.open()
    assert status() == "delivered"


def test_repeats_of_as_many_accounts_as_there_are_threads_delay_no_retry(service, bob, device, gate, moved_clock):
    callers = [account(service, f"caller{number}") for number in range(batches.ACCOUNTS + 2)]
    for caller in callers:
        device(caller)
        ring(caller)
    phone = device(bob)
    moved_clock.advance(30)
    pending(bob, phone)
    moved_clock.advance(30)
    gate.close(*callers)
    alarms.batches.due.clear()
    alarms.repeat_due(moved_clock.ms)
    assert gate.holds(batches.ACCOUNTS)
    retries.retry_due(moved_clock.ms)
    assert gate.until(lambda: phone.messages)
    gate.open()
    alarms.batches.finish()
    retries.batches.finish()
    assert alarms.batches.due.is_set()  # the others are taken up at once
    alarms.repeat_due(moved_clock.ms)
    alarms.batches.finish()
    assert listed(bob) == ["delivered"]


def test_an_account_has_one_batch_of_repeats_under_way(hangs, ann, gate, moved_clock):
    gate.begun.clear()
    for _ in range(3):
        moved_clock.advance(60)
        alarms.repeat_due(moved_clock.ms)
    gate.open()
    alarms.batches.finish()
    assert gate.most["ann@example.org"] == 1
    assert rung(ann, hangs) == ("waiting", 1)
