"""What an account has stored, counted exactly, and what happens when it is too much."""

import sqlite3
from contextlib import closing

import pytest

from core import scheduler, storage
from process import clock
from store import database, notification_days, notifications
from tests.support.accounts import OWNER
from tests.support.heartbeats import Pinged
from tests.support.holding import held
from tests.support.pages import Visitor, make_account
from tests.support.server import ROOT
from tests.support.service import last
from tests.support.tables import query
from tests.support.times import DAY_S

TEXTS = {
    "notification": "account_seq, title, body, missing, url, tag, actions, acknowledge, tags",
    "metric_series": "account_seq, project_id, metric_id",
    "metric m JOIN metric_series s ON s.seq = series_seq": "account_seq, metric_name, unit, metadata",
}
NUMBERS = 16  # of a value and its time
SENTENCE = (
    "This account has stored 1 MB, the most that it may (ACCOUNT_MEGABYTES)."
    " Delete notifications or metrics, then try again after a minute."
)
HOME = "New notifications, events and metrics are refused"
BATCH = {"projectId": "web", "metrics": [{"metricId": "cpu", "metricName": "CPU", "value": 1}]}


def stored(service, account_seq=1):
    """The bytes that the account has stored, after a check that they are those of its rows."""
    total = NUMBERS * query(service, "SELECT count(*) FROM metric")[0][0] if account_seq == 1 else 0
    for table, columns in TEXTS.items():
        rows = query(service, f"SELECT {columns} FROM {table}")
        total += sum(len("".join(filter(None, row[1:])).encode()) for row in rows if row[0] == account_seq)
    counted = f"SELECT stored_bytes FROM notification_day WHERE account_seq = {account_seq} AND day = ''"
    assert query(service, counted) == [(total,)]
    return total


def send_metrics(caller, batch=BATCH):
    return caller.request("POST", "/api/webhooks/custom", batch)


def test_every_text_of_a_notification_is_counted():
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.executescript((ROOT / "schema.sql").read_text())
        columns = empty.execute("SELECT name FROM pragma_table_info('notification') WHERE type = 'TEXT'").fetchall()
    short = {"id", "status", "device_ids"}  # no longer than the rest of a row
    assert {name for (name,) in columns} == {*short, "title", "body", *notifications.TEXTS}


def test_storage_counts_all_stored_texts_and_no_deleted_ones(service, owner, moved_clock):
    owner.send("Größe", "🙂" * 10)
    assert stored(service) == len("MCP - Größe".encode()) + 40
    more = {"url": "https://example.org/ü", "tag": "t", "acknowledge": {"everyS": 60, "forS": 600}}
    content = {"title": "t", "body": "b", **more, "actions": [{"label": "A", "answer": "yes"}]}
    assert owner.post("/notifications/send", content).status_code == 200
    assert owner.post("/notifications/send", content).status_code == 200
    service.alert("--title", "{{ a }}", "--body", "{{ missing }}").post({"a": "é"})
    send_metrics(owner)
    metric = {"metricId": "load", "metricName": "Löad", "value": 2, "unit": "°C", "metadata": {"a": "b"}}
    send_metrics(owner, {"projectId": "web", "metrics": [metric, {**metric, "unit": None}]})
    before = stored(service)
    service.flask("metric", "delete", OWNER, "web", "load")
    assert stored(service) == before - len("webload") - 2 * (NUMBERS + len("Löad".encode()) + 9) - len("°C".encode())
    owner.delete(f"/notifications/{owner.listed()[0]['id']}")
    stored(service)
    moved_clock.advance(31 * DAY_S)
    service.work()
    assert stored(service) == 0


def test_a_digest_counts_with_what_it_says_now(service, owner, browser, night, morning):
    first, second, _ = held(service.alert(), "a", "bb", "ccc")
    morning()
    before = stored(service)
    owner.delete(f"/notifications/{second}")
    assert stored(service) == before - len("MCP - Backups" + "bb" + "Backups: bb\n")
    service.flask("history", "delete", OWNER, "--before", "2999-12-31")
    assert stored(service) == 0 and first


@pytest.fixture
def full(make_service, moved_clock, monkeypatch):
    """A service whose accounts may store 1 MB, here of 100,000 bytes, with one that has stored nearly that."""
    assert storage.MEGABYTE == 1_000_000
    monkeypatch.setattr(storage, "MEGABYTE", 100_000)
    service = make_service(ACCOUNT_MEGABYTES="1")
    make_account(service)
    caller = service.caller()
    for number in range(10):
        body = "é" * 5_000 if number else "é" * 4_000
        assert caller.send(str(number), body).status_code == 200
    assert send_metrics(caller).status_code == 200
    moved_clock.advance(60)
    service.work()
    return caller


