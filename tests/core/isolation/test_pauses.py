"""A provider that does not answer is paused for 30 seconds, and then probed with one push."""

import threading
from unittest.mock import ANY

import push
from core import retries
from providers.transport import FAILURES, Reply
from tests.support.isolation import KINDS, in_thread, later, listed, pending, sent
from tests.support.rows import each

PAUSE_S = 30
ROUND_S = 5


class Unanswered(list):
    """A stand-in's list of pushes, none of which is answered before `answer` is set."""

    def __init__(self, pushes=()):
        super().__init__(pushes)
        self.came, self.answer = threading.Event(), threading.Event()

    def append(self, each):
        super().append(each)
        self.came.set()
        self.answer.wait(4)


class Always(list):
    """A stand-in's script that never ends."""

    def pop(self, index=-1):
        return self[index]


def unanswered(caller, phone, times=3):
    """Send `times` notifications whose pushes get no answer."""
    for _ in range(times):
        phone.then(0)
        assert sent(caller) == "pending"


def leave(caller):
    """Remove all devices, and so what is pending on them."""
    for one in caller.get("/devices").json["devices"]:
        assert caller.delete(f"/devices/{one['id']}").status_code == 200


# A provider that does not answer is left alone


def test_after_three_unanswered_pushes_the_next_is_pending_and_the_provider_is_not_called_for_30_seconds(
    ann, device, moved_clock
):
    phone = device(ann)
    unanswered(ann, phone)
    answer = ann.send("Disk", "full")
    assert answer.status_code == 200
    assert answer.json == {
        "ok": True,
        "notification": {
            "id": ANY,
            "title": "MCP - Disk",
            "body": "full",
            "status": "pending",
            "createdAt": moved_clock.ms,
        },
    }
    moved_clock.advance(PAUSE_S - 1)
    assert (sent(ann), len(phone.pushes), phone.messages) == ("pending", 3, [])
    moved_clock.advance(2)
    assert (sent(ann), len(phone.pushes)) == ("delivered", 4)


def test_three_failed_connections_or_timeouts_pause_a_provider(ann, device, monkeypatch):
    asked = []

    def fail(requests, timeout_s):
        asked.append(7 if len(asked) == 1 else 28)  # of libcurl: a refused connection, and a timeout
        return [Reply(failure=FAILURES[asked[-1]])]

    device(ann, "apns")
    monkeypatch.setattr(push, "send_all", fail)
    assert [sent(ann) for _ in range(4)] == ["pending"] * 4
    assert len(asked) == 3


def test_unanswered_pushes_of_one_request_count_as_one(ann, device):
    phones = [device(ann) for _ in range(3)]
    for _ in range(2):
        for phone in phones:
            phone.then(0)
        assert sent(ann) == "pending"
    assert sent(ann) == "delivered"


def test_one_answered_push_of_a_request_resets_the_count(ann, device):
    silent, answered = device(ann), device(ann)
    silent.answers = Always(silent.then(0).answers)
    for number in range(1, 5):
        assert sent(ann) == "delivered"
        assert len(answered.messages) == number


def test_any_answer_resets_the_count_of_unanswered_pushes(ann, device):
    phone = device(ann)
    for status in (201, 401, 403, 413, 429, 500, 503):
        unanswered(ann, phone, 2)
        phone.then(status)
        sent(ann)
        assert phone.answers == [], f"{status} was not asked for"
    unanswered(ann, phone, 2)
    assert sent(ann) == "delivered"


def test_a_pause_does_not_change_the_backoff(ann, bob, device, service, moved_clock):
    phone = device(bob)
    pending(bob, phone)
    moved_clock.advance(29)
    unanswered(ann, device(ann))
    leave(ann)
    later(service, moved_clock, 1)
    later(service, moved_clock, 28)
    assert len(phone.pushes) == 1
    phone.then(503)
    later(service, moved_clock, 2)
    assert len(phone.pushes) == 2
    later(service, moved_clock, 59)
    assert len(phone.pushes) == 2
    later(service, moved_clock, 1)
    assert (len(phone.pushes), listed(bob)) == (3, ["delivered"])


# Other origins


