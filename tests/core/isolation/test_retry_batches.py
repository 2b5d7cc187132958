"""Accounts are retried beside each other, and share the threads."""

import pytest

import push
from core import batches, retries
from tests.support.isolation import KINDS, account, in_thread, later, listed, pending, sent, work

# The worker


def test_a_hanging_provider_does_not_delay_retries_of_another_account(ann, bob, device, gate, moved_clock):
    pending(ann, device(ann))
    moved_clock.advance(30)
    gate.close(ann)
    retries.retry_due(moved_clock.ms)
    assert gate.holds(1)
    phone = device(bob)
    pending(bob, phone)
    moved_clock.advance(30)
    retries.retry_due(moved_clock.ms)
    assert gate.until(lambda: phone.messages)
    assert gate.holds(1)
    gate.open()
    retries.batches.finish()
    assert (listed(ann), listed(bob)) == (["delivered"], ["delivered"])


def test_an_account_has_one_batch_of_at_most_ten_under_way(ann, device, gate, service, moved_clock):
    phone = device(ann)
    pending(ann, phone, 12)
    moved_clock.advance(30)
    gate.begun.clear()
    gate.close(ann)
    for _ in range(3):
        retries.retry_due(moved_clock.ms)
    assert gate.holds(1)
    gate.open()
    retries.batches.finish()
    work(service)
    assert gate.most["ann@example.org"] == 1
    assert max(rows for _, rows in gate.begun) <= 10
    assert (listed(ann), len(phone.messages), len(phone.pushes)) == (["delivered"] * 12, 12, 24)


def test_retries_that_fall_due_during_an_accounts_batch_start_when_the_batch_ends(
    ann, device, gate, service, moved_clock
):
    phone = device(ann)
    pending(ann, phone)
    moved_clock.advance(5)
    pending(ann, phone)
    moved_clock.advance(25)
    gate.close(ann)
    retries.retry_due(moved_clock.ms)
    assert gate.holds(1)
    moved_clock.advance(5)
    retries.batches.due.clear()
    retries.retry_due(moved_clock.ms)
    gate.open()
    retries.batches.finish()
    work(service)
    assert listed(ann) == ["delivered"] * 2
    assert gate.most["ann@example.org"] == 1


def test_at_most_eight_accounts_are_retried_at_a_time_and_the_next_as_soon_as_there_is_room(
    service, device, gate, moved_clock
):
    callers = [account(service, f"n{number}") for number in range(10)]
    for caller in callers:
        pending(caller, device(caller))
    moved_clock.advance(30)
    gate.begun.clear()
    gate.close(*callers)
    retries.batches.due.clear()
    for _ in range(3):
        retries.retry_due(moved_clock.ms)
    assert gate.holds(8)
    assert not gate.until(lambda: len(gate.begun) > 8, timeout=0.3)
    first = gate.begun[0][0].partition("@")[0]
    gate.open(*(caller for caller in callers if caller.name == first))
    assert retries.batches.due.wait(4) or len(gate.begun) > 8
    retries.retry_due(moved_clock.ms)
    assert gate.until(lambda: len(gate.begun) == 9)
    gate.open()
    retries.batches.finish()
    work(service)
    assert [listed(caller) for caller in callers] == [["delivered"]] * 10
    assert gate.most_accounts == 8


def test_accounts_take_turns_however_old_their_backlogs_are(ann, bob, device, gate, moved_clock, monkeypatch):
    monkeypatch.setattr(batches, "ACCOUNTS", 1)
    pending(ann, device(ann), 12)
    moved_clock.advance(5)
    pending(bob, device(bob))
    moved_clock.advance(30)
    gate.begun.clear()
    retries.batches.turns.clear()
    for _ in range(3):
        retries.retry_due(moved_clock.ms)
        retries.batches.finish()
    assert [email for email, _ in gate.begun] == ["ann@example.org", "bob@example.org", "ann@example.org"]


def test_a_failing_batch_does_not_affect_others_and_is_retried(ann, bob, device, service, moved_clock, monkeypatch):
    for caller in (ann, bob):
        pending(caller, device(caller))
    moved_clock.advance(30)
    send = push.send

    def break_for_ann(pushes, timeout_s):
        if pushes and pushes[0].email == "ann@example.org":
            raise RuntimeError
        return send(pushes, timeout_s)

    with monkeypatch.context() as patched:
        patched.setattr(push, "send", break_for_ann)
        work(service)
    assert (listed(ann), listed(bob)) == (["pending"], ["delivered"])
    later(service, moved_clock, 60)
    assert listed(ann) == ["delivered"]


def test_retry_after_of_a_retry_is_honoured_in_place_of_the_backoff(ann, device, service, moved_clock):
    phones = [device(ann, kind).then(503).then(503, Retry_After="300") for kind in KINDS]
    assert sent(ann) == "pending"
    later(service, moved_clock, 30)
    later(service, moved_clock, 299)
    assert ([len(phone.pushes) for phone in phones], listed(ann)) == ([2] * 3, ["pending"])
    later(service, moved_clock, 1)
    assert ([len(phone.messages) for phone in phones], listed(ann)) == ([1] * 3, ["delivered"])


# Shares of the threads


@pytest.fixture
def sixteen_threads(make_service, push_service, moved_clock):
    retries.batches.due.clear()
    return make_service(WEBPUSH_HOSTS=push_service.origin, THREADS="16")


def test_a_request_over_its_accounts_quarter_is_pending_at_once_and_others_are_not(sixteen_threads, device, gate):
    ann, bob = (account(sixteen_threads, name) for name in ("ann", "bob"))
    phone, _ = device(ann), device(bob)
    gate.close(ann)
    running = [in_thread(ann) for _ in range(4)]
    assert gate.holds(4)
    assert (sent(ann), retries.batches.due.is_set()) == ("pending", True)
    assert sent(bob) == "delivered"
    gate.open()
    assert [status() for status in running] == ["delivered"] * 4
    work(sixteen_threads)
    assert (listed(ann), len(phone.messages), len(phone.pushes)) == (["delivered"] * 5, 5, 5)


def test_when_eight_threads_are_left_a_request_is_pending_at_once(sixteen_threads, device, gate):
    ann, bob, eve = callers = [account(sixteen_threads, name) for name in ("ann", "bob", "eve")]
    for caller in callers:
        device(caller)
    gate.close(ann, bob)
    running = [in_thread(caller) for caller in (ann, bob) for _ in range(4)]
    assert gate.holds(8)
    assert (sent(eve), retries.batches.due.is_set()) == ("pending", True)
    retries.batches.due.clear()
    work(sixteen_threads)  # while all the others still wait
    assert listed(eve) == ["delivered"]
    gate.open()
    assert [status() for status in running] == ["delivered"] * 8
    assert sent(eve) == "delivered"