def looks(full):
    scheduler.run_due(clock.now_ms(), [job for job in scheduler.RECORDS if job.run is storage.look])


def test_an_account_may_store_until_its_limit(full):
    assert stored(full.service) < 100_000 and full.send("t", "b" * 3_000).status_code == 200
    assert stored(full.service) > 100_000 and full.send("t", "b").status_code == 429


def refuse_everything(full, hook):
    """What is refused with which answer, while nothing is stored."""
    before = stored(full.service), query(full.service, "SELECT * FROM notification_day ORDER BY account_seq, day")
    answers = [
        full.send("t", "b"),
        full.post("/notifications/send", {"title": "t", "body": "b", "deliverAt": clock.now_ms() + 60_000}),
        hook.post({"message": "m"}),
        send_metrics(full),
        full.request("PUT", "/topic", data="m"),
        full.request("POST", "/gotify/message", {"message": "m"}),
    ]
    after = stored(full.service), query(full.service, "SELECT * FROM notification_day ORDER BY account_seq, day")
    assert after == before
    return answers


def test_beyond_the_limit_sends_events_and_metrics_are_refused_in_their_own_formats(full):
    full.service.account("other@example.org")
    hook, other = full.service.alert(), full.service.caller("other@example.org")
    first = full.send("x", "b" * 3_000, headers={"Idempotency-Key": "once"})
    answers = refuse_everything(full, hook)
    assert [(answer.status_code, answer.headers["Retry-After"]) for answer in answers] == [(429, "60")] * 6
    rest = {"ok": False, "error": SENTENCE, "code": "RATE_LIMIT_EXCEEDED", "statusCode": 429}
    send, later, event, metrics, ntfy, gotify = (answer.json for answer in answers)
    assert (send, later, event, metrics) == (rest, rest, rest, {"error": SENTENCE})
    assert (ntfy["http"], ntfy["error"]) == (429, SENTENCE)
    assert (gotify["errorCode"], gotify["errorDescription"]) == (429, SENTENCE)
    assert full.alerts()[0]["notificationCount"] == 0
    assert "ACCOUNT_MEGABYTES" in full.service.flask("send", OWNER, "t", "b").stderr
    again = full.send("x", "b" * 3_000, headers={"Idempotency-Key": "once"})
    assert (again.status_code, again.json) == (200, first.json)
    assert other.send().status_code == 200


def test_home_shows_a_full_account_and_deletion_frees_space_at_once(full):
    owner, hook = Visitor(full.service), full.service.alert()
    owner.sign_in()
    assert "ACCOUNT_MEGABYTES" not in owner.page("/app/").text
    full.send("t", "b" * 3_000)
    (told,) = [text for text in owner.page("/app/").texts_of("li") if HOME in text]
    assert "(ACCOUNT_MEGABYTES)" in told
    owner.get("/app/")
    assert SENTENCE in owner.refused("/app/test", status=429).text
    assert full.delete(f"/notifications/{full.listed()[0]['id']}").status_code == 200
    assert "ACCOUNT_MEGABYTES" not in owner.page("/app/").text
    assert full.send().status_code == hook.post({"message": "m"}).status_code == 200


def test_the_last_payloads_of_alerts_count_while_they_are_kept(full):
    hook = full.service.alert("--title", "t", "--body", "b")
    assert hook.post({"large": "p" * 5_000}).status_code == 200
    assert storage.LOOKED_EVERY_S < 60
    looks(full)
    assert hook.post({"message": "m"}).status_code == 429
    owner = Visitor(full.service)
    owner.sign_in()
    owner.get(f"/app/alerts/{hook.id}")
    assert owner.post(f"/app/alerts/{hook.id}/forget").status_code == 303
    looks(full)
    assert hook.post({"message": "m"}).status_code == 200


def test_beyond_the_limit_heartbeat_notifications_are_still_stored(full, moved_clock):
    beat = Pinged(full.service, full, "--period", "1m", "--grace", "1m")
    beat.ping()
    full.send("t", "b" * 3_000)
    assert full.send().status_code == 429
    moved_clock.advance(180)
    full.service.work()
    assert "down" in last(full)[0]


def test_an_account_that_has_stored_only_metrics_is_still_unused(service):
    service.account()
    with database.transaction(1):
        notification_days.add_bytes(1, 5)
    assert not notification_days.has_any(1)
