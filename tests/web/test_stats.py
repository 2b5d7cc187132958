"""Account statistics: what is counted, by day, month and plan."""

from core.accounts import find_account, zone_change
from process.clock import now_ms
from tests.support.accounts import OWNER, account_set
from tests.support.devices import subscribe
from tests.support.rows import each
from tests.support.times import at


def stats(caller):
    answer = caller.get("/stats")
    assert answer.status_code == 200 and set(answer.json) == {"ok", "stats"}
    return answer.json["stats"]


def counts(caller):
    """The counts of this month, of this day, and of all time."""
    shown = stats(caller)
    return shown["notificationsThisMonth"], shown["notificationsThisDay"], shown["totalNotificationsAllTime"]


def test_a_new_accounts_statistics_are_nought(owner):
    answer = owner.get("/stats")
    assert answer.status_code == 200
    assert answer.json == {
        "ok": True,
        "stats": {
            "plan": "starter",
            "totalNotificationsAllTime": 0,
            "notificationsThisMonth": 0,
            "notificationsThisDay": 0,
            "alertsCount": 0,
            "historyLimitDays": 30,
        },
    }


@each("plan, days", [("starter", 30), ("pro", 365), ("scale", 1_095)])
def test_a_change_of_plan_is_shown_at_once(owner, plan, days):
    account_set("--plan", plan)
    assert (stats(owner)["plan"], stats(owner)["historyLimitDays"]) == (plan, days)


def test_every_notification_of_every_key_is_counted_once_however_often_it_is_replayed_and_if_it_fails(
    service, owner, push_service
):
    once = {"headers": {"Idempotency-Key": "one"}}
    sends = [owner.send, service.caller(name="second").send, lambda: [owner.send(**once) for _ in range(3)]]
    for number, send in enumerate(sends, 1):
        send()
        assert counts(owner) == (number,) * 3
    subscribe(owner, push_service).then(410)
    for number in (4, 5):  # the first finds the device gone, the second finds none
        assert owner.send().json["notification"]["status"] == "failed"
        assert counts(owner) == (number,) * 3


# The calendar day and month, UTC unless told otherwise


@each(
    "sent, seen, month, day",
    [
        ("2027-03-10T00:00:00", "2027-03-10T23:59:59.999", 1, 1),
        ("2027-03-10T23:59:59.999", "2027-03-11T00:00:00", 1, 0),
        ("2027-03-01T00:00:00", "2027-03-31T23:59:59.999", 1, 0),
        ("2027-03-31T23:59:59.999", "2027-04-01T00:00:00", 0, 0),
        ("2026-12-31T23:59:59.999", "2027-01-01T00:00:00", 0, 0),
        ("2027-03-10T12:00:00", "2027-04-10T12:00:00", 0, 0),
        ("2027-03-10T12:00:00", "2028-03-10T12:00:00", 0, 0),
        ("2028-02-29T00:00:00", "2028-02-29T23:59:59.999", 1, 1),
        ("2028-02-28T23:59:59.999", "2028-02-29T00:00:00", 1, 0),
        ("2028-02-29T23:59:59.999", "2028-03-01T00:00:00", 0, 0),
        ("2027-02-28T23:59:59.999", "2027-03-01T00:00:00", 0, 0),
    ],
)
@each("zone", ["", "Asia/Kolkata"])
def test_day_and_month_are_calendar_ones_in_the_accounts_time_zone(
    new_owner, moved_clock, zone, sent, seen, month, day
):
    email, owner = new_owner()
    if zone:
        account_set("--timezone", zone, email=email)
    at(moved_clock, sent, zone or "UTC")
    owner.send()
    at(moved_clock, seen, zone or "UTC")
    assert counts(owner) == (month, day, 1)


def test_the_hour_that_comes_twice_counts_on_one_day(owner, moved_clock):
    account_set("--timezone", "Europe/Berlin")
    for fold in (0, 1):
        at(moved_clock, "2027-10-31T02:30:00", "Europe/Berlin", fold)
        owner.send()
    assert counts(owner) == (2, 2, 2)


# `flask account set OWNER --timezone ZONE`


@each(
    "zone, month, day",
    [
        ("UTC", 1, 1),
        ("Europe/Berlin", 2, 2),
        ("Asia/Tokyo", 3, 3),
        ("America/New_York", 3, 3),
        ("Pacific/Apia", 3, 3),
        ("Asia/Kathmandu", 2, 2),
    ],
)
def test_a_change_of_the_time_zone_counts_again_at_once(new_owner, moved_clock, zone, month, day):
    email, owner = new_owner()
    for sent in ("2027-04-30T16:00:00", "2027-04-30T22:30:00", "2027-05-01T00:30:00"):
        at(moved_clock, sent)
        owner.send()
    at(moved_clock, "2027-05-01T01:00:00")
    assert counts(owner) == (1, 1, 3)
    account_set("--timezone", zone, email=email)
    assert counts(owner) == (month, day, 3)


@each(
    "sent, month",
    [("2027-03-01T02:00:00", 0), ("2027-02-27T12:00:00", 0), ("2027-03-02T02:00:00", 1), ("2027-03-03T02:00:00", 1)],
)
def test_a_change_of_the_time_zone_counts_the_whole_month_again_on_its_last_day(new_owner, moved_clock, sent, month):
    email, owner = new_owner("pro")
    at(moved_clock, sent)
    owner.send()
    at(moved_clock, "2027-03-31T12:00:00")
    account_set("--timezone", "America/New_York", email=email)
    assert counts(owner) == (month, 0, 1)


def test_time_zones_changed_to_and_fro_at_once_count_as_before(owner, moved_clock):
    for hours in (0, 5, 9, 13):
        moved_clock.advance(hours * 3_600)
        owner.send()
    before, account, zones = counts(owner), find_account(OWNER), ("Pacific/Kiritimati", "Pacific/Marquesas", "UTC")
    for change in [zone_change(account, zone, now_ms()) for zone in zones]:
        change()
    assert counts(owner) == before


def test_what_was_deleted_stays_counted_when_the_time_zone_changes(owner, moved_clock):
    ids = []
    for hours in (0, 20, 9):
        moved_clock.advance(hours * 3_600)
        ids += [owner.send().json["notification"]["id"] for _ in range(2)]
    for one in ids[::2]:
        assert owner.delete(f"/notifications/{one}").status_code == 200
    for zone, of_day in (("Europe/London", 4), ("Pacific/Kiritimati", 1), ("UTC", 4)):
        account_set("--timezone", zone)
        assert counts(owner) == (6, of_day, 6)


# alertsCount


def test_alerts_are_counted_active_or_not_and_per_account(service, owner, pro):
    service.alert()
    service.alert(name="Off").set("--inactive")
    assert (stats(owner)["alertsCount"], stats(pro)["alertsCount"]) == (2, 0)
