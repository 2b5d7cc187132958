"""The button "Mute 1 h" on an alert's push: where it is, what a press does, and how it is undone."""

from urllib.parse import urlsplit

import pytest

from core import mutes as core_mutes
from core.buttons import LIFE_MS
from tests.support.accounts import OWNER
from tests.support.alarms import bodies
from tests.support.buttons import addresses, paths, press
from tests.support.devices import subscribe
from tests.support.followers import follow, follower
from tests.support.holding import held
from tests.support.mutes import mute
from tests.support.ntfy_app import add_phone
from tests.support.pages import Page
from tests.support.times import DAY_S, HOUR_S, MINUTE_S

BROWSER = {"Accept": "text/html,*/*;q=0.8"}


@pytest.fixture
def hook(service, owner, browser):
    """An alert whose owner wants the button."""
    return service.alert("--mute-button", name="Disk")


def page_of(answer):
    return Page(answer.text).main


def mutes(caller):
    return [(one["what"], one["name"], one["until"]) for one in caller.get("/mutes").json["mutes"]]


def test_a_press_mutes_the_alert_for_an_hour_and_no_other(service, owner, browser, hook, passes, moved_clock):
    hook.post({"message": "a"})
    answer = press(service, paths(browser)["Mute 1 h"])
    assert (answer.status_code, answer.json) == (200, {"ok": True})
    assert mutes(owner) == [("alert", "Disk", moved_clock.ms + HOUR_S * 1000)]
    held(hook, "b")
    assert service.alert(name="Other").post({"message": "c"}).json["status"] == "delivered"
    passes(HOUR_S)
    assert bodies(browser) == ["a", "c", "b"]


def test_an_alert_has_none_unless_its_owner_wants_it(service, owner, browser):
    hook = service.alert()
    hook.post({"message": "a"})
    assert "actions" not in browser.messages[0]["notification"] and "actions" not in owner.listed()[0]
    hook.set("--mute-button")
    hook.post({"message": "b"})
    assert list(addresses(browser)) == ["Mute 1 h"]
    assert owner.listed()[0]["actions"] == [{"label": "Mute 1 h", "mute": "1h"}]
    hook.set("--no-mute-button")
    hook.post({"message": "c"})
    assert "actions" not in browser.messages[2]["notification"]


def test_it_comes_after_the_button_that_acknowledges(service, owner, browser):
    hook = service.alert("--mute-button", "--priority", "urgent", "--repeat-urgent")
    hook.post({"message": "a"})
    assert list(addresses(browser)) == ["Acknowledge", "Mute 1 h"]
    assert press(service, paths(browser)["Mute 1 h"]).status_code == 200
    assert owner.get(f"/notifications/{owner.listed()[0]['id']}").json["notification"]["acknowledge"]["state"] == (
        "waiting"
    )
    hook.post({"message": "urgent passes"})
    assert bodies(browser) == ["a", "urgent passes"]


def test_a_fetching_device_gets_it(service, owner, hook):
    phone = add_phone(owner)
    hook.post({"message": "a"})
    (shown,) = phone.messages()[-1]["actions"]
    assert (shown["label"], shown["action"], shown["method"]) == ("Mute 1 h", "http", "POST")
    assert press(service, urlsplit(shown["url"]).path).status_code == 200
    assert [one["what"] for one in owner.get("/mutes").json["mutes"]] == ["alert"]


def test_a_followers_press_mutes_for_himself_what_he_follows(service, owner, hook, push_service):
    door = service.alert("--mute-button", name="Door")
    bob = follower(service, owner, "alert", door.id)
    follow(owner, bob, "bob@example.org", "alert", hook.id)
    phone = subscribe(bob, push_service)
    for alert in (door, hook):
        alert.post({"message": "a"})
        service.work()
    assert press(service, paths(phone)["Mute 1 h"]).status_code == 200
    assert [name for _, name, _ in mutes(bob)] == ["Disk"] and mutes(owner) == []


def test_a_second_press_begins_the_hour_anew_and_ends_no_longer_mute(service, owner, browser, hook, moved_clock):
    hook.post({"message": "a"})
    path = paths(browser)["Mute 1 h"]
    press(service, path)
    moved_clock.advance(MINUTE_S)
    press(service, path)
    assert mutes(owner) == [("alert", "Disk", moved_clock.ms + HOUR_S * 1000)]
    longer = mute(owner, "alert", hook.id, DAY_S)
    press(service, path)
    assert mutes(owner)[0] == ("alert", "Disk", longer["until"]) and len(mutes(owner)) == 2


def test_its_page_has_an_undo_which_releases_what_was_held(service, owner, browser, hook, works):
    hook.post({"message": "a"})
    path = paths(browser)["Mute 1 h"]
    assert "Mute 1 h" in page_of(press(service, path, "GET", headers=BROWSER)) and mutes(owner) == []
    pressed = page_of(press(service, path, headers=BROWSER))
    assert "Its alert is muted until today 11:00." in pressed and "Undo" in pressed
    held(hook, "b")
    assert "Undo" in page_of(press(service, path, "GET", headers=BROWSER))
    undone = page_of(press(service, f"{path}?undo=1", headers=BROWSER))
    assert "Mute 1 h" in undone and "Undo" not in undone and mutes(owner) == []
    works()
    assert bodies(browser) == ["a", "b"]


def test_an_undo_leaves_what_comes_again(service, owner, browser, hook):
    again = mute(owner, "alert", hook.id, cron="0 2 * * sun")
    hook.post({"message": "a"})
    path = paths(browser)["Mute 1 h"]
    press(service, path)
    press(service, f"{path}?undo=1")
    assert [one["id"] for one in owner.get("/mutes").json["mutes"]] == [again["id"]]


def test_after_a_week_or_of_a_deleted_alert_it_is_refused(service, owner, browser, hook, moved_clock):
    hook.post({"message": "a"})
    path = paths(browser)["Mute 1 h"]
    moved_clock.advance(LIFE_MS / 1000 - 1)
    assert press(service, path).status_code == 200
    service.flask("alert", "delete", OWNER, hook.id)
    answer = press(service, path)
    assert (answer.status_code, answer.json["error"]) == (404, "The alert that it mutes was deleted.")
    moved_clock.advance(1)
    assert press(service, path).status_code == 404


def test_no_program_can_send_such_a_button(owner, browser):
    sent = {"title": "a", "body": "b", "actions": [{"label": "Mute 1 h", "mute": "1h"}]}
    assert owner.post("/notifications/send", sent).status_code == 400


def test_with_as_many_mutes_as_there_may_be_a_press_says_so(service, owner, browser, hook, monkeypatch):
    monkeypatch.setattr(core_mutes, "MAX_MUTES", 2)
    hook.post({"message": "a"})
    for _ in range(2):
        mute(owner)
    answer = press(service, paths(browser)["Mute 1 h"])
    assert (answer.status_code, "2 mutes" in answer.json["error"]) == (400, True)
