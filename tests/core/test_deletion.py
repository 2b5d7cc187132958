"""What an owner deletes: notifications, history, metrics, accounts."""

from io import BytesIO

import pytest

from core import accounts, deletion, delivery, devices, firing, heartbeats
from models import ApiKey
from store import custom_metrics, notifications
from store.custom_metrics import MetricValue
from store.database import WriteFailed
from store.senders import Owner
from tests.support.accounts import OWNER, PASSWORD, account_set
from tests.support.alarms import every
from tests.support.commands import said
from tests.support.picture_files import png
from tests.support.postgresql import sqlite_only
from tests.support.rows import each
from tests.support.tables import copy_first_row, query
from tests.support.times import DAY_S
from wire.errors import Refused
from wire.notification import Content


def delete(caller, notification_id):
    return caller.delete(f"/notifications/{notification_id}")


# --- one notification ---------------------------------------------------------------------------------------


def test_a_deleted_held_notification_is_not_pushed(service, owner, browser, passes):
    hook = service.alert("--frequency", "15m")
    first, _ = (hook.post({"message": message}).json["notificationId"] for message in "ab")
    assert delete(owner, first).status_code == 200
    passes(900)
    assert [one["notification"]["body"] for one in browser.messages] == ["b"]


def test_a_digest_is_not_listed_and_cannot_be_deleted_by_its_id(service, owner, browser, moved_clock):
    hook = service.alert("--frequency", "15m")
    for message in "ab":
        hook.post({"message": message})
    every(service, moved_clock, 900)
    ((digest_id,),) = query(service, "SELECT id FROM notification WHERE is_digest = 1")
    assert delete(owner, digest_id).status_code == 404


def test_a_deleted_history_leaves_no_text_in_a_later_digest(service, owner, browser, moved_clock):
    moved_clock.set_wall(1_795_305_000_000)  # 2026-11-21 23:50 UTC
    hook = service.alert("--frequency", "15m")
    for message in "ab":
        hook.post({"message": message})
        moved_clock.advance(660)
    every(service, moved_clock, 300)
    lines(service, "history", "delete", OWNER, "--before", "2026-11-22")
    assert query(service, "SELECT title, body FROM notification WHERE is_digest = 1") == [
        ("MCP - 1 notification", "Backups: b")
    ]


# --- commands -----------------------------------------------------------------------------------------------


def lines(service, *args):
    result = service.flask(*args)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_history_before_a_day_of_the_accounts_zone_is_deleted(service, pro, moved_clock):
    account_set("--timezone", "Asia/Tokyo", email="pro@example.org")
    moved_clock.set_wall(1_795_273_199_000)  # 2026-11-21 23:59:59 in Tokyo
    pro.send("old")
    moved_clock.advance(1)
    pro.send("new")
    assert lines(service, "history", "delete", "pro@example.org", "--before", "2026-11-22") == [
        "Deleted 1 notification from before 2026-11-22."
    ]
    assert [row["title"] for row in pro.listed()] == ["MCP - new"]


def test_digests_are_deleted_with_the_history_but_not_counted(service, owner, browser, moved_clock):
    hook = service.alert("--frequency", "15m")
    for _ in range(2):
        for message in "abc":
            hook.post({"message": message})
        every(service, moved_clock, 900)
    assert query(service, "SELECT count(*), sum(is_digest) FROM notification") == [(8, 2)]
    assert lines(service, "history", "delete", OWNER, "--before", "2999-12-31") == [
        "Deleted 6 notifications from before 2999-12-31."
    ]
    assert query(service, "SELECT * FROM notification") == []


def test_an_invalid_day_deletes_nothing(service, owner):
    owner.send()
    for day in ("", "yesterday", "2026-11-31", "2026-1-1", "22.11.2026"):
        assert "2026-11-21" in said(service.flask("history", "delete", OWNER, "--before", day)), day
    assert len(owner.listed()) == 1


def put(account_seq, project, metric, values=1):
    value = MetricValue(metric, "M", 1.0, None, 1_795_255_200_000, None)
    for _ in range(0, values, 100):
        firing.store_values(account_seq, project, [value] * min(100, values))


def series(service):
    return query(service, "SELECT account_seq, project_id, metric_id FROM metric_series ORDER BY seq")


