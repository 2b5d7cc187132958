"""The latest requests to an alert: noted in memory, written by the worker, the same for all processes."""

import pytest

from core import recent_requests
from core.recent_requests import Seen
from models import Alert
from store import alert_events
from store.database import WriteFailed, run, transaction
from store.senders import find_webhook


@pytest.fixture
def webhook(service, owner):
    return find_webhook(service.alert().code)


def noted(webhook, *seen):
    for one in seen:
        recent_requests.note(webhook, one)


def shown(webhook):
    return recent_requests.of_alert(webhook.alert_seq)


def test_requests_outlast_a_restart_once_the_worker_has_written_them(service, webhook, make_service):
    first, second = Seen(1, 200, "delivered", 1, "a" * 32), Seen(2, 400, "wrong")
    noted(webhook, first, second)
    service.work()
    assert shown(webhook) == [second, first]
    make_service()
    assert shown(webhook) == [second, first]
    noted(webhook, Seen(3, 400, "wrong"))
    assert shown(webhook) == [Seen(3, 400, "wrong", 2, since=2), first]
    service.work()
    assert shown(webhook) == [Seen(3, 400, "wrong", 2, since=2), first]


def test_stopping_the_service_writes_the_requests_of_all_alerts(service, webhook, make_service, monkeypatch):
    monkeypatch.setattr(recent_requests, "MAX_WRITTEN", 1)
    hooks = [webhook, find_webhook(service.alert(name="Other").code)]
    for hook in hooks:
        noted(hook, Seen(1, 200, "delivered"))
    recent_requests.write_all()
    make_service()
    assert [len(shown(hook)) for hook in hooks] == [1, 1]


def test_thirty_requests_of_an_alert_are_kept_however_many_come(service, webhook):
    for number in range(70):
        noted(webhook, Seen(number, 200, "delivered"))
        if number % 20 == 0:
            service.work()
    assert [one.at for one in shown(webhook)] == list(range(69, 39, -1))
    service.work()
    assert [one.at for one in shown(webhook)] == list(range(69, 39, -1))


def test_a_flood_writes_one_row_a_second(service, webhook, monkeypatch):
    written = []
    put = alert_events.put_requests
    monkeypatch.setattr(alert_events, "put_requests", lambda *values: written.append(put(*values)))
    for number in range(500):
        noted(webhook, Seen(number, 429, "more than 60 a minute"))
    service.work()
    service.work()
    assert len(written) == 1 and shown(webhook) == [Seen(499, 429, "more than 60 a minute", 500, since=0)]


def test_requests_to_many_alerts_are_written_in_pieces_and_few_wait(service, webhook, monkeypatch):
    monkeypatch.setattr(recent_requests, "MAX_WRITTEN", 3)
    monkeypatch.setattr(recent_requests, "MAX_ALERTS", 7)
    hooks = [find_webhook(service.alert(name=f"{n}").code) for n in range(9)]
    for hook in hooks:
        noted(hook, Seen(1, 200, "delivered"))
    assert [recent_requests.write(0) for _ in range(3)] == [True, True, False]
    assert [len(shown(hook)) for hook in hooks] == [0, 0, *[1] * 7]


def test_requests_that_cannot_be_written_are_written_later_in_order(service, webhook, monkeypatch):
    first, second, third = (Seen(n, 200, "delivered") for n in range(3))

    def failing(alert_seq, requests):
        noted(webhook, third)  # meanwhile
        raise WriteFailed("full")

    noted(webhook, first, second)
    with monkeypatch.context() as patch:
        patch.setattr(alert_events, "put_requests", failing)
        assert not recent_requests.write(0)
    assert shown(webhook) == [third, second, first]
    service.work()
    assert shown(webhook) == [third, second, first]


def test_deleting_an_alert_deletes_its_requests_even_unwritten_ones(service, webhook):
    noted(webhook, Seen(1, 200, "delivered"))
    service.work()
    other = find_webhook(service.alert(name="Other").code)
    for hook in (webhook, other):
        noted(hook, Seen(2, 200, "delivered"))
    with transaction(webhook.account_seq):
        Alert.get_by_id(webhook.alert_seq).delete_instance()
    service.work()
    assert run("SELECT alert_seq FROM alert_requests").fetchall() == [(other.alert_seq,)] and shown(webhook) == []
