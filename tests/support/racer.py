"""A process that races with others like it on one database.

It is told the settings, the race, the numbers of its threads and what they are given; at the next word, all of its
threads begin at once. It then tells what each thread made of it.
"""

import random
import re
import threading
import traceback

import config
from app import app
from core import (
    accounts,
    alarms,
    answers,
    delivery,
    devices,
    digests,
    followers,
    heartbeats,
    retries,
    scheduled,
    scheduler,
)
from core import heartbeat_checks as checks
from core.attempts import LEASE_MS, note_outcomes
from core.definitions import KINDS
from models import Account, Alert
from process import clock
from providers.base import Answer, Outcome
from store import database, deliveries, sqlite_connection, sqlite_writer
from store.senders import Owner, find_webhook
from tests.support import forks
from tests.support.memory import open_service
from tests.support.server import PATIENCE_S
from tests.support.tables import spare_the_disk
from wire.errors import Refused
from wire.notification import Content

OWNER = "owner@example.org"
RACES = {}


def race(work):
    """Let `work` be a race: it is called in each thread with the thread's number."""
    RACES[work.__name__] = work
    return work


def owner():
    return Account.find(OWNER)


def sender():
    return Owner.of(owner())


def tries(times, attempt):
    """How many of these attempts were not refused."""
    done = 0
    for _ in range(times):
        try:
            attempt()
            done += 1
        except Refused as refused:
            assert refused.status in (400, 409, 429), refused
    return done


@race
def set_up(number, token):
    form = {"email": f"owner{number}@example.org", "password": "correct horse", "time_zone": "UTC"}
    try:
        return accounts.use_link(token, form, clock.now_ms()).email
    except Refused as refused:
        assert refused.status == 404, refused
        return None


@race
def send(number, times):
    return tries(times, lambda: delivery.deliver(sender(), Content("title", f"of {number}")))


@race
def send_with_keys(number, keys):
    left = random.sample(keys, len(keys))
    return tries(len(left), lambda: delivery.deliver(sender(), Content("title", "body"), left.pop()))


@race
def add_devices(number, times):
    account_seq = owner().seq
    return tries(times, lambda: devices.add_device(account_seq, {"kind": "ntfy"}, clock.now_ms()))


@race
def add_heartbeats(number, times):
    settings = {"name": "Backup", "period": "1h"}
    return tries(times, lambda: heartbeats.create_heartbeat(owner(), settings, clock.now_ms()))


@race
def put_definitions(number, sent):
    """Which kinds this thread made: the others were there already."""
    put = {kind.name: kind.put(owner(), kind.checked(sent[kind.name]), clock.now_ms()) for kind in KINDS}
    return [name for name, (_, is_new) in put.items() if is_new]


@race
def send_alarms(number, times):
    alarm = Content("Disk", "full", acknowledge=(60, 3_600))
    return tries(times, lambda: delivery.deliver(sender(), alarm))


@race
def settle(number, due, times):
    """Note outcomes for the same devices, half of the threads in one order and half in the other."""
    account_seq, now = owner().seq, clock.now_ms()
    attempts = [deliveries.ATTEMPT.one(*one) for one in due][:: 1 if number % 2 else -1]
    for _ in range(times):
        with database.transaction(account_seq):
            note_outcomes(attempts, [Answer(Outcome.TRANSIENT, "later") for _ in attempts], now)
    return times


@race
def claim(number, due):
    with database.transaction(owner().seq):
        now = clock.now_ms()
        return len(deliveries.claim(map(tuple, due), now, now + LEASE_MS))


@race
def release_digests(number):
    digests.release_due(clock.now_ms())


@race
def release_scheduled(number):
    scheduled.release_due(clock.now_ms())


@race
def pass_deadlines(number):
    checks._backoff.each(clock.now_ms(), checks.heartbeats.due, checks._pass_deadline)