def test_a_metric_is_deleted_with_its_values(service, owner):
    service.account("other@example.org")
    for account_seq in (1, 2):
        put(account_seq, "p", "a", 1_300)
        put(account_seq, "p", "b")
    assert lines(service, "metric", "delete", OWNER, "p", "a") == ["Deleted 1,300 values of a."]
    assert series(service) == [(1, "p", "b"), (2, "p", "a"), (2, "p", "b")]


def test_a_whole_project_is_deleted(service, owner):
    for project, metric in (("p", "a"), ("p", "b"), ("q", "a")):
        put(1, project, metric)
    assert lines(service, "metric", "delete", OWNER, "p") == ["Deleted 2 values of p."]
    assert series(service) == [(1, "q", "a")]


@each("args, words", [(("p", "x"), 'metric "x" in the project "p"'), (("x",), 'project "x"')])
def test_deleting_an_unknown_metric_names_it(service, owner, args, words):
    put(1, "p", "a")
    assert words in said(service.flask("metric", "delete", OWNER, *args))


TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"


@sqlite_only
def test_an_account_is_deleted_with_all_it_has(service, owner, browser, moved_clock):
    service.account("other@example.org")
    other = service.caller("other@example.org")
    other.send()
    hook = service.alert("--frequency", "15m")
    for message in "abc":
        hook.post({"message": message})
    for _ in range(3):
        owner.send(headers={"Idempotency-Key": str(moved_clock.ms)})
        moved_clock.advance(1)
    put(1, "p", "m", 600)
    owner.post("/rules", {"project": "p", "metric": "m", "when": "> -1"})
    service.work()
    owner.post("/mutes", {"what": "all", "forS": 60})
    picture = {"title": "t", "body": "b", "image": (BytesIO(png()), "cam.png")}
    assert owner.request("POST", "/api/v1/notifications/send", data=picture).status_code == 200
    before = {table for (table,) in query(service, TABLES) if query(service, f"SELECT 1 FROM {table}")}
    assert before >= {"metric_rule", "firing", "mute", "picture", "held", "delivery", "idempotency_key"}
    owner.delete(f"/api-keys/{owner.post('/api-keys/generate', {'name': 'n'}).json['apiKey']['id']}")
    assert lines(service, "account", "delete", OWNER, "--yes") == [f"Deleted the account {OWNER}."]
    rows = {table: query(service, f"SELECT count(*) FROM {table}")[0][0] for (table,) in query(service, TABLES)}
    kept = {"account": 1, "api_key": 1, "notification": 1, "notification_day": 2, "one_time_link": 1}
    assert {table: count for table, count in rows.items() if count and not table.startswith("server_")} == kept
    assert (owner.get("/stats").status_code, hook.post({}).status_code) == (401, 404)
    assert (len(other.listed()), query(service, "PRAGMA foreign_key_check")) == (1, [])
    assert said(service.flask("account", "delete", OWNER, "--yes"))


def test_without_yes_nothing_is_deleted(service, owner):
    result = service.flask("account", "delete", OWNER)
    assert (result.exit_code, result.stdout) == (2, "") and "add --yes" in result.stderr
    assert owner.get("/stats").status_code == 200


