"""The header Idempotency-Key on send."""

import hashlib
import json

import pytest

import push
from core import idempotency
from core.idempotency import request_hash
from process import clock
from tests.support.answers import error
from tests.support.rows import each
from tests.support.tables import FULL, alter
from tests.support.times import HOUR_S
from tests.support.webhooks import at_once
from wire.notification import Content


def send(caller, key="order-1", title="Backup", body="finished"):
    return caller.send(title, body, headers={"Idempotency-Key": key})


@pytest.fixture
def send_and_crash(owner, monkeypatch):
    """A function that sends with a key, and dies between storing and pushing."""

    def crash(*_):
        raise KeyboardInterrupt

    def crashing(key="order-1"):
        with monkeypatch.context() as patched:
            patched.setattr(push, "send", crash)
            with pytest.raises(KeyboardInterrupt):
                send(owner, key)

    return crashing


# The same key


@each("other", ["order-2", "Order-1", "order-1x", "order-", '"order-1"'])
def test_another_key_sends_again(owner, other):
    first, second = send(owner), send(owner, other)
    assert (second.status_code, second.headers.get("Idempotent-Replayed")) == (200, None)
    assert first.json["notification"]["id"] != second.json["notification"]["id"]


def test_a_replay_counts_against_the_rate_limit(owner):
    send(owner)
    assert send(owner).headers["X-RateLimit-Remaining"] == "98"


# Another body


@each(
    "title, body",
    [
        ("Backup", "failed"),
        ("backup", "finished"),
        ("Backupf", "inished"),
        ("Backup", "finished "),
        ("finished", "Backup"),
        ("Backup\nfinished", "."),
    ],
)
def test_the_same_key_with_another_body_is_refused_and_sends_nothing(owner, browser, title, body):
    first = send(owner)
    answer = send(owner, title=title, body=body)
    assert (answer.status_code, answer.json) == (400, error(400))
    assert "Idempotent-Replayed" not in answer.headers
    assert len(browser.pushes) == 1
    assert send(owner).data == first.data


# The hash of a request


BARE = Content("MCP - Backup", "finished")
OPTIONAL = [name for name in Content._fields if name in Content._field_defaults]


def test_the_hash_of_title_and_body_is_that_of_earlier_versions():
    expected = hashlib.sha256(json.dumps(["MCP - Backup", "finished"]).encode()).digest()
    assert request_hash(BARE) == expected
    assert request_hash(BARE._replace(**{name: Content._field_defaults[name] for name in OPTIONAL})) == expected


def test_every_field_of_a_notification_changes_the_hash_but_the_way_on_which_it_came():
    fields = [name for name in Content._fields if name != "hops"]
    hashes = {request_hash(BARE._replace(**{name: ("another",)})) for name in fields}
    assert len(hashes | {request_hash(BARE)}) == len(fields) + 1


# 24 hours


def test_a_key_is_replayed_for_24_hours_and_then_sends_again(owner, service, moved_clock):
    first = send(owner)
    moved_clock.advance(24 * HOUR_S - 1)
    service.work()
    assert send(owner).data == first.data
    moved_clock.advance(2)
    again = send(owner, title="another")
    assert (again.status_code, again.headers.get("Idempotent-Replayed")) == (200, None)
    assert again.json["notification"]["id"] != first.json["notification"]["id"]
    assert send(owner, title="another").data == again.data


# 1-255 visible ASCII characters


@each("key", ["a", "~", "!", "k" * 255, '"quoted"', "8e03978e-40d5-43dd-bc93-6894a57f9324", ",;:%00"])
def test_a_key_of_1_to_255_visible_ascii_characters_is_taken(owner, key):
    first = send(owner, key)
    assert (first.status_code, send(owner, key).headers["Idempotent-Replayed"]) == (200, "true")


@each(
    "key",
    [
        *("", "k" * 256, "k" * 10_000, "two words", "a\tb", "é", "\xa0", "a\x7f", "a\x01", "\x00"),
        "漢".encode().decode("latin-1"),
    ],
)
def test_any_other_key_is_refused_and_nothing_sent(owner, key):
    answer = send(owner, key)
    assert (answer.status_code, answer.json) == (400, error(400))
    assert owner.listed() == []


# Only 200s are kept


@each(
    "data",
    [
        *(b"{", b"{}", b'{"title": "Backup"}', b'{"title": "", "body": "b"}', b'{"title": 1, "body": "b"}'),
        b" " * 1_100_000,
    ],
)
def test_a_refused_body_is_not_kept(new_owner, data):
    (_, owner), headers = new_owner(), {"Idempotency-Key": "order-1"}
    assert owner.request("POST", "/api/v1/notifications/send", data=data, headers=headers).status_code in (400, 413)
    answer = send(owner)
    assert (answer.status_code, answer.headers.get("Idempotent-Replayed")) == (200, None)


@each("table", ["notification", "idempotency_key"])
def test_a_write_that_cannot_be_made_is_500_and_neither_is_kept(service, new_owner, table):
    _, owner = new_owner()
    alter(service, f"CREATE TRIGGER full BEFORE INSERT ON {table} {FULL}")
    answer = send(owner)
    assert (answer.status_code, answer.json) == (500, error(500) | {"code": "INTERNAL_ERROR"})
    alter(service, "DROP TRIGGER full")
    assert owner.listed() == []
    again = send(owner)
    assert (again.status_code, again.headers.get("Idempotent-Replayed")) == (200, None)
    assert owner.listed() == [again.json["notification"]]


# The first answer


def test_a_pending_first_answer_is_replayed_as_it_was(owner, browser, service, moved_clock):
    browser.then(503)
    first = send(owner)
    assert first.json["notification"]["status"] == "pending"
    moved_clock.advance(30)
    service.work()
    assert owner.listed()[0]["status"] == "delivered"
    assert send(owner).data == first.data


