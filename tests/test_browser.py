"""The pages in a real browser: the whole first way in, the service worker, what the page says when it cannot work.

Only the vendor's network is missing: `PushManager` is replaced by a strict stand-in, the server pushes to the one of
push_service.py, and the text that this decrypts is handed to the service worker as Chromium would hand it over.
"""

import json
import os
import shutil
import socket
import threading
import time
import urllib.request
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright
from werkzeug.serving import WSGIRequestHandler, make_server

import accounts
import clock
from models import Device
from tests.conftest import Service

EMAIL, PASSWORD = "owner@example.org", "correct horse battery"
LIMIT_S = 15  # for what takes some milliseconds on a machine that has nothing else to do
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
IS_REQUIRED = os.environ.get("REQUIRE_BROWSER") == "1"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP lan.test 127.0.0.1, MAP evil.example ~NOTFOUND",
]
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/17.5 Mobile/15E148 Safari/604.1"
)
IPAD = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/17.5 Safari/605.1.15"
)

expect.set_options(timeout=LIMIT_S * 1000)
if CHROMIUM is None and not IS_REQUIRED:
    pytest.skip("there is no Chromium: apt-get install chromium", allow_module_level=True)

# A browser's push manager as strict as the real ones are together: Chrome's checks, Safari's rule that subscribing
# happens in the very task of a tap, the standard's rule about another key. `settle` is "yes", "denied" or "never".
PUSH_MANAGER = """
({ subscription, settle }) => {
  let inTap = false;
  addEventListener("click", () => {
    inTap = true;
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { inTap = false; };
    port2.postMessage(0);
  }, true);
  const kept = (key) => ({
    endpoint: subscription.endpoint,
    options: { userVisibleOnly: true, applicationServerKey: new Uint8Array(key).buffer },
    toJSON: () => ({ ...subscription, expirationTime: null }),
    unsubscribe: async () => { localStorage.removeItem("subscribed"); return true; },
  });
  const current = () => JSON.parse(localStorage.getItem("subscribed"));
  PushManager.prototype.getSubscription = async () => current() && kept(current());
  PushManager.prototype.subscribe = function (options) {
    if (!inTap) return Promise.reject(new DOMException("not in the task of a tap", "NotAllowedError"));
    if (settle === "never") return new Promise(() => {});
    if (settle === "denied") {
      Object.defineProperty(Notification, "permission", { get: () => "denied" });
      return Promise.reject(new DOMException("Registration failed - permission denied", "NotAllowedError"));
    }
    if (Notification.permission !== "granted") return Promise.reject(new DOMException("no grant", "NotAllowedError"));
    if (options.userVisibleOnly !== true) return Promise.reject(new DOMException("silent", "NotAllowedError"));
    const key = [...new Uint8Array(options.applicationServerKey)];
    if (key.length !== 65 || key[0] !== 4) return Promise.reject(new DOMException("key", "InvalidAccessError"));
    if (current() && String(current()) !== String(key)) {
      return Promise.reject(new DOMException("another key", "InvalidStateError"));
    }
    localStorage.setItem("subscribed", JSON.stringify(key));
    return Promise.resolve(kept(key));
  };
}
"""
RECORD_SHOWN = """
() => {
  self.shown = [];
  const show = ServiceWorkerRegistration.prototype.showNotification;
  ServiceWorkerRegistration.prototype.showNotification = async function (title, options) {
    await show.call(this, title, options);
    self.shown.push({ title, body: options.body, tag: options.tag, data: options.data });
  };
}
"""
RECORD_OPENED = """
() => {
  Object.defineProperty(self.clients, "openWindow", {
    value: async (address) => { self.opened.push(new URL(address, self.location.href).href); return null; },
  });
}
"""
# Clicks a notification; answers with what was opened when the worker is done, or with why it failed.
CLICK = """
async (data) => {
  self.opened = [];
  await self.registration.showNotification("Click me", { data });
  const [notification] = await self.registration.getNotifications();
  const click = new NotificationEvent("notificationclick", { notification, action: "" });
  let done;
  click.waitUntil = (promise) => { done = promise; };
  self.dispatchEvent(click);
  const late = new Promise((resolve) => setTimeout(resolve, 5000, "nothing for 5 s"));
  const failure = await Promise.race([done.then(() => null, String), late]);
  return self.opened.length ? self.opened : failure;
}
"""


