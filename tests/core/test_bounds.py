"""Everything that a key or a code can add to has a limit: backlogs, keys, devices, metrics."""

import pytest

import models
import push
from core import accounts, devices, firing, floods, pruning, recording, retries, storage
from core.plans import PLANS
from core.turns import Turns
from process import clock
from store import database, held_notifications, notification_days
from store.custom_metrics import MetricValue
from store.database import EVERYBODY, WriteFailed, run, transaction
from tests.support.accounts import account_set
from tests.support.alarms import every
from tests.support.devices import subscribe
from tests.support.memory import open_service
from tests.support.rows import each
from tests.support.tables import query
from tests.support.times import DAY_MS, DAY_S


@pytest.fixture
def unreachable(owner):
    """The id of a device whose provider is not configured: what is sent to it stays pending."""
    return owner.post("/devices", {"kind": "fcm", "token": "token"}).json["device"]["id"]


def statuses(service):
    return dict(query(service, "SELECT status, count(*) FROM notification GROUP BY status"))


def add_pending(number):
    """Add `count` notifications of the first account that are pending on its newest device, and due."""
    with transaction(EVERYBODY):
        (last,) = run("SELECT coalesce(max(seq), 0) FROM notification").fetchone()
        text = "CAST(:last + i AS TEXT)"
        run(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :number)"
            " INSERT INTO notification (id, account_seq, title, body, status, created_at)"
            f" SELECT substr('{'0' * 32}' || {text}, length({text}) + 1), 1, 'MCP - t', 'b', 'pending', :now FROM n",
            {"number": number, "last": last, "now": clock.now_ms()},
        )
        run(
            "INSERT INTO delivery SELECT seq, (SELECT max(seq) FROM device), 'pending', 0, created_at, NULL, NULL"
            " FROM notification WHERE seq > ?",
            (last,),
        )


# --- backlogs -----------------------------------------------------------------------------------------------


