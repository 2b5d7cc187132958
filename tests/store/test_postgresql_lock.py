"""One service at a time on a PostgreSQL database: who takes the lock, who waits for it, and what ends it."""

import threading

import pytest

from store.database import DatabaseRefused
from tests.support import postgresql as servers
from tests.support.server import wait_until


@pytest.fixture
def lock(engine):
    from store import postgresql_lock

    yield postgresql_lock
    while postgresql_lock._kept_open:
        postgresql_lock._kept_open.pop().close()


def test_a_second_service_waits_and_then_stops_with_a_line(url, lock, monkeypatch):
    told, pauses = [], []
    monkeypatch.setattr(lock, "LOOKS", 3)
    monkeypatch.setattr(lock, "_pause", lambda: pauses.append(1))
    lock.take(url, told.append)
    with pytest.raises(DatabaseRefused, match="stop it first"):
        lock.take(url, told.append)
    assert (len(told), len(pauses)) == (1, 3) and "waiting" in told[0]


def test_a_second_service_takes_the_lock_when_the_first_ends(url, lock, monkeypatch):
    lock.take(url, print)

    def end_first():
        lock._kept_open.pop().close()
        locks = f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = {lock.OUR_LOCKS}"
        with servers.beside(url) as other:
            wait_until(lambda: not other.execute(locks).fetchone())

    monkeypatch.setattr(lock, "_pause", end_first)
    lock.take(url, lambda told: None)
    assert len(lock._kept_open) == 1


def test_a_claim_waits_only_for_a_service_that_is_just_ending(url, lock, monkeypatch):
    """The server needs a moment to end a connection and to free its lock, more when it has much to do."""
    monkeypatch.setattr(lock, "LOOKS_AT_LEAVING", 3)
    leaving = [lock.connected(url) for _ in range(2)]
    leaving[0].execute(lock.TAKE)

    def end():
        if leaving:
            one = leaving.pop()
            ours = f"SELECT 1 FROM pg_stat_activity WHERE pid = {one.info.backend_pid}"
            one.close()
            with servers.beside(url) as other:
                wait_until(lambda: not other.execute(ours).fetchone())

    monkeypatch.setattr(lock, "_pause", end)
    lock.claim(url)
    assert (leaving, len(lock._kept_open)) == ([], 1)
    with pytest.raises(DatabaseRefused, match="stop it first"):
        lock.claim(url)


def test_a_claim_whose_connection_is_lost_is_made_on_another(url, lock, monkeypatch):
    lost = [lock.connected(url)]
    servers.end_connections(url)
    monkeypatch.setattr(lock, "patiently_connected", lambda url: lost.pop() if lost else lock.connected(url))
    lock.claim(url)
    assert len(lock._kept_open) == 1 and not lock._kept_open[0].closed


def test_a_second_service_goes_on_waiting_when_the_server_is_started_anew(url, lock, monkeypatch):
    monkeypatch.setattr(lock, "LOOKS", 3)
    lock.take(url, print)

    def start_anew():
        servers.end_connections(url)
        assert lock.is_held(url)

    monkeypatch.setattr(lock, "_pause", start_anew)
    with pytest.raises(DatabaseRefused, match="stop it first"):
        lock.take(url, print)


def test_a_lock_that_was_lost_with_its_connection_is_taken_again_unless_another_has_it(url, lock):
    lock.take(url, print)
    servers.end_connections(url)
    assert lock.is_held(url) and lock.is_held(url)
    servers.end_connections(url)
    with servers.beside(url) as other:
        other.execute(lock.TAKE)
        assert not lock.is_held(url)


def test_a_lost_connection_whose_end_the_server_has_not_seen_yet_stops_no_service(url, lock, monkeypatch):
    lock.take(url, print)
    assert lock._kept_open[0].execute("SHOW tcp_keepalives_idle").fetchone() == ("5",)  # soon, it will
    looks, lost = [True, *[False] * 3, True, *[False] * 4], threading.Event()
    monkeypatch.setattr(lock, "is_held", lambda _: looks.pop(0))
    monkeypatch.setattr(lock, "KEPT_EVERY_S", 0)
    lock.keep(url, lost.set)
    assert lost.wait(20) and not looks