@race
def answer_copies(number, asked):
    """Answer and acknowledge each of these questions in one of the accounts that have it; which were the first."""
    first = []
    for place, ids in enumerate(asked):
        email, id_ = ids[(number + place) % len(ids)]
        account = Account.find(email)
        if number % 2:
            alarms.acknowledge_notification(account.seq, id_, clock.now_ms())
            continue
        try:
            answers.answer(account, id_, number % 3)
            first.append((place, email, number % 3))
        except Refused as refused:
            assert refused.status == 409, refused
    return first


def send_event(account, alert_id, content):
    code = Alert.find(account.seq, alert_id).short_code
    delivery.deliver_event(find_webhook(code), code, content, None, None)


@race
def follow_and_send(number, subject, times):
    """Invite, accept, leave, remove and send at the same time."""
    owned, now = owner(), clock.now_ms()
    email = f"{number % 4}@example.org"
    for _ in range(times):
        try:
            one, _ = followers.invite(owned.seq, "alert", subject, email, now)
            account = Account.find(email)
            followers.accept(account, one.id, now)
            send_event(owned, subject, Content("title", f"of {number}", tag="disk"))
            if number % 2:
                followers.leave(account, one.id, now)
            else:
                followers.remove(owned.seq, "alert", subject, one.id, now)
        except Refused as refused:
            assert refused.status in (400, 404), refused
    return times


@race
def work(number, now_ms):
    """Three rounds of the background worker at this time."""
    clock.now_ms = lambda: now_ms
    for _ in range(3):
        scheduler.run_due(now_ms)
    retries.batches.finish()


def run(work, numbers, given):
    """Call `work` in a thread for each number, all at once; what each returned, or why it did not."""
    results, start = {}, threading.Barrier(len(numbers))

    def one(number):
        start.wait()
        try:
            results[number] = work(number, **given)
        except Exception:
            results[number] = traceback.format_exc()
        finally:
            database.give_back()

    threads = [threading.Thread(target=one, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[number] for number in numbers]


def be_patient(url):
    """Let nobody give up: the races are about what comes of them, however long a busy machine takes."""
    if not url.startswith("postgresql:"):
        sqlite_connection.BUSY_TIMEOUT_MS, sqlite_writer.TURN_WAIT_S = PATIENCE_S * 1000, PATIENCE_S
        return
    from store import postgresql, postgresql_connection

    postgresql.TURN_WAIT_S = postgresql.POOL_WAIT_S = postgresql.ANSWER_S = PATIENCE_S
    limits = r"(lock_timeout|statement_timeout|idle_in_transaction_session_timeout) = '\d+s'"
    postgresql_connection.OF_CONNECTION = re.sub(limits, r"\1 = 0", postgresql_connection.OF_CONNECTION)


def main(connection):
    accounts.password_hash = lambda *_: "scrypt:128:1:1$pocketbell$00"
    while order := connection.recv():
        environ, name, numbers, given = order
        be_patient(environ.get("DATABASE_URL", ""))
        open_service(app, config.load(environ))
        spare_the_disk()
        connection.send("ready")
        connection.recv()
        connection.send(run(RACES[name], numbers, given))
        database.close()


class Racers:
    """Two such processes."""

    THREADS = 8  # of each

    def __init__(self):
        self.connections, self.processes = [], []
        for _ in range(2):
            ours, theirs = forks.context.Pipe()
            process = forks.context.Process(target=main, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self.connections.append(ours)
            self.processes.append(process)

    def close(self):
        for connection, process in zip(self.connections, self.processes, strict=True):
            connection.send(None)
            process.join(60)
            connection.close()

    def race(self, service, name, meanwhile=None, environ=None, **given):
        """Run a race on the service's database, with more variables if given; what each of 16 threads returned."""
        environ = {"DATA_DIR": str(service.data_dir), **service.where, **(environ or {})}
        for place, connection in enumerate(self.connections):
            connection.send((environ, name, list(range(place, 2 * self.THREADS, 2)), given))
        for connection in self.connections:
            assert connection.recv() == "ready"
        for connection in self.connections:
            connection.send("go")
        if meanwhile:
            meanwhile()
        results = [one for connection in self.connections for one in connection.recv()]
        faults = [one for one in results if "Traceback" in str(one)]
        assert not faults, faults[0]
        return results
