"""Buttons of a notification: the service worker shows them, answers, and keeps a press without a network."""

import json

import pytest
from playwright.sync_api import expect

from store.database import EVERYBODY, run, transaction
from tests.support.browser import CLICK, until
from tests.support.buttons import ANSWERS, paths
from tests.support.rows import each

pytestmark = pytest.mark.shows_notifications

PRESS = "POST /a/<path:token>"
# The presses that are kept, and what the worker writes on the web app's icon.
KEPT = "namesFrom('/a/')"
RECORD_BADGE = """
() => {
  self.badge = null;
  navigator.setAppBadge = async (count) => { self.badge = count; };
  navigator.clearAppBadge = async () => { self.badge = 0; };
}
"""
CLOSE_ALL = "self.registration.getNotifications().then((all) => all.forEach((one) => one.close()))"
WAITS_FOR_NO_SYNC = "delete ServiceWorkerRegistration.prototype.sync"


@pytest.fixture
def worker(phone):
    """The service worker of a phone that gets notifications."""
    phone.enable()
    worker = phone.worker()
    worker.evaluate(RECORD_BADGE)
    return worker


@pytest.fixture
def asks(phone, site, worker):
    """Sends a question and lets the phone show it; returns its id and what is shown."""

    def ask(**more):
        sent = site.send("Deploy?", "version 7", **{"actions": ANSWERS, **more})
        return sent["id"], phone.deliver(worker, json.dumps(phone.subscription.messages[-1]))

    return ask


def label_of(site, asked):
    """The label of the answer to the question, if it has one."""
    return site.detail(asked).get("answer", {}).get("label")


def presses(site):
    return [path for method, path, *_ in site.asked if method == "POST" and path.startswith("/a/")]


def action_of(phone, label):
    """The name of a button of the newest push."""
    shown = phone.subscription.messages[-1]["notification"]["actions"]
    return next(one["action"] for one in shown if one["title"] == label)


def test_the_first_buttons_are_shown_as_many_as_the_browser_has_room_for(phone, worker, asks):
    _, shown = asks(actions=[*ANSWERS, {"label": "Later", "answer": "l"}], acknowledge=True)
    most = worker.evaluate("Notification.maxActions")
    labels = ["Acknowledge", "Yes", "No", "Later"]
    assert most >= 2 and [one["title"] for one in shown["actions"]] == labels[:most]
    assert [one["title"] for one in shown["data"]["actions"]] == labels
    assert shown["requireInteraction"] is True


def test_pressing_a_button_sends_only_a_request_to_its_address(phone, site, worker, asks):
    asked, _ = asks()
    worker.evaluate(CLICK, {"action": action_of(phone, "No")})
    assert label_of(site, asked) == "No" and presses(site) == [paths(phone.subscription)["No"]]
    assert [asked[2:] for asked in site.asked if asked[1].startswith("/a/")] == [(None, None)]
    assert worker.evaluate(KEPT) == [] and worker.evaluate("self.opened") == []
    assert worker.evaluate("self.registration.getNotifications().then((all) => all.length)") == 0


def test_tapping_beside_the_buttons_opens_the_page_without_an_answer(phone, site, worker, asks):
    asked, _ = asks()
    worker.evaluate(CLICK, {})
    expect(phone.page).to_have_url(f"{site.base}/app/notifications/{asked}")
    assert presses(site) == []


def test_a_press_on_a_url_button_opens_the_url(phone, worker, asks):
    asks(actions=[{"label": "Log", "url": "https://example.org/log"}, ANSWERS[0]])
    assert worker.evaluate(CLICK, {"action": action_of(phone, "Log")}) == ["https://example.org/log"]


@each("network, then", [*(("none", then) for then in ("push", "page", "tap", "activation")), ("fault", "push")])
def test_a_press_made_offline_is_stored_and_sent_later(phone, site, worker, asks, monkeypatch, network, then):
    worker.evaluate(WAITS_FOR_NO_SYNC)
    worker.evaluate(CLOSE_ALL)
    site.asked.clear()
    asked, _ = asks()
    with monkeypatch.context() as broken:
        phone.context.set_offline(network == "none")
        if network == "fault":
            broken.setitem(site.service.app.view_functions, PRESS, lambda token: 1 / 0)
        worker.evaluate(CLICK, {"action": action_of(phone, "Yes")})
        assert worker.evaluate(KEPT) == [paths(phone.subscription)["Yes"]]
        assert label_of(site, asked) is None
    phone.context.set_offline(False)
    if then == "push":
        phone.deliver(worker, json.dumps({"title": "Another", "body": "b"}))
    elif then == "page":
        phone.go("/app/settings")
    elif then == "tap":
        worker.evaluate(CLICK, {"data": {"navigate": f"{site.base}/app/"}})
    else:
        worker.evaluate("self.dispatchEvent(new ExtendableEvent('activate'))")
    until(lambda: worker.evaluate(KEPT) == [], phone.page)
    assert label_of(site, asked) == "Yes"
    assert presses(site) == [paths(phone.subscription)["Yes"]] * (1 if network == "none" else 2)