def test_a_send_or_an_event_beyond_what_may_be_pending_is_refused_with_429_and_stored_nowhere(
    service, owner, unreachable, monkeypatch, moved_clock
):
    monkeypatch.setattr(storage, "MAX_PENDING", 3)
    hook = service.alert()
    assert hook.post({"message": "a"}).status_code == 200
    assert [owner.send().status_code for _ in range(3)] == [200, 200, 429]
    refused = owner.send()
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert refused.json["code"] == "RATE_LIMIT_EXCEEDED" and "pending" in refused.json["error"]
    refused = hook.post({"message": "b"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert refused.json["error"] == "Rate limit exceeded"
    assert query(service, "SELECT notification_count FROM alert") == [(1,)]
    assert statuses(service) == {"pending": 3}
    owner.delete(f"/notifications/{owner.listed()[0]['id']}")
    moved_clock.advance(2)
    assert owner.send().status_code == 200


@pytest.mark.parametrize("first", [0, 3_600_000])
def test_what_is_sent_later_counts_as_pending(service, owner, unreachable, monkeypatch, moved_clock, first):
    monkeypatch.setattr(storage, "MAX_PENDING", 3)

    def send(in_ms):
        later = {"deliverAt": moved_clock.ms + in_ms} if in_ms else {}
        return owner.post("/notifications/send", {"title": "t", "body": "b", **later}).status_code

    assert [send(in_ms) for in_ms in (first, 3_600_000, first, 3_600_000, 0)] == [200, 200, 200, 429, 429]


def test_a_repeated_request_is_answered_as_before_whatever_is_pending(service, owner, unreachable, monkeypatch):
    monkeypatch.setattr(storage, "MAX_PENDING", 1)
    first = owner.send(headers={"Idempotency-Key": "once"})
    again = owner.send(headers={"Idempotency-Key": "once"})
    assert (again.status_code, again.json) == (200, first.json)


def test_removing_a_device_settles_whatever_is_pending_on_it(service, owner, monkeypatch):
    monkeypatch.setattr(devices, "ROWS", 5)
    settled = 0
    for pending in (4, 5, 6, 17):
        id_ = add_device(owner, "token")
        add_pending(pending)
        settled += pending
        assert owner.delete(f"/devices/{id_}").status_code == 200
        service.work()
        assert (statuses(service), query(service, "SELECT * FROM delivery")) == ({"delivered": settled}, [])


def test_what_is_pending_on_a_dead_device_fails_in_pieces(service, owner, push_service, monkeypatch):
    monkeypatch.setattr(devices, "ROWS", 5)
    browser = subscribe(owner, push_service)
    add_pending(17)
    browser.then(410)
    assert owner.send().json["notification"]["status"] == "failed"
    service.work()
    assert statuses(service) == {"failed": 18}
    errors = query(service, "SELECT error, count(*) FROM delivery GROUP BY error")
    assert ("The device was removed before it could be reached.", 17) in errors


def test_pushes_to_an_unconfigured_provider_are_not_tried_and_fail_after_a_day(
    service, owner, unreachable, moved_clock, monkeypatch
):
    monkeypatch.setattr(retries, "ROWS", 5)
    owner.send()
    add_pending(6)
    every(service, moved_clock, DAY_S - 60)
    assert statuses(service) == {"pending": 7}
    assert query(service, "SELECT max(attempts) FROM delivery") == [(1,)]
    every(service, moved_clock, 3_600)
    assert statuses(service) == {"failed": 7}
    assert query(service, "SELECT DISTINCT error FROM delivery") == [("FCM is not configured on this server.",)]


def test_devices_of_an_account_are_tried_in_turn_however_long_one_backlog_is(
    owner, push_service, moved_clock, monkeypatch
):
    monkeypatch.setattr(held_notifications, "lines", None)  # of digests, of which there is none
    first = subscribe(owner, push_service)
    add_pending(100)
    moved_clock.advance(1)
    second = subscribe(owner, push_service)
    add_pending(3)
    retries.retry_due(clock.now_ms())
    retries.batches.finish()
    assert (len(first.messages), len(second.messages)) == (7, 3)


def test_a_device_that_refuses_its_backlog_is_skipped_for_some_seconds(service, owner, push_service, moved_clock):
    phone = subscribe(owner, push_service)
    add_pending(100)
    for _ in range(20):
        phone.then(503)
    for _ in range(3):
        service.work()
    assert len(phone.pushes) == 10
    every(service, moved_clock, 11)
    assert len(phone.pushes) == 20


# --- a flood of notifications -------------------------------------------------------------------------------


def test_the_owner_is_told_once_a_day_when_the_history_grows_by_more_than_100000_rows(pro, moved_clock, monkeypatch):
    assert recording.MANY_A_DAY == 100_000
    monkeypatch.setattr(recording, "MANY_A_DAY", 5)
    for _ in range(2):
        for _ in range(12):
            pro.send("t", "b")
        moved_clock.advance(DAY_S)
    titles = [row["title"] for row in pro.listed("?limit=100")]
    assert titles.count("MCP - 5 notifications today") == 2 and len(titles) == 26


def test_the_notice_of_a_growing_history_ignores_quiet_hours(service, owner, push_service, moved_clock, monkeypatch):
    monkeypatch.setattr(recording, "MANY_A_DAY", 2)
    browser = subscribe(owner, push_service)
    account_set("--quiet-hours", "09:00-11:00")
    hook = service.alert()
    assert [hook.post({"message": "a"}).json["status"] for _ in range(2)] == ["held", "held"]
    service.work()
    assert [one["notification"]["title"] for one in browser.messages] == ["MCP - 2 notifications today"]


def test_a_flood_on_a_database_that_cannot_be_written_gets_429_and_pauses_the_alert_when_it_can(
    service, owner, monkeypatch, caplog
):
    hook = service.alert()
    for _ in range(499):
        hook.post({"message": "a"})

    def fail(*_):
        raise WriteFailed("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(floods, "transaction", fail)
        assert {hook.post({"message": "a"}).status_code for _ in range(50)} == {429}
    assert query(service, "SELECT is_active FROM alert") == [(1,)]
    assert caplog.text.count("The pause of a flooded alert could not be written") == 1  # of an outage, one
    assert hook.post({"message": "a"}).status_code == 429
    assert query(service, "SELECT is_active FROM alert") == [(0,)]
    assert owner.listed("?limit=1")[0]["title"] == "MCP - Alert paused: Backups"
    assert query(service, "SELECT count(*) FROM notification WHERE alert_seq IS NULL") == [(0,)]
    assert hook.post({"message": "a"}).status_code == 429


# --- keys and devices ---------------------------------------------------------------------------------------


def ids(service, table):
    return [row[0] for row in query(service, f"SELECT id FROM {table} ORDER BY seq")]


def test_a_revoked_key_that_never_sent_anything_is_purged_after_90_days(service, owner, moved_clock):
    made = owner.post("/api-keys/generate", {"name": "n"}).json["apiKey"]["id"]
    owner.delete(f"/api-keys/{made}")
    every(service, moved_clock, 89 * DAY_S)
    assert made in ids(service, "api_key")
    every(service, moved_clock, DAY_S + 3_600)
    assert made not in ids(service, "api_key") and len(ids(service, "api_key")) == 1
    assert owner.delete(f"/api-keys/{made}").status_code == 404


def test_a_revoked_key_stays_while_the_history_names_it(service, pro, moved_clock):
    other = service.caller("pro@example.org", "other")
    other.send()
    service.work()
    (key_id,) = (one["id"] for one in pro.get("/api-keys").json["apiKeys"] if one["name"] == "other")
    pro.delete(f"/api-keys/{key_id}")
    every(service, moved_clock, 300 * DAY_S)
    assert key_id in ids(service, "api_key")
    every(service, moved_clock, 66 * DAY_S)
    assert key_id not in ids(service, "api_key")


def test_a_revoked_key_stays_while_it_has_a_device(service, owner, moved_clock):
    other = service.caller(name="other")
    other.post("/devices", {"kind": "fcm", "token": "token"})
    (key_id,) = (one["id"] for one in owner.get("/api-keys").json["apiKeys"] if one["name"] == "other")
    owner.delete(f"/api-keys/{key_id}")
    every(service, moved_clock, 200 * DAY_S)
    assert key_id in ids(service, "api_key")


def add_device(caller, token):
    return caller.post("/devices", {"kind": "fcm", "token": token}).json["device"]["id"]


def test_a_removed_device_without_history_is_purged_after_90_days_but_for_the_last_one(
    service, owner, pro, moved_clock
):
    pro.send()  # whose history is another one
    first, second, third = (add_device(owner, token) for token in "abc")
    for device in (third, first, second):
        owner.delete(f"/devices/{device}")
        moved_clock.advance(1)
    every(service, moved_clock, 89 * DAY_S)
    assert ids(service, "device") == [first, second, third]
    every(service, moved_clock, 2 * DAY_S)
    assert ids(service, "device") == [second]


def test_a_removed_device_stays_while_the_history_names_it(service, pro, moved_clock, passes):
    first, last = (add_device(pro, token) for token in "ab")
    pro.send()
    for device in (first, last):
        pro.delete(f"/devices/{device}")
        moved_clock.advance(1)
    every(service, moved_clock, 364 * DAY_S)
    assert ids(service, "device") == [first, last]
    passes(2 * DAY_S)
    assert ids(service, "device") == [last]


# --- metrics ------------------------------------------------------------------------------------------------


def put(account_seq, times, metric="m", project="p"):
    """Add values at these times, in this order; each value is its place in it."""
    values = [MetricValue(metric, "M", float(place), None, at, None) for place, at in enumerate(times)]
    firing.store_values(account_seq, project, values)


def kept(service):
    return [row[0] for row in query(service, "SELECT value FROM metric ORDER BY timestamp, seq")]


@pytest.fixture
def keeps_three(monkeypatch):
    monkeypatch.setitem(PLANS, "starter", PLANS["starter"]._replace(metric_values=3))


def test_above_the_limit_the_oldest_values_are_removed_first_by_their_timestamps(
    service, owner, keeps_three, moved_clock
):
    now = moved_clock.ms
    put(1, [now - 5, now - 1, now - 3, now - 2, now - 4])
    every(service, moved_clock, 3_600)
    assert kept(service) == [2.0, 3.0, 1.0]


def test_the_limit_of_values_counts_all_metrics_of_one_account(service, owner, keeps_three, moved_clock):
    service.account("other@example.org")
    for metric in "abcd":
        put(1, [moved_clock.ms], metric)
        moved_clock.advance(1)
    put(2, [moved_clock.ms] * 3)
    every(service, moved_clock, 3_600)
    assert query(service, "SELECT metric_id FROM metric_series ORDER BY seq") == [("b",), ("c",), ("d",), ("m",)]


def test_values_older_than_the_plans_history_do_not_count(service, owner, keeps_three, moved_clock):
    put(1, [moved_clock.ms - 31 * DAY_S * 1_000] * 2 + [moved_clock.ms] * 3)
    every(service, moved_clock, 3_600)
    assert kept(service) == [2.0, 3.0, 4.0]


def test_a_large_excess_of_values_is_removed_over_several_rounds(
    service, owner, keeps_three, moved_clock, monkeypatch
):
    monkeypatch.setattr(pruning, "MAX_EXCESS", 10)
    put(1, range(moved_clock.ms, moved_clock.ms + 40))
    moved_clock.advance(3_600)
    for _ in range(4):
        service.work()
    assert kept(service) == [37.0, 38.0, 39.0]


def test_values_older_than_the_plans_history_are_removed_and_metrics_without_values_too(
    service, owner, moved_clock, monkeypatch
):
    monkeypatch.setattr(pruning, "ROWS", 5)
    for number in range(7):
        put(1, [moved_clock.ms, moved_clock.ms], f"m{number}")
    put(1, [moved_clock.ms + DAY_MS], "newer")
    every(service, moved_clock, 30 * DAY_S + 60)
    assert query(service, "SELECT metric_id FROM metric_series") == [("newer",)]
    assert kept(service) == [0.0]


# --- the clock ----------------------------------------------------------------------------------------------


def restart(service):
    open_service(service.app, service.settings)


def test_a_clock_that_is_a_year_ahead_at_one_start_erases_nothing_and_is_logged_once(
    service, owner, moved_clock, caplog
):
    owner.send(headers={"Idempotency-Key": "once"})
    put(1, [moved_clock.ms])
    right = moved_clock.ms
    moved_clock.set_wall(right + 366 * DAY_MS)
    restart(service)
    for _ in range(5):
        service.work()
        owner.send()
        moved_clock.advance(4.5 * 3_600)
    moved_clock.set_wall(right + DAY_MS)
    restart(service)
    service.work()
    assert (len(owner.listed("?limit=100")), kept(service)) == (6, [0.0])
    assert caplog.text.count("366 days ahead") == 1


def test_a_service_that_was_off_for_long_removes_what_is_too_old_a_day_later(service, owner, moved_clock):
    owner.send()
    moved_clock.advance(40 * DAY_S)
    restart(service)
    service.work()
    assert len(query(service, "SELECT 1 FROM notification")) == 1
    moved_clock.advance(DAY_S)
    restart(service)
    service.work()
    assert query(service, "SELECT 1 FROM notification") == []


def test_a_database_without_a_noted_time_is_trusted_up_to_its_newest_notification(service, owner, moved_clock):
    owner.send()
    with transaction(EVERYBODY):
        run("DELETE FROM server_note")
    moved_clock.set_wall(moved_clock.ms + 366 * DAY_MS)
    restart(service)
    service.work()
    assert len(query(service, "SELECT 1 FROM notification")) == 1


# --- while it is busy ---------------------------------------------------------------------------------------


def test_a_change_of_time_zone_counts_only_what_came_meanwhile_in_its_transaction(owner, monkeypatch):
    """Counting a long history takes a while, and others want to write meanwhile."""
    owner.send()
    counted, count = [], notification_days.count_by_quarter_hour

    def note(account_seq, since, after, until):
        counted.append((database._engine._threads.own.writing is not None, after))
        if not counted[-1][0]:
            owner.send()  # comes while the history is counted
        return count(account_seq, since, after, until)

    monkeypatch.setattr(notification_days, "count_by_quarter_hour", note)
    account_set("--timezone", "Asia/Tokyo")
    assert counted == [(False, 0), (True, 1)]
    assert owner.get("/stats").json["stats"]["notificationsThisDay"] == 2
    monkeypatch.setattr(accounts, "zone_turns", Turns(1, {"all": 0}, 0, accounts.zone_turns.refuse))
    with accounts.zone_turns.turn("all"):
        assert owner.patch("/account", {"timeZone": "UTC"}).status_code == 429


def test_a_use_of_a_key_that_comes_while_uses_are_written_is_written_the_next_time(service, owner, monkeypatch):
    (key,) = models.ApiKey.select()
    models.ApiKey.mark_used(key.seq, 1_000)
    run_later = models.run_later

    def use_again(statement, values):
        models.ApiKey.mark_used(key.seq, 2_000)
        run_later(statement, values)

    with monkeypatch.context() as patched:
        patched.setattr(models, "run_later", use_again)
        models.ApiKey.write_used()
    assert query(service, "SELECT last_used_at FROM api_key") == [(1_000,)]
    models.ApiKey.write_used()
    assert query(service, "SELECT last_used_at FROM api_key") == [(2_000,)]


@each("source", ["retry", "send", "event"])
def test_a_push_under_way_is_leased_for_its_maximum_duration(
    service, owner, push_service, moved_clock, source, monkeypatch
):
    """With a lease shorter than a push, the push would be sent twice."""
    browser = subscribe(owner, push_service)
    hook, send = service.alert(), push.send
    if source == "retry":
        browser.then(503)
        owner.send()
        moved_clock.advance(30)

    def slowly(pushes, timeout_s):
        monkeypatch.setattr(push, "send", send)
        moved_clock.advance(timeout_s)
        retries.batches.busy.clear()  # as in another process
        retries.retry_due(clock.now_ms())
        return send(pushes, 5)

    sources = {
        "send": owner.send,
        "event": lambda: hook.post({"message": "a"}),
        "retry": lambda: retries.retry_due(clock.now_ms()),
    }
    monkeypatch.setattr(push, "send", slowly)
    sources[source]()
    retries.batches.finish()
    assert (owner.listed()[0]["status"], len(browser.messages)) == ("delivered", 1)
