"""Mutes in the web app: at one press on what they mute, on the page Quiet hours, on Home and on a notification."""

import pytest

from models import Account
from store.heartbeats import of_account
from tests.support.accounts import OWNER
from tests.support.mutes import key_id, mute
from tests.support.pages import notification_page
from tests.support.rows import each
from tests.support.times import HOUR_S

QUIET = "/app/quiet"


@pytest.fixture
def senders(service, caller, browser):
    """The word that names each kind of sender, and the page where it is muted."""
    alert = service.alert(name="Disk")
    beat = caller.post("/heartbeats", {"name": "Backup", "periodS": 3600}).json["heartbeat"]["id"]
    rule = caller.post("/rules", {"project": "p", "metric": "cpu", "when": "> 90"}).json["rule"]["id"]
    return {
        f"alert:{alert.id}": f"/app/alerts/{alert.id}?tab=settings",
        f"heartbeat:{beat}": f"/app/watches/{beat}",
        f"key:{key_id(caller, 'backup script')}": "/app/keys",
        f"rule:{rule}": f"/app/metrics/one?project=p&metric=cpu&range=24%20h&rule={rule}",
    }


def listed(caller):
    return caller.get("/mutes").json["mutes"]


def test_one_press_mutes_what_a_page_is_about_and_another_ends_it(owner, caller, senders, moved_clock):
    for what, path in senders.items():
        page = owner.page(path)
        assert "Mute 1 h" in page.main, path
        action = page.action_of("/app/mutes?")
        muted = owner.done(action, {"what": what}, leads_to=path)
        assert "Muted until 11:00" in muted.main, path
        (one,) = listed(caller)
        assert (f"{one['what']}:{one['subject']}", one["until"]) == (what, moved_clock.ms + HOUR_S * 1000)
        ended = owner.done(muted.action_of("/app/mutes/"), {}, leads_to=path)
        assert "Mute 1 h" in ended.main and listed(caller) == []


def test_pages_say_that_everything_is_muted_and_lead_to_where_that_ends(owner, caller, senders):
    mute(caller)
    for path in senders.values():
        assert "Muted until 11:00Change" in owner.page(path).main, path
    assert "API keys and Ring muted" in owner.page(QUIET).main


def test_a_press_twice_is_one_mute(owner, caller, senders):
    what = next(iter(senders))
    for _ in range(2):
        owner.post("/app/mutes", {"what": what})
    assert len(listed(caller)) == 1


def test_the_form_mutes_for_a_duration_with_its_options(owner, caller, senders, moved_clock):
    page = owner.done("/app/mutes", {"what": "all", "duration": "2h", "cron": ""}, leads_to=QUIET)
    assert "Muted everything until today 12:00." in page.text and "Everything" in page.section("Mutes")
    sent = {"what": "all", "duration": "1h", "cron": "0 2 * * sun", "urgent": "1", "history": "1"}
    page = owner.done("/app/mutes", sent, leads_to=QUIET)
    assert "Sundays at 02:00 for 1 h, only to the history, urgent too" in page.section("Mutes")
    again, once = listed(caller)
    assert (again["cron"], again["mode"], again["urgentPasses"]) == ("0 2 * * sun", "history", False)
    assert (once["until"], once["mode"], once["urgentPasses"]) == (moved_clock.ms + 2 * HOUR_S * 1000, "hold", True)
    for one in (again, once):
        owner.done(f"/app/mutes/{one['id']}/end", {}, leads_to=QUIET)
    assert listed(caller) == []


def test_home_says_what_is_muted_until_when_and_ends_it(service, owner, caller, browser, senders):
    assert "is muted" not in owner.page("/app/").main
    mute(caller)
    mute(caller, "alert", next(iter(senders)).partition(":")[2], 2 * HOUR_S)
    mute(caller, cron="0 2 * * sun")  # not in force
    home = owner.page("/app/")
    assert "Everything is muted until 11:00" in home.main and "Disk is muted until 12:00" in home.main
    assert home.main.count("is muted until") == 2
    while "is muted until" in home.main:
        home = owner.done(home.action_of("/app/mutes/"), {}, leads_to="/app/")
    assert [one.get("cron") for one in listed(caller)] == ["0 2 * * sun"]


def test_a_notifications_page_mutes_its_alert_and_undoes_it(service, owner, caller, browser):
    hook = service.alert(name="Disk")
    id_ = hook.post({"message": "a"}).json["notificationId"]
    path = f"/app/notifications/{id_}"
    page = notification_page(owner, id_)
    assert "Mute this alert 1 h" in page.main
    muted = owner.done(page.action_of("/app/mutes?"), {"what": f"alert:{hook.id}"}, leads_to=path)
    assert "Muted until 11:00Unmute" in muted.main
    owner.done(muted.action_of("/app/mutes/"), {}, leads_to=path)
    assert listed(caller) == []
    sent = caller.send().json["notification"]["id"]
    assert "Mute this alert" not in notification_page(owner, sent).main


@each("back", ["https://evil.example/", "//evil.example", "/app/\\evil", "/api/v1", ""])
def test_a_press_leads_only_to_a_page_of_ours(owner, caller, back):
    answer = owner.post(f"/app/mutes?back={back}", {"what": "all"})
    assert (answer.status_code, answer.location) == (303, QUIET)


def test_a_deleted_subject_is_listed_nowhere(service, owner, caller, senders):
    beat = of_account(Account.find(OWNER).seq)[0]
    mute(caller, "heartbeat", beat.id)
    service.flask("heartbeat", "delete", OWNER, beat.id)
    assert "Backup" not in owner.page(QUIET).section("Mutes")