class Quiet(WSGIRequestHandler):
    def log(self, *args):
        pass


class Site:
    """The service on a port of its own, with its clock running."""

    def __init__(self, data_dir, push_service):
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.base = f"http://localhost:{self.port}"
        self.service = Service(data_dir, WEBPUSH_HOSTS=push_service.origin, BASE_URL=self.base)
        self.server = make_server(
            "127.0.0.1", self.port, self.service.app, threaded=True, request_handler=Quiet, fd=listening.fileno()
        )
        listening.close()  # the server has its own copy
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def setup_link(self):
        return self.base + accounts.make_setup_link(clock.now_ms())

    def cookie(self):
        """A session of the owner, made with the sign-in form."""
        self.service.flask("account", "create", EMAIL, "--password-stdin", stdin=PASSWORD)
        client = self.service.app.test_client()
        token = client.get("/app/login").text.partition('name="csrf" content="')[2].partition('"')[0]
        signed_in = client.post("/app/login", data={"csrf": token, "email": EMAIL, "password": PASSWORD})
        assert signed_in.status_code == 303
        return {"name": "pocketbell", "value": client.get_cookie("pocketbell").value}

    def request(self, path, key, body=None):
        """A request with an API key over real HTTP; answers with the JSON."""
        data = json.dumps(body).encode() if body else None
        asked = urllib.request.Request(self.base + path, data, {"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return json.load(answer)


@pytest.fixture(autouse=True)
def cheap_passwords(monkeypatch):
    monkeypatch.setattr(accounts, "PASSWORD_METHOD", "scrypt:128:8:1")
    monkeypatch.setattr(accounts, "NOBODYS_PASSWORD", "scrypt:128:8:1$pocketbell$" + "0" * 128)


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.fail("REQUIRE_BROWSER=1, and there is no Chromium: apt-get install chromium", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def site(tmp_path, push_service):
    site = Site(tmp_path / "data", push_service)
    yield site
    site.close()


@pytest.fixture
def open_context(chromium):
    """Makes a browser with cookies of its own."""
    contexts = []

    def make(**options):
        context = chromium.new_context(**options)
        context.set_default_timeout(LIMIT_S * 1000)
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


class Phone:
    """One browser of the owner: a page, its subscription at the stand-in service, its service worker."""

    def __init__(self, site, context, push_service, settle="yes", is_signed_in=True):
        self.site, self.context, self.registrations = site, context, []
        self.subscription = push_service.browser()
        context.grant_permissions(["notifications"], origin=site.base)
        told = json.dumps({"subscription": self.subscription.subscription, "settle": settle})
        context.add_init_script(f"({PUSH_MANAGER})({told})")
        if is_signed_in:
            context.add_cookies([{**site.cookie(), "url": site.base}])
        self.page = context.new_page()

    def go(self, path="/app/devices"):
        self.page.goto(self.site.base + path)
        return self.page

    def enable(self):
        self.go()
        self.page.get_by_role("button", name="Enable on this device").click()
        expect(self.page.get_by_text("This browser gets your notifications.")).to_be_visible()

    def start_worker(self):
        """Wait for the service worker to be there and make it record; answers with it."""
        self.go()
        expect(self.page.get_by_text("This browser")).to_be_visible()
        (worker,) = until(lambda: self.context.service_workers, self.page)
        worker.evaluate(RECORD_SHOWN)
        worker.evaluate(RECORD_OPENED)
        return worker

    def leave(self, worker):
        """Wait until the worker, too, knows that no page of ours is open."""
        self.page.goto("about:blank")
        none = "self.clients.matchAll({ includeUncontrolled: true }).then((all) => all.length === 0)"
        until(lambda: worker.evaluate(none), self.page)

    def deliver(self, worker, text):
        """Hand a push to the service worker and wait until it has shown what it shows; answers with that."""
        before = len(worker.evaluate("self.shown"))
        if not self.registrations:
            self.cdp = self.context.new_cdp_session(self.page)
            found = "ServiceWorker.workerRegistrationUpdated"
            self.cdp.on(found, lambda event: self.registrations.extend(event["registrations"]))
            self.cdp.send("ServiceWorker.enable")
            until(lambda: self.registrations, self.page)
        registration = self.registrations[0]["registrationId"]
        push = {"origin": self.site.base, "registrationId": registration, "data": text}
        self.cdp.send("ServiceWorker.deliverPushMessage", push)
        return until(lambda: worker.evaluate("self.shown")[before:], self.page)[0]


def until(condition, page):
    """What the condition answers with as soon as that is something; fails when the time is up."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        answer = condition()
        if answer:
            return answer
        page.wait_for_timeout(20)  # lets the browser's events in
    pytest.fail(f"not within {LIMIT_S} s")


@pytest.fixture
def phone(site, open_context, push_service):
    return Phone(site, open_context(), push_service)


def state(page):
    return page.locator("#push-state")


# --- the whole way ------------------------------------------------------------------------------------------


def test_from_the_set_up_link_to_a_notification_on_the_screen(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, is_signed_in=False)
    page = phone.page
    page.goto(site.setup_link())
    page.get_by_label("E-mail address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(f"{site.base}/app/devices")
    page.get_by_role("button", name="Enable on this device").click()
    expect(state(page)).to_have_text("This browser gets your notifications.")
    expect(page.get_by_role("listitem")).to_contain_text("Chrome on Linux")
    worker = phone.start_worker()
    page.get_by_role("link", name="API keys").click()
    page.get_by_label("Name of a new key").fill("backup")
    page.get_by_role("button", name="Make a key").click()
    key = page.locator("#full-key").inner_text()
    sent = site.request("/api/v1/notifications/send", key, {"title": "Disk", "body": "root at 98 %"})["notification"]
    (message,) = phone.subscription.messages
    assert message["notification"]["navigate"] == f"{site.base}/app/"
    shown = phone.deliver(worker, json.dumps(message))
    assert (shown["title"], shown["body"], shown["tag"]) == ("MCP - Disk", "root at 98 %", sent["id"])
    titles = "self.registration.getNotifications().then((all) => all.map((one) => one.title))"
    assert worker.evaluate(titles) == ["MCP - Disk"]
    (listed,) = site.request("/api/v1/notifications", key)["notifications"]
    assert (listed["id"], listed["status"]) == (sent["id"], "delivered")


def test_the_time_zone_is_guessed_on_the_set_up_page(site, open_context):
    page = open_context(timezone_id="Europe/Berlin").new_page()
    page.goto(site.setup_link())
    expect(page.get_by_label("Time zone")).to_have_value("Europe/Berlin")


def test_a_time_zone_that_was_chosen_is_not_guessed_again(site, open_context):
    page = open_context(timezone_id="Europe/Berlin").new_page()
    page.goto(site.setup_link())
    page.get_by_label("E-mail address").fill("root@localhost")
    page.get_by_label("Password").fill("twelve characters")
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    page.get_by_label("Password").evaluate("input => { input.minLength = 0; input.value = 'short'; }")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("12 characters")
    expect(page.get_by_label("Time zone")).to_have_value("Asia/Tokyo")


# --- a browser and its device -------------------------------------------------------------------------------


def test_a_browser_that_is_on_stays_on_after_a_reload(phone):
    phone.enable()
    phone.page.reload()
    expect(state(phone.page)).to_have_text("This browser gets your notifications.")
    expect(phone.page.get_by_role("button", name="Enable on this device")).to_be_hidden()
    expect(phone.page.get_by_role("button", name="Remove")).to_have_count(1)


def test_a_device_that_the_owner_removed_in_its_own_browser_stays_removed(phone):
    phone.enable()
    with phone.page.expect_navigation():
        phone.page.get_by_role("button", name="Remove").click()
    expect(phone.page.get_by_text("The device is removed")).to_be_visible()
    expect(state(phone.page)).not_to_have_text("To get notifications in this browser, JavaScript must be on.")
    phone.page.reload()
    expect(phone.page.get_by_role("button", name="Remove")).to_have_count(0)
    expect(phone.page.get_by_role("button", name="Enable on this device")).to_be_visible()


def test_a_page_whose_session_ended_says_that_one_must_sign_in(phone):
    phone.go()
    button = phone.page.get_by_role("button", name="Enable on this device")
    expect(button).to_be_visible()
    phone.context.clear_cookies()
    button.click()
    expect(phone.page.get_by_text("sign in", exact=False).first).to_be_visible()


# --- the service worker -------------------------------------------------------------------------------------

BAD_PUSHES = [
    "",
    "not JSON",
    "{",
    "null",
    "[]",
    "7",
    "{}",
    '{"notification": null}',
    '{"notification": {"body": "no title"}}',
    '{"notification": {"title": 7}}',
]
ODD_PUSHES = [
    '{"notification": {"title": "T", "body": {"toString": 1, "valueOf": 1}}}',
    '{"notification": {"title": "T", "body": null, "tag": [], "navigate": {}}}',
    '{"notification": {"title": "T", "body": "\\ud800", "tag": "\\u0000"}}',
]


def test_a_push_that_cannot_be_read_still_shows_a_notification(phone):
    worker = phone.start_worker()
    for text in BAD_PUSHES:
        shown = phone.deliver(worker, text)
        assert (shown["title"], shown["body"]) == ("Pocketbell", "A notification arrived that could not be read.")


def test_a_push_with_odd_fields_still_shows_a_notification(phone):
    worker = phone.start_worker()
    for text in ODD_PUSHES:
        assert phone.deliver(worker, text)["title"] in ("T", "Pocketbell")


def test_clicking_a_notification_opens_its_page_when_none_is_open(phone, site):
    worker = phone.start_worker()
    phone.leave(worker)
    assert worker.evaluate(CLICK, {"navigate": f"{site.base}/app/keys"}) == [f"{site.base}/app/keys"]


def test_clicking_a_notification_takes_the_open_page_there(phone, site):
    worker = phone.start_worker()
    worker.evaluate(CLICK, {"navigate": f"{site.base}/app/keys"})
    phone.page.wait_for_url(f"{site.base}/app/keys")
    assert worker.evaluate("self.opened") == []


def test_clicking_a_notification_works_though_the_open_page_was_loaded_past_the_worker(phone, site):
    worker = phone.start_worker()
    cdp = phone.context.new_cdp_session(phone.page)
    with phone.page.expect_navigation():
        cdp.send("Page.reload", {"ignoreCache": True})
    assert phone.page.evaluate("navigator.serviceWorker.controller") is None
    assert worker.evaluate(CLICK, {"navigate": f"{site.base}/app/keys"}) == [f"{site.base}/app/keys"]


HOSTILE_ADDRESSES = [
    "https://evil.example/app/",
    "//evil.example/app/",
    "\\\\evil.example\\app",
    "http://localhost:1/app/",
    "http://localhost@evil.example/",
    "javascript:alert(1)",
    "data:text/html,x",
    "blob:{base}/x",
    "{base}//evil.example/",
    "{base}/.//evil.example/",
    "{base}/\\evil.example/",
    "{base}/app/../..//evil.example/",
    "http://[",
    "",
    None,
    7,
    {},
]


def test_clicking_a_notification_never_leads_to_another_origin(phone, site):
    worker = phone.start_worker()
    phone.leave(worker)
    wrong = {}
    for wanted in HOSTILE_ADDRESSES:
        navigate = wanted.replace("{base}", site.base) if isinstance(wanted, str) else wanted
        opened = worker.evaluate(CLICK, {"navigate": navigate})
        if not isinstance(opened, list) or [urlsplit(one).netloc for one in opened] != [f"localhost:{site.port}"]:
            wrong[str(wanted)] = opened
    assert wrong == {}


def test_an_open_page_is_never_taken_to_another_origin(phone, site):
    worker = phone.start_worker()
    asked = []
    phone.page.on("request", lambda request: asked.append(urlsplit(request.url).netloc))
    for wanted in ("https://evil.example/app/", f"{site.base}//evil.example/app/"):
        phone.go("/app/keys")
        worker.evaluate(CLICK, {"navigate": wanted})
    assert set(asked) == {f"localhost:{site.port}"}


def test_clicking_a_notification_without_data_opens_the_web_app(phone, site):
    worker = phone.start_worker()
    phone.leave(worker)
    assert worker.evaluate(CLICK, None) == [f"{site.base}/app/"]


# --- when it cannot work ------------------------------------------------------------------------------------


def test_a_denied_permission_is_told_with_what_to_do(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, settle="denied")
    phone.go().get_by_role("button", name="Enable on this device").click()
    expect(state(phone.page)).to_contain_text("Notifications are blocked for this site: allow them")
    expect(phone.page.get_by_role("button", name="Enable on this device")).to_be_hidden()


def test_a_permission_that_was_denied_before_is_told_at_once(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service)
    phone.context.add_init_script('Object.defineProperty(Notification, "permission", { get: () => "denied" })')
    expect(state(phone.go())).to_contain_text("Notifications are blocked for this site: allow them")
    expect(phone.page.get_by_role("button", name="Enable on this device")).to_be_hidden()


def test_an_insecure_address_is_told(site, open_context):
    context = open_context()
    insecure = f"http://lan.test:{site.port}"
    context.add_cookies([{**site.cookie(), "url": insecure}])
    page = context.new_page()
    page.goto(f"{insecure}/app/devices")
    expect(state(page)).to_contain_text("Browsers allow notifications over https or on localhost only")
    expect(page.get_by_role("button", name="Enable on this device")).to_be_hidden()


@pytest.mark.parametrize(
    "agent, touch_points, sentence",
    [
        (IPHONE, 5, "Add to Home Screen"),
        (IPAD, 5, "Add to Home Screen"),
        (IPAD, 0, "This browser has no Web Push."),
        (None, 0, "This browser has no Web Push."),
    ],
    ids=["iPhone", "iPad", "old Safari on a Mac", "another"],
)
def test_a_browser_without_web_push_is_told_what_to_do(site, open_context, agent, touch_points, sentence):
    context = open_context(user_agent=agent)
    context.add_init_script("delete window.PushManager; delete window.Notification")
    context.add_init_script(f"Object.defineProperty(navigator, 'maxTouchPoints', {{ value: {touch_points} }})")
    context.add_cookies([{**site.cookie(), "url": site.base}])
    page = context.new_page()
    page.goto(f"{site.base}/app/devices")
    expect(state(page)).to_contain_text(sentence)
    expect(page.get_by_role("button", name="Enable on this device")).to_be_hidden()


def test_a_push_service_that_does_not_answer_is_given_up_after_20_seconds(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, settle="never")
    phone.page.clock.install()
    phone.go().get_by_role("button", name="Enable on this device").click()
    expect(state(phone.page)).to_have_text("Asking the browser…")
    phone.page.clock.run_for(10_000)  # the page's time goes on by itself, too
    expect(state(phone.page)).to_have_text("Asking the browser…")
    phone.page.clock.run_for(10_100)
    expect(state(phone.page)).to_contain_text("This browser cannot reach its push service.")
    expect(phone.page.get_by_role("button", name="Enable on this device")).to_be_visible()


def test_what_the_server_refuses_is_told(phone, site):
    for number in range(20):
        site.service.flask("device", "add", EMAIL, "apns", f"{number:064x}")
    phone.go().get_by_role("button", name="Enable on this device").click()
    expect(state(phone.page)).to_contain_text("There are 20 devices already: remove one first.")


# --- every page ---------------------------------------------------------------------------------------------


@pytest.fixture
def pages(site, open_context, push_service):
    """Addresses of all pages, with long names and errors on them; the cookie that opens them."""
    link = site.setup_link()
    cookie = {**site.cookie(), "url": site.base}
    password_link = site.service.flask("account", "create", f"{'long' * 30}@example.org").output.strip()
    long = "W" * 100
    for name in (long, "backup script", "x y " * 25):
        site.service.flask("key", "create", EMAIL, name)
    site.service.flask("device", "add", EMAIL, "apns", "ab" * 32, "--name", long)
    browser = push_service.browser()
    site.service.flask("device", "add", EMAIL, "webpush", json.dumps(browser.subscription), "--name", "Pixel")
    Device.update(last_error="The push service answered 403 (" + "X" * 60 + ").").execute()
    opened = {
        "login": "/app/login",
        "password": password_link.removeprefix(site.base),
        "devices": "/app/devices",
        "keys": "/app/keys",
        "error": link.removeprefix(site.base),
    }
    return {name: site.base + path for name, path in opened.items()}, cookie


def test_no_page_breaks_the_policy_or_writes_an_error_to_the_console(site, open_context, push_service):
    link = site.setup_link()
    phone = Phone(site, open_context(), push_service, is_signed_in=False)
    troubles = []
    page = phone.page
    page.on("console", lambda message: troubles.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(f"{page.url}: {error}"))
    aborted = "net::ERR_ABORTED"  # by leaving the page
    page.on("requestfailed", lambda it: it.failure == aborted or troubles.append(f"{it.url}: {it.failure}"))
    page.on("response", lambda answer: troubles.append(answer.url) if answer.status >= 400 else None)
    page.goto(link)
    phone.context.add_cookies([{**site.cookie(), "url": site.base}])
    phone.enable()
    page.goto(f"{site.base}/app/login")
    page.goto(f"{site.base}/app/")
    expect(state(page)).to_have_text("This browser gets your notifications.")
    page.goto(f"{site.base}/app/keys")
    page.get_by_label("Name of a new key").fill("backup")
    page.get_by_role("button", name="Make a key").click()
    expect(page.locator("#full-key")).to_be_visible()
    assert troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_the_screen(site, open_context, pages, scheme):
    addresses, cookie = pages
    context = open_context(color_scheme=scheme)
    context.add_cookies([cookie])
    page = context.new_page()
    too_wide = []
    for name, address in addresses.items():
        page.goto(address)
        if name == "keys":
            page.get_by_label("Name of a new key").fill("backup")
            page.get_by_role("button", name="Make a key").click()
            expect(page.locator("#full-key")).to_be_visible()
            page.wait_for_load_state()  # the style sheet counts
        for width in (320, 390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            needed = page.evaluate("document.documentElement.scrollWidth")
            if needed > width:
                too_wide.append((name, width, needed))
    assert too_wide == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(site, open_context, pages, scheme):
    addresses, cookie = pages
    context = open_context(color_scheme=scheme)
    context.add_cookies([cookie])
    page = context.new_page()
    faint = []
    for address in addresses.values():
        page.goto(address)
        faint += page.evaluate(FAINT_TEXTS)
    assert faint == []


FAINT_TEXTS = """
() => {
  const parse = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = (text) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = parse(text).map((value) => linear(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parse(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.body.querySelectorAll("*")]
    .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((element) => {
      const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
      return [location.pathname, element.tagName, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
    })
    .filter(([, , contrast]) => contrast < 4.5);
}
"""


def test_everything_but_enabling_works_without_javascript(site, open_context):
    link = site.setup_link()
    page = open_context(java_script_enabled=False).new_page()
    page.goto(link)
    page.get_by_label("E-mail address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(f"{site.base}/app/devices")
    expect(state(page)).to_have_text("To get notifications in this browser, JavaScript must be on.")
    expect(page.get_by_role("button", name="Enable on this device")).to_be_hidden()
    site.service.flask("device", "add", EMAIL, "apns", "ab" * 32, "--name", "iPhone")
    page.reload()
    page.get_by_role("button", name="Remove iPhone").click()
    expect(page.get_by_role("status").filter(has_text="The device is removed")).to_be_visible()
    page.get_by_role("link", name="API keys").click()
    page.get_by_label("Name of a new key").fill("backup")
    page.get_by_role("button", name="Make a key").click()
    expect(page.locator("#full-key")).to_contain_text("sk_test_")
    page.get_by_role("button", name="Revoke backup").click()
    expect(page.get_by_text("The key is revoked")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{site.base}/app/login")
    page.get_by_label("E-mail address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{site.base}/app/devices")
