"""What a notification carries, in a real browser: the service worker shows it, a tap opens its URL."""

import json

import pytest
from playwright.sync_api import expect

from tests.support.rows import each

pytestmark = pytest.mark.shows_notifications

SHOWN_NOW = """
async () => (await self.registration.getNotifications()).map(
  ({ title, tag, silent, requireInteraction }) => ({ title, tag, silent, requireInteraction }))
"""
TAP = """
async (tag) => {
  self.opened = [];
  const [notification] = await self.registration.getNotifications({ tag });
  let done;
  const event = new NotificationEvent("notificationclick", { notification });
  event.waitUntil = (promise) => { done = promise; };
  self.dispatchEvent(event);
  await done.catch(() => {}); // no window may be focused without a real tap
  return self.opened;
}
"""
IGNORE_TAGS = """
() => {
  const show = ServiceWorkerRegistration.prototype.showNotification;
  const get = ServiceWorkerRegistration.prototype.getNotifications;
  let number = 0;
  const close = Notification.prototype.close;
  self.tags = {};
  self.closed = []; // the browser itself closes those that are shown for some seconds
  Notification.prototype.close = function () { self.closed.push(this.title); return close.call(this); };
  ServiceWorkerRegistration.prototype.showNotification = function (title, { tag, ...options }) {
    self.tags[`n${++number}`] = tag;
    return show.call(this, title, { ...options, tag: `n${number}` });
  };
  ServiceWorkerRegistration.prototype.getNotifications = async function (filter) {
    const all = await get.call(this);
    return filter ? all.filter((one) => self.tags[one.tag] === filter.tag) : all;
  };
}
"""


DECLARED = """
async (members) => {
  class Declared {}
  for (const [name, value] of Object.entries(members)) Object.defineProperty(Declared.prototype, name, { value });
  const event = new PushEvent("push");
  Object.defineProperty(event, "notification", { value: new Declared() });
  let done;
  event.waitUntil = (promise) => { done = promise; };
  self.dispatchEvent(event);
  await done;
}
"""


class Sender:
    """Sends with a key, and hands what was pushed to the phone's service worker."""

    def __init__(self, phone, site):
        self.phone, self.site = phone, site
        phone.enable()
        self.worker = phone.worker()
        self.key = site.new_key()

    def send(self, title="Disk", **more):
        sent = self.site.request("/api/v1/notifications/send", self.key, {"title": title, "body": "b", **more})
        return sent["notification"]

    def show(self, title="Disk", **more):
        """What the service worker shows of a notification that is sent."""
        self.send(title, **more)
        return self.phone.deliver(self.worker, json.dumps(self.phone.subscription.messages[-1]))

    def on_screen(self):
        return self.worker.evaluate(SHOWN_NOW)


@pytest.fixture
def sender(phone, site):
    return Sender(phone, site)


@each("priority, silent, stays", [(2, True, False), (3, None, False), (5, None, True)])
def test_a_priority_decides_sound_and_persistence_on_the_screen(sender, priority, silent, stays):
    sender.show(priority=priority, tag="disk")
    (shown,) = sender.on_screen()
    assert (bool(shown["silent"]), shown["requireInteraction"]) == (bool(silent), stays)


def test_the_newest_with_a_tag_replaces_earlier_ones_even_if_the_browser_ignores_tags(sender):
    sender.worker.evaluate(IGNORE_TAGS)
    for number in range(3):
        sender.show(str(number), tag="disk")
    sender.show("other")
    assert {*sender.worker.evaluate("self.closed")} == {"MCP - 0", "MCP - 1"}


def test_a_push_that_safari_has_read_is_shown_by_the_worker(sender):
    for number in range(2):
        told = {"title": str(number), "body": "b", "tag": "t", "navigate": "https://example.org/", "silent": True}
        sender.worker.evaluate(DECLARED, told)
    (shown,) = sender.on_screen()
    assert (shown["title"], shown["tag"], shown["silent"]) == ("1", "t", True)
    assert sender.worker.evaluate(TAP, "t") == ["https://example.org/"]


@each("url", ["https://nas.example.org/disks?a=b#c", "{base}/docs"])
def test_a_tap_opens_the_url_without_replacing_an_open_page(sender, site, url):
    url = url.replace("{base}", site.base)
    page = sender.phone.go("/app/keys")
    shown = sender.show(url=url)
    assert shown["data"] == {"url": url}
    assert sender.worker.evaluate(TAP, shown["tag"]) == [url]
    expect(page).to_have_url(f"{site.base}/app/keys")
    assert sender.on_screen() == []


@each("url", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "blob:x", "//a", 7])
def test_only_http_addresses_are_opened(sender, site, url):
    sender.phone.leave(sender.worker)
    push = {"web_push": 8030, "notification": {"title": "t", "tag": "x", "navigate": url}}
    sender.phone.deliver(sender.worker, json.dumps(push))
    (opened,) = sender.worker.evaluate(TAP, "x")
    assert opened.startswith(f"{site.base}/app/")
