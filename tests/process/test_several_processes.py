"""Two worker processes on PostgreSQL and Redis."""

import base64
import json
import os

import pytest

from core import people
from models import Account
from process import clock
from store.engine import ServerUrl
from tests.support import postgresql
from tests.support.accounts import OTHER
from tests.support.ntfy_app import Listener, add_topic
from tests.support.server import BIN, bearer, finished, in_threads, join, serving, wait_until
from tests.support.service import METRICS_TOKEN


@pytest.fixture(scope="module")
def two_workers(redis_server, tmp_path_factory):
    data = tmp_path_factory.mktemp("two")  # each time that this is called in this process, with another number
    url = postgresql.new_database(f"{data.name}_{os.getpid()}")
    environ = {"DATABASE_URL": url, "REDIS_URL": redis_server.url, "WEB_CONCURRENCY": "2"}
    with serving(data / "data", METRICS_TOKEN=METRICS_TOKEN, **environ) as server:
        server.key, server.allowed, server.asked = server.wait_until_ready().owner_key("starter"), 0, 0
        server.database = ServerUrl(url, 1)
        yield server


def race(server, each=8):
    """What 16 threads with a new key get as status and `X-RateLimit-Remaining`, each so many times."""
    key, answers = server.new_key(server.key), []

    def ask(_):
        for _ in range(each):
            answer = server.get("/api/v1/stats", key)
            answers.append((answer.status, int(answer.headers["X-RateLimit-Remaining"])))

    join(in_threads(16, ask))
    server.allowed += sum(status == 200 for status, _ in answers)
    server.asked += len(answers)
    return answers


def undisturbed(server):
    """A race in which this machine was not too busy for Redis to answer in time."""
    for _ in range(5):
        wait_until(lambda: server.log.count("Redis cannot be used") == server.log.count("Redis can be used again"))
        before = server.log.count("Redis can")
        answers = race(server)
        if server.log.count("Redis can") == before:
            return answers
    raise AssertionError(server.log)


def test_a_quota_is_one_over_both_and_each_remaining_is_told_once(two_workers):
    answers = undisturbed(two_workers)
    assert two_workers.log.count("Booting worker") == 2
    assert sorted(left for status, left in answers if status == 200) == list(range(100))
    assert {answer for answer in answers if answer[0] != 200} == {(429, 0)} and len(answers) == 128


def test_metrics_add_up_over_both_processes(two_workers):
    race(two_workers, 1)
    answered = 'pocketbell_responses_total{method="GET",route="/api/v1/stats",status="200"} '
    wait_until(lambda: counted(two_workers, answered) == two_workers.allowed)
    timed = 'pocketbell_request_seconds_count{route="/api/v1/stats"} '
    wait_until(lambda: counted(two_workers, timed) == two_workers.asked)


def counted(server, line):
    """How many requests were answered by either, as whichever answers knows so far."""
    told = server.get("/metrics", METRICS_TOKEN).text.splitlines()
    return sum(float(one.removeprefix(line)) for one in told if one.startswith(line))


def test_waits_and_streams_in_either_process_end_with_their_key_or_account(two_workers):
    keys, ended = {name: two_workers.new_key(two_workers.key, name) for name in ("expires", "revoked")}, []
    keys["disabled"] = two_workers.owner_key(email=OTHER)
    sent = {key: json.loads(two_workers.send(key).text)["notification"]["id"] for key in keys.values()}
    auth = [base64.urlsafe_b64encode(f"Bearer {key}".encode()).decode() for key in keys.values()]
    streams = [Listener(two_workers, "backups", f"none&auth={one}") for one in auth * 3]

    def wait(number):
        key = [*sent][number % 3]
        answer = two_workers.get(f"/api/v1/notifications/{sent[key]}?wait=25", key)
        if "Retry-After" not in answer.headers:  # else as many as may wait in that process
            ended.append((answer.status, clock.now_ms()))

    ends = clock.now_ms() + 1_000
    with postgresql.beside(two_workers.database) as connection:
        connection.execute(f"UPDATE api_key SET expires_at = {ends} WHERE name = 'expires'")
        (revoked,) = connection.execute("SELECT id FROM api_key WHERE name = 'revoked'").fetchone()
    waiting = in_threads(9, wait)
    two_workers.request("DELETE", f"/api/v1/api-keys/{revoked}", headers=bearer(two_workers.key))
    with two_workers.beside():
        people.disable(Account.find(OTHER).seq, clock.now_ms())
    join(waiting)
    assert {status for status, _ in ended} == {401} and max(at for _, at in ended) >= ends
    assert [[event["event"] for event in iter(stream.event, None)] for stream in streams] == [["open"]] * 9
    with two_workers.beside():
        people.enable(Account.find(OTHER).seq, clock.now_ms())
    assert {two_workers.get("/api/v1/stats", keys["disabled"]).status for _ in range(8)} == {200}


def test_administrators_who_unmake_each_other_in_two_processes_leave_one(two_workers):
    two_workers.owner_key(email="second@example.org")
    statuses = []

    def unmake(number):
        command = [BIN / "flask", "account", "set", before[number][0], "--no-admin"]
        statuses.append(finished(two_workers.start, command, two_workers.environ).returncode)

    with postgresql.beside(two_workers.database) as connection, postgresql.beside(two_workers.database) as other:
        connection.execute("UPDATE account SET is_administrator = 1, password_hash = 'x'")
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        administrators = "SELECT email FROM account WHERE is_administrator = 1 AND disabled_at IS NULL"
        before = connection.execute(administrators).fetchall()
        with other.transaction():
            other.execute("SELECT FROM account FOR UPDATE")  # so that all have come before any writes
            threads = in_threads(len(before), unmake)
            wait_until(lambda: connection.execute(waiting).fetchone() == (len(before),))
        join(threads)
        after = connection.execute(administrators).fetchall()
    assert (sorted(statuses), len(after)) == ([0] * (len(before) - 1) + [1], 1) and len(before) > 1


def test_what_a_mute_held_and_a_snooze_put_off_comes_once_from_either(two_workers):
    key, mute = two_workers.key, json.dumps({"what": "all", "forS": 3600})
    topic = add_topic(two_workers, key)
    listener = Listener(two_workers, topic["topic"])
    for number in range(2):
        names = [f"{number}{letter}" for letter in "abc"]
        snoozed = json.loads(two_workers.send(key, body=names[0]).text)["notification"]["id"]
        assert listener.bodies(1) == names[:1]
        path = f"/api/v1/notifications/{snoozed}/snooze"
        assert two_workers.request("POST", path, '{"forS": 60}', bearer(key)).status == 200
        muted = json.loads(two_workers.request("POST", "/api/v1/mutes", mute, bearer(key)).text)["mute"]["id"]
        for name in names[1:]:
            two_workers.send(key, body=name)
        with postgresql.beside(two_workers.database) as connection:
            connection.execute("UPDATE snooze SET until = 1 WHERE until IS NOT NULL")
            held = "SELECT count(*) FROM held WHERE digest_seq IS NULL"
            wait_until(lambda held=held, read=connection: read.execute(held).fetchone() == (3,))
        assert two_workers.request("DELETE", f"/api/v1/mutes/{muted}", headers=bearer(key)).status == 200
        assert listener.bodies(1) == ["\n".join(f"t: {name}" for name in names)]
    two_workers.send(key, body="last")
    assert listener.bodies(1) == ["last"]
    two_workers.request("DELETE", f"/api/v1/devices/{topic['id']}", headers=bearer(key))