def test_a_pause_affects_only_its_own_origin(ann, device):
    phones = {kind: device(ann, kind) for kind in KINDS}
    for kind, phone in phones.items():  # each that is paused stays so
        for _ in range(3):  # the others' answers do not begin its count again either
            phone.then(0)
            assert sent(ann) == ("pending" if kind == KINDS[-1] else "delivered")
    assert sent(ann) == "pending"
    shown = {kind: (len(phone.pushes), len(phone.messages)) for kind, phone in phones.items()}
    assert shown == {kind: (3 * place + 3, 3 * place) for place, kind in enumerate(KINDS)}


# The probe


def test_while_one_request_probes_a_provider_another_is_pending_at_once(ann, bob, device, service, moved_clock):
    probing, waiting = device(ann), device(bob)
    unanswered(ann, probing)
    moved_clock.advance(PAUSE_S + 1)
    probing.pushes = Unanswered(probing.pushes)
    status = in_thread(ann)
    try:
        assert probing.pushes.came.wait(4)
        assert (sent(bob), waiting.pushes) == ("pending", [])
    finally:
        probing.pushes.answer.set()
    assert status() == "delivered"
    later(service, moved_clock, ROUND_S)
    assert (listed(bob), len(waiting.pushes)) == (["delivered"], 1)


def test_the_worker_probes_a_provider_with_one_push_across_all_accounts(ann, bob, device, gate, moved_clock):
    phones = [device(ann), device(bob)]
    unanswered(ann, phones[0])
    assert sent(bob) == "pending"
    moved_clock.advance(PAUSE_S + 1)
    began = gate.ended
    pushes = phones[0].pushes = phones[1].pushes = Unanswered()
    retries.retry_due(moved_clock.ms)
    try:
        assert gate.until(lambda: gate.ended == began + 1)  # that of the one who does not probe
        assert pushes.came.wait(4)
        assert len(pushes) == 1
    finally:
        pushes.answer.set()
    retries.batches.finish()


def test_of_two_pushes_in_one_request_one_probes_and_the_other_follows(ann, bob, device, service, moved_clock):
    unanswered(bob, device(bob))
    leave(bob)
    phones = [device(ann), device(ann)]
    moved_clock.advance(PAUSE_S + 1)
    assert sent(ann) == "delivered"
    assert sorted(len(phone.pushes) for phone in phones) == [0, 1]
    later(service, moved_clock, ROUND_S)
    assert [len(phone.messages) for phone in phones] == [1, 1]


def test_an_unanswered_probe_starts_another_pause(ann, device, service, moved_clock):
    phone = device(ann)
    unanswered(ann, phone)
    assert [sent(ann), sent(ann)] == ["pending"] * 2
    phone.answers = Always(phone.then(0).answers)
    later(service, moved_clock, PAUSE_S + 1)
    assert len(phone.pushes) == 4
    later(service, moved_clock, PAUSE_S - 1)
    assert (sent(ann), len(phone.pushes)) == ("pending", 4)
    phone.answers = []
    later(service, moved_clock, 2)
    later(service, moved_clock, ROUND_S)
    assert sent(ann) == "delivered"


@each("status", [201, 403, 429, 503])
def test_an_answered_probe_ends_the_pause_and_it_takes_three_unanswered_pushes_to_pause_again(
    ann, device, moved_clock, status
):
    phone = device(ann)
    unanswered(ann, phone)
    moved_clock.advance(PAUSE_S + 1)
    phone.then(status)
    sent(ann)
    assert sent(ann) == "delivered"
    unanswered(ann, phone, 2)
    assert sent(ann) == "delivered"
    assert len(phone.pushes) == 8
    leave(ann)


def test_a_device_that_never_answers_delays_others_of_its_origin_by_less_than_a_minute(
    ann, bob, device, service, moved_clock
):
    for _ in range(2):
        phone = device(ann)
        phone.answers = Always(phone.then(0).answers)
    phone = device(bob)
    for minute in range(1, 4):
        for second in range(0, 60, 3):
            moved_clock.advance(1)
            sent(ann)  # as soon as a pause has ended: each may be the probe
            if second == 21:
                sent(bob)
            later(service, moved_clock, 2)
        assert len(phone.messages) >= minute - 1
    for _ in range(20):
        later(service, moved_clock, 3)
    assert listed(bob) == ["delivered"] * 3