def test_an_account_whose_deletion_was_interrupted_is_closed_at_once_and_deleted_by_the_next(
    service, owner, browser, monkeypatch
):

    owner.send()
    with monkeypatch.context() as patched:
        patched.setattr(deletion, "_delete_notifications", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        assert service.flask("account", "delete", OWNER, "--yes").exit_code == 1
    assert owner.get("/stats").status_code == 401
    service.work()
    lines(service, "account", "delete", OWNER, "--yes")
    assert query(service, "SELECT count(*) FROM account") == [(0,)]


class Locked:
    """A function that finds the database locked in the calls with these numbers, from 1."""

    def __init__(self, function, numbers):
        self.function, self.numbers, self.calls = function, numbers, 0

    def __call__(self, *args, **more):
        self.calls += 1
        if self.calls in self.numbers:
            raise WriteFailed("database is locked")
        return self.function(*args, **more)


DELETE_HISTORY = ("history", "delete", OWNER, "--before", "2026-11-23")
DELETE_ACCOUNT = ("account", "delete", OWNER, "--yes")
PARTLY = "Error: Only a part was deleted: database is locked. Run the command again to delete the rest."


@pytest.fixture
def much_history(service, owner, moved_clock, monkeypatch):
    """Thirteen notifications of an hour ago, of which five are deleted at a time."""
    monkeypatch.setattr(deletion, "ROWS", 5)
    owner.send()
    copy_first_row(service, 12, every_ms=1)
    moved_clock.advance(2 * DAY_S)


@pytest.mark.parametrize(
    "command, passes, told",
    [
        (DELETE_HISTORY, 1, "Deleted 8 notifications from before 2026-11-23."),
        (DELETE_ACCOUNT, 1, f"Deleted the account {OWNER}."),
        (DELETE_ACCOUNT, 0, f"Deleted the account {OWNER}."),
    ],
)
def test_a_deletion_in_pieces_that_fails_on_the_way_says_so_and_the_next_goes_on(
    service, much_history, monkeypatch, command, passes, told
):
    with monkeypatch.context() as patched:
        patched.setattr(notifications, "delete_all", Locked(notifications.delete_all, range(passes + 1, 1_000)))
        assert said(service.flask(*command)) == PARTLY
    assert query(service, "SELECT count(*) FROM notification") == [(13 - 5 * passes,)]
    assert lines(service, *command) == [told]
    assert query(service, "SELECT count(*) FROM notification") == [(0,)]


def test_a_metrics_deletion_that_fails_on_the_way_says_so(service, owner, monkeypatch):
    monkeypatch.setattr(deletion, "ROWS", 5)
    put(1, "p", "a", 13)
    monkeypatch.setattr(custom_metrics, "remove", Locked(custom_metrics.remove, range(2, 1_000)))
    assert said(service.flask("metric", "delete", OWNER, "p")) == PARTLY


def test_a_deletion_that_could_not_begin_says_only_why(service, much_history, monkeypatch):
    monkeypatch.setattr(notifications, "delete_all", Locked(notifications.delete_all, range(1, 1_000)))
    assert said(service.flask(*DELETE_HISTORY)) == "Error: database is locked"


def test_a_request_that_began_before_its_account_was_deleted_is_refused(service, owner, monkeypatch):
    from core import delivery

    send = delivery.deliver

    def late(*args):
        service.flask("account", "delete", OWNER, "--yes")
        return send(*args)

    monkeypatch.setattr(delivery, "deliver", late)
    assert owner.send().status_code == 401


def test_what_another_process_writes_while_an_account_is_deleted_is_deleted_too(service, owner, monkeypatch):
    account = accounts.find_account(OWNER)
    delete_some = ApiKey.delete_some

    def late(account_seq, limit):
        """A request that was authenticated before, and writes only now."""
        monkeypatch.setattr(ApiKey, "delete_some", delete_some)
        delivery.deliver(Owner.of(account), Content("title", "body"))
        devices.add_device(account.seq, {"kind": "ntfy"}, 0)
        heartbeats.create_heartbeat(account, {"name": "Backup", "period": "1h"}, 0)
        custom_metrics.add_all(account.seq, "p", [MetricValue("m", "M", 1.0, None, 0, None)])
        accounts.create_key(account.seq, "late", 0)
        return delete_some(account_seq, limit)

    monkeypatch.setattr(ApiKey, "delete_some", late)
    lines(service, "account", "delete", OWNER, "--yes")
    assert accounts.Account.find(OWNER) is None
    with pytest.raises(Refused) as refused:
        delivery.deliver(Owner.of(account), Content("title", "body"))
    assert refused.value.status == 401


def test_the_number_of_a_deleted_account_is_not_given_to_another(service, owner, pro):
    numbers = [accounts.find_account(email).seq for email in (OWNER, "pro@example.org")]
    for email in ("pro@example.org", OWNER):
        lines(service, "account", "delete", email, "--yes")
    lines(service, "account", "create", "next@example.org")
    assert accounts.find_account("next@example.org").seq > max(numbers)


def test_an_account_that_is_deleted_while_its_password_is_checked_is_not_signed_in(service, owner, administrator):
    accounts.set_password(accounts.find_account(OWNER), accounts.password_hash(PASSWORD))
    account = accounts.find_account(OWNER)
    lines(service, "account", "delete", OWNER, "--yes")
    with pytest.raises(Refused, match="just been changed"):
        accounts.start_session(account, "Chrome", 0)