def test_a_press_waits_for_the_network_where_the_browser_can_do_that(phone, site, worker, asks):
    asked, _ = asks()
    registered = """
    () => {
      self.registered = [];
      const sync = { register: async (tag) => { self.registered.push(tag); } };
      Object.defineProperty(ServiceWorkerRegistration.prototype, "sync", { get: () => sync, configurable: true });
    }
    """
    dispatch = """
    async () => {
      const sync = new SyncEvent("sync", { tag: "presses" });
      let done;
      sync.waitUntil = (promise) => { done = promise; };
      self.dispatchEvent(sync);
      return done.then(() => "done", () => "again");
    }
    """
    worker.evaluate(registered)
    phone.context.set_offline(True)
    worker.evaluate(CLICK, {"action": action_of(phone, "Yes")})
    assert worker.evaluate("self.registered") == ["presses"]
    assert worker.evaluate(dispatch) == "again"
    phone.context.set_offline(False)
    assert worker.evaluate(dispatch) == "done"
    assert label_of(site, asked) == "Yes" and worker.evaluate(KEPT) == []


@each("is_deleted, said", [(False, "This was already answered."), (True, "This button no longer works.")])
def test_a_press_that_is_refused_shows_a_silent_message_and_is_not_retried(
    phone, site, worker, asks, is_deleted, said
):
    worker.evaluate(CLOSE_ALL)
    asks()
    site.service.app.test_client().post(paths(phone.subscription)["No"])
    if is_deleted:
        with transaction(EVERYBODY):
            run("DELETE FROM notification")
    worker.evaluate(CLICK, {"action": action_of(phone, "Yes")})
    told = worker.evaluate("self.shown")[-1]
    assert (told["title"], told["body"], told["silent"]) == ("MCP - Deploy?", said, True)
    assert worker.evaluate(KEPT) == []


HOSTILE = [
    "https://evil.example/a/" + "x" * 22,
    "//evil.example/a/" + "x" * 22,
    "javascript:alert(1)",
    "data:text/html,x",
    "{base}/a/" + "x" * 21,
    "{base}/a/../app/keys?" + "x" * 22,
    "/a/" + "x" * 22,
    "",
    None,
    7,
    {},
]


def test_no_button_sends_a_press_elsewhere_or_opens_what_is_no_web_address(phone, site, worker):
    asked = []
    phone.context.on("request", lambda request: asked.append(request.url))
    phone.leave(worker)
    for wanted in HOSTILE:
        navigate = wanted.replace("{base}", site.base) if isinstance(wanted, str) else wanted
        data = {"actions": [{"action": "0", "title": "x", "navigate": navigate}]}
        opened = worker.evaluate(CLICK, {"data": data, "action": "0"})
        expected = wanted if wanted == HOSTILE[0] else site.base
        assert isinstance(opened, list) and opened[0].startswith(expected), (wanted, opened)
    assert presses(site) == [] and not [url for url in asked if "evil" in url]


def test_the_app_badge_counts_unacknowledged_notifications(phone, site, worker, asks):
    def wait_for_badge(count):  # the worker counts once the notification is shown
        until(lambda: worker.evaluate("self.badge") == count, phone.page)

    asks()
    wait_for_badge(0)
    asks(acknowledge=True)
    wait_for_badge(1)
    _, shown = asks(acknowledge=True, tag="disk")
    wait_for_badge(2)
    acknowledged = {"title": "MCP - Deploy?", "body": "Acknowledged.", "tag": shown["tag"], "silent": True}
    replacing = phone.deliver(worker, json.dumps({"notification": acknowledged}))
    wait_for_badge(1)
    assert (replacing["actions"], replacing.get("requireInteraction")) == ([], None)
    tags = worker.evaluate("self.registration.getNotifications().then((all) => all.map(({ tag }) => tag))")
    assert tags.count(shown["tag"]) == 1


def test_a_browser_that_reports_no_maximum_of_buttons_gets_two(phone, site, worker, asks):
    worker.evaluate("() => { Object.defineProperty(Notification, 'maxActions', { value: undefined }); }")
    _, shown = asks(acknowledge=True)
    assert [one["title"] for one in shown["actions"]] == ["Acknowledge", "Yes"]
