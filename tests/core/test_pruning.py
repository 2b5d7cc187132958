"""What is removed from the database and what stays: by plan, history, counters, Idempotency-Keys."""

import pytest

from core import pruning, scheduler
from process import clock
from store.database import EVERYBODY, run, transaction
from tests.support.accounts import PRO, account_set
from tests.support.alarms import bodies, every
from tests.support.holding import held
from tests.support.rows import each
from tests.support.tables import FULL, alter, copy_first_row, query
from tests.support.times import DAY_S, HOUR_S

NEW_YEAR = 1_798_804_800_000  # 2027-01-01 12:00 UTC: the same day in every time zone named below


def stored(service):
    """The ids of the notifications in the file, oldest first."""
    return [row[0] for row in query(service, "SELECT id FROM notification ORDER BY created_at, seq")]


def sent(caller):
    return caller.send().json["notification"]["id"]


@pytest.fixture
def newer(pro, moved_clock):
    """Let 31 days pass, send from another account with a longer history, and return the notification's id."""

    def wait():
        moved_clock.advance(31 * DAY_S)
        return sent(pro)

    return wait


# The history


@pytest.mark.parametrize("plan, days", [("starter", 30), ("pro", 365), ("scale", 1_095)])
def test_rows_stay_for_the_plans_history_and_are_then_removed_from_the_file(service, moved_clock, plan, days):
    service.account("any@example.org", plan)
    caller = service.caller("any@example.org")
    first = sent(caller)
    moved_clock.advance(2 * DAY_S)
    newer = sent(caller)
    every(service, moved_clock, (days - 2) * DAY_S - 60)
    assert stored(service) == [first, newer] and [row["id"] for row in caller.listed()] == [newer, first]
    moved_clock.advance(61)
    asked = [(caller.get, ""), (caller.delete, ""), (caller.post, "/acknowledge")]
    assert {ask(f"/notifications/{first}{path}").status_code for ask, path in asked} == {404}
    assert stored(service) == [first, newer] and [row["id"] for row in caller.listed()] == [newer]
    every(service, moved_clock, DAY_S)
    assert stored(service) == [newer]


def test_a_smaller_plan_removes_what_it_does_not_keep(service, pro, moved_clock):
    sent(pro)
    every(service, moved_clock, 31 * DAY_S)
    newer = sent(pro)
    account_set("--plan", "starter", email=PRO)
    every(service, moved_clock, DAY_S)
    assert stored(service) == [newer]


def test_more_old_rows_than_one_transaction_takes_go_over_the_rounds(service, owner, moved_clock, monkeypatch):
    monkeypatch.setattr(pruning, "ROWS", 5)
    sent(owner)
    copy_first_row(service, 12, every_ms=1_000)
    moved_clock.advance(2 * DAY_S)
    newer = sent(owner)
    assert len(stored(service)) == 14
    moved_clock.advance(29 * DAY_S)
    for _ in range(5):
        service.work()
        moved_clock.advance(1)
    assert stored(service) == [newer]


def test_removing_goes_on_after_a_round_in_which_the_file_could_not_be_written(service, owner, newer, moved_clock):
    sent(owner)
    kept = newer()
    alter(service, f"CREATE TRIGGER full BEFORE DELETE ON notification {FULL}")
    service.work()
    assert len(stored(service)) == 2
    alter(service, "DROP TRIGGER full")
    every(service, moved_clock, DAY_S)
    assert stored(service) == [kept]


# What must not change by it


def test_the_count_of_all_time_and_the_alerts_stay_as_they_were(service, owner, newer):
    service.alert().post({"message": "a"})
    sent(owner)
    kept = newer()
    before = [owner.get(path).json for path in ("/stats", "/alerts")]
    service.work()
    assert stored(service) == [kept]
    assert [owner.get(path).json for path in ("/stats", "/alerts")] == before
    assert before[0]["stats"]["totalNotificationsAllTime"] == 2
    assert before[1]["alerts"][0]["notificationCount"] == 1