def test_after_a_crash_the_stored_one_is_the_answer(
    owner, browser, make_service, push_service, moved_clock, monkeypatch, send_and_crash
):
    monkeypatch.setattr(idempotency, "is_shared", lambda: False)
    send_and_crash()
    moved_clock.advance(1)
    owner.service = make_service(WEBPUSH_HOSTS=push_service.origin)
    (stored,) = owner.listed()
    answer = send(owner)
    assert (answer.status_code, answer.json) == (200, {"ok": True, "notification": stored})
    assert answer.headers["Idempotent-Replayed"] == "true"
    moved_clock.advance(30)
    owner.service.work()
    assert (len(owner.listed()), len(browser.messages)) == (1, 1)


def test_in_a_shared_database_the_first_may_be_running_elsewhere_until_it_is_6_s_old(
    owner, browser, moved_clock, monkeypatch, send_and_crash
):
    monkeypatch.setattr(idempotency, "is_shared", lambda: True)
    send_and_crash()
    moved_clock.advance(0.1)
    clock.begin()  # this process began later
    for after_s, status in ((5.8, 409), (0.1, 200)):
        moved_clock.advance(after_s)
        assert send(owner).status_code == status
    assert len(owner.listed()) == 1


# A notification that was deleted meanwhile


def test_a_deleted_notification_is_replayed_for_24_hours_and_not_sent_again(service, owner, browser, moved_clock):
    first = send(owner)
    moved_clock.advance(24 * HOUR_S - 1)
    owner.delete(f"/notifications/{first.json['notification']['id']}")
    service.work()
    again, other = send(owner), send(owner, title="another")
    assert (again.status_code, again.data, again.headers["Idempotent-Replayed"]) == (200, first.data, "true")
    assert (other.status_code, owner.listed(), len(browser.pushes)) == (400, [], 1)
    moved_clock.advance(2)
    assert "Idempotent-Replayed" not in send(owner).headers
    assert (len(owner.listed()), len(browser.pushes)) == (1, 2)


def test_a_deleted_notification_is_replayed_with_everything_that_was_answered(owner, moved_clock):
    sent = {
        "title": "Disk",
        "body": "98 % full",
        "priority": "high",
        "url": "https://nas.example.org/disks",
        "tag": "disk",
        "actions": [{"answer": "yes", "label": "Yes"}],
        "deliverAt": moved_clock.ms + 60_000,
        "expiresAt": moved_clock.ms + 120_000,
    }
    headers = {"Idempotency-Key": "order-1"}
    first = owner.post("/notifications/send", sent, headers=headers)
    owner.delete(f"/notifications/{first.json['notification']['id']}")
    moved_clock.advance(180)
    again = owner.post("/notifications/send", sent, headers=headers)
    assert (again.status_code, again.data) == (200, first.data)
    assert first.json["notification"].keys() > sent.keys() and owner.listed() == []


def test_a_notification_deleted_before_its_answer_is_replayed_unchanged(owner, browser, monkeypatch):
    push_all = push.send

    def delete_meanwhile(pushes, timeout_s):
        owner.delete(f"/notifications/{owner.listed()[0]['id']}")
        return push_all(pushes, timeout_s)

    monkeypatch.setattr(push, "send", delete_meanwhile)
    first = send(owner)
    assert (first.status_code, owner.listed()) == (200, [])
    assert (send(owner).data, len(browser.pushes)) == (first.data, 1)


def test_a_notification_deleted_after_a_crash_is_replayed_as_failed(owner, browser, moved_clock, send_and_crash):
    send_and_crash()
    (stored,) = owner.listed()
    owner.delete(f"/notifications/{stored['id']}")
    moved_clock.advance(6)  # where several processes may serve, it counts as still running before
    answer = send(owner)
    assert (answer.status_code, answer.json) == (200, {"ok": True, "notification": stored | {"status": "failed"}})
    assert (stored["status"], owner.listed(), browser.pushes) == ("pending", [], [])


# While the first is still running


@pytest.mark.parametrize("is_shared", [True, False])
def test_while_the_first_is_running_its_key_is_409_and_other_keys_and_accounts_go_on(
    service, owner, pro, browser, monkeypatch, is_shared
):
    monkeypatch.setattr(idempotency, "is_shared", lambda: is_shared)
    answers, push_all = [], push.send

    def meanwhile(pushes, timeout_s):
        monkeypatch.setattr(push, "send", push_all)
        answers.extend([send(owner), send(service.caller(name="second")), send(owner, title="another")])
        answers.extend([send(owner, "order-2"), owner.send(), send(pro)])
        return push_all(pushes, timeout_s)

    monkeypatch.setattr(push, "send", meanwhile)
    first, again = send(owner), send(owner)
    assert [answer.status_code for answer in answers] == [409, 409, 400, 200, 200, 200]
    assert (answers[0].json, answers[0].headers["X-RateLimit-Limit"]) == (error(409), "100")
    assert (again.status_code, again.data, again.headers["Idempotent-Replayed"]) == (200, first.data, "true")
    assert (len(owner.listed()), len(browser.pushes)) == (3, 3)


def test_threads_that_send_the_same_key_at_once_send_one(owner, browser):
    def ask():
        headers = {"Authorization": f"Bearer {owner.key}", "Idempotency-Key": "order-1"}
        sent = {"title": "t", "body": "b"}
        return owner.service.app.test_client().post("/api/v1/notifications/send", json=sent, headers=headers)

    answers = at_once(8, ask)
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len({answer.data for answer in answers if answer.status_code == 200}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers if answer.status_code == 200) == 1
    assert (len(owner.listed()), len(browser.pushes)) == (1, 1)