def test_a_cursor_never_leads_to_newer_rows_even_when_all_older_ones_were_removed(service, owner, moved_clock):
    for _ in range(5):
        sent(owner)
    cursor = owner.get("/notifications?limit=2").json["pagination"]["nextCursor"]
    every(service, moved_clock, 31 * DAY_S)
    newer = sent(owner)
    assert owner.get(f"/notifications?cursor={cursor}").json["notifications"] == []
    assert [row["id"] for row in owner.listed()] == [newer]


@pytest.fixture
def removed_first_day(service, owner, moved_clock):
    """It is January 31st; of three notifications of this month the one of the 1st has been removed."""
    moved_clock.set_wall(NEW_YEAR)
    service.work()
    sent(owner)
    moved_clock.advance(10 * DAY_S)
    rest = [sent(owner), sent(owner)]
    every(service, moved_clock, 20 * DAY_S + 1_800)
    assert stored(service) == rest


def counted(caller):
    stats = caller.get("/stats").json["stats"]
    return stats["notificationsThisMonth"], stats["totalNotificationsAllTime"]


@each("zone", ["America/New_York", "Asia/Kathmandu", "UTC"])
def test_another_time_zone_does_not_lose_what_was_removed(owner, removed_first_day, zone):
    account_set("--timezone", zone)
    assert counted(owner) == (3, 3)


# Held and pending


def test_what_is_held_and_then_pending_is_kept_until_it_is_done(service, owner, browser, newer, moved_clock, passes):
    account_set("--quiet-hours", "22:00-07:00")
    moved_clock.advance(13 * HOUR_S)
    (old,) = held(service.alert(), "a")
    kept = newer()
    service.work()  # for the first time in 31 days, at 23:00 again
    assert (stored(service), owner.listed()) == ([old, kept], [])
    browser.then(503)
    passes(8 * HOUR_S)
    assert (len(browser.pushes), stored(service)) == (1, [old, kept])
    every(service, moved_clock, 30)
    assert bodies(browser) == ["a"]
    every(service, moved_clock, DAY_S)
    assert stored(service) == [kept]


def test_an_old_digest_is_pushed_whole_and_then_removed(service, owner, browser, newer, moved_clock):
    account_set("--quiet-hours", "22:00-07:00")
    moved_clock.advance(13 * HOUR_S)
    held(service.alert(), "a", "b", "c")
    moved_clock.advance(31 * DAY_S + 8 * HOUR_S)
    browser.then(503)
    service.work()
    service.work()
    every(service, moved_clock, 30)
    assert bodies(browser) == ["Backups: a\nBackups: b\nBackups: c"]
    kept = newer()
    service.work()
    assert (stored(service), query(service, "SELECT * FROM delivery")) == ([kept], [])


# Idempotency keys


def idempotency_keys(service):
    return [row[0] for row in query(service, "SELECT key FROM idempotency_key ORDER BY key")]


def test_idempotency_keys_older_than_24_hours_are_removed_and_their_notifications_stay(service, owner, moved_clock):
    for key in ("first", "second"):
        owner.send(headers={"Idempotency-Key": key})
        moved_clock.advance(120)
    every(service, moved_clock, DAY_S - 180)
    assert idempotency_keys(service) == ["second"]
    assert len(stored(service)) == 2


def test_more_old_idempotency_keys_than_one_transaction_takes_go_over_the_rounds(
    service, owner, moved_clock, monkeypatch
):
    monkeypatch.setattr(pruning, "ROWS", 5)
    owner.send(headers={"Idempotency-Key": "first"})
    same = "account_seq, request_hash, notification_id, answered_status, created_at"
    copy = f"INSERT INTO idempotency_key (key, {same}) SELECT ?, {same} FROM idempotency_key WHERE key = 'first'"
    with transaction(EVERYBODY):
        for number in range(12):
            run(copy, (f"key {number}",))
    moved_clock.advance(DAY_S + 60)
    for _ in range(5):
        service.work()
        moved_clock.advance(1)
    assert idempotency_keys(service) == []


def test_values_are_not_counted_again_while_old_notifications_are_removed(service, owner, moved_clock, monkeypatch):
    monkeypatch.setattr("core.pieces.in_pieces.__defaults__", (0.0,))
    sent(owner)
    moved_clock.advance(31 * DAY_S)
    unfinished = scheduler.run_due(clock.now_ms(), scheduler.REMOVALS)
    assert [job.run for job in unfinished] == [pruning.prune]
