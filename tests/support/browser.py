"""A real browser: Chromium, the service on a port of its own, and a phone of the owner with all its parts.

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

import pytest
from playwright.sync_api import expect
from werkzeug.serving import WSGIRequestHandler, make_server

from core import accounts
from process import clock
from store.database import run
from tests.support.accounts import OWNER, PASSWORD
from tests.support.service import Service

LIMIT_S = 60  # for what takes some milliseconds on a machine that has nothing else to do
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
# Chromium without all that is around a page. It takes a third less CPU, but lets no site show a notification.
HEADLESS_SHELL = shutil.which("chromium-headless-shell")
IS_REQUIRED = os.environ.get("REQUIRE_BROWSER") == "1"
# What Playwright switches off, since the last such flag counts alone; the pages in which Chromium draws the list
# under its address line: each window loads two of them, which takes it longer than our page; the process that it
# starts ahead for another site, which no test visits; and the new frame that it makes for each page of one site, a
# quarter of the CPU of a page load.
FEATURES_OFF = [
    "AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay", "MediaRouter",
    "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch",
    "RenderDocument", "SpareRendererForSitePerProcess", "TcpPortRandomizationWin",
    "ThirdPartyStoragePartitioning", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxPopup",
]  # fmt: skip
FLAGS = [
    "--no-sandbox",
    "--renderer-process-limit=1",  # else a new page leaves its process for another one at its first address
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(FEATURES_OFF)}",
    "--host-resolver-rules=MAP lan.test 127.0.0.1, MAP evil.example ~NOTFOUND",
]
NO_SCRIPT = "To get notifications in this browser, JavaScript must be on."
MAX_TAPS = 6  # from one thing that the owner wants to the next
ENABLE = "Turn on notifications"
ON = "This browser gets your notifications."

expect.set_options(timeout=LIMIT_S * 1000)

# A browser's push manager as strict as the real ones are together: Chrome's checks, Safari's rule that it asks for
# the permission in the very task of a tap alone, the standard's rule about another key. Each new subscription is the
# next of `subscriptions`. `settle` is "yes", "denied" or "never"; `permission` what the browser says before it asked.
PUSH_MANAGER = """
({ subscriptions, settle, permission }) => {
  let inTap = false;
  addEventListener("click", () => {
    inTap = true;
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { inTap = false; };
    port2.postMessage(0);
  }, true);
  const read = (name) => JSON.parse(localStorage.getItem(name));
  const write = (name, value) => localStorage.setItem(name, JSON.stringify(value));
  const kept = ({ number, key }) => ({
    endpoint: subscriptions[number].endpoint,
    options: { userVisibleOnly: true, applicationServerKey: new Uint8Array(key).buffer },
    toJSON: () => ({ ...subscriptions[number], expirationTime: null }),
    unsubscribe: async () => { localStorage.removeItem("subscribed"); return true; },
  });
  const refused = (text, name = "NotAllowedError") => Promise.reject(new DOMException(text, name));
  Object.defineProperty(Notification, "permission", { get: () => read("permission") ?? permission });
  PushManager.prototype.getSubscription = async () => read("subscribed") && kept(read("subscribed"));
  PushManager.prototype.subscribe = function (options) {
    if (!inTap && Notification.permission !== "granted") return refused("not in the task of a tap");
    if (settle === "never") return new Promise(() => {});
    if (settle === "denied") {
      write("permission", "denied");
      return refused("Registration failed - permission denied");
    }
    if (options.userVisibleOnly !== true) return refused("silent");
    const key = [...new Uint8Array(options.applicationServerKey)];
    if (key.length !== 65 || key[0] !== 4) return refused("key", "InvalidAccessError");
    const before = read("subscribed");
    if (before && String(before.key) !== String(key)) return refused("another key", "InvalidStateError");
    write("permission", "granted");
    if (!before) {
      const number = read("made") ?? 0;
      if (number === subscriptions.length) return refused("the test has no more subscriptions", "AbortError");
      write("made", number + 1);
      write("subscribed", { number, key });
    }
    return Promise.resolve(kept(read("subscribed")));
  };
}
"""
# Counts the taps of a tab: on whatever can be tapped, by finger or by key.
COUNT_TAPS = """
addEventListener("click", (event) => {
  if (!event.isTrusted || !event.target.closest("a, button, summary, label, select, input")) return;
  sessionStorage.setItem("taps", 1 + Number(sessionStorage.getItem("taps")));
}, true);
"""
RECORD_SHOWN = """
() => {
  self.shown = [];
  const show = ServiceWorkerRegistration.prototype.showNotification;
  ServiceWorkerRegistration.prototype.showNotification = async function (title, options) {
    await show.call(this, title, options);
    const { body, tag, data, silent, requireInteraction, actions = [] } = options;
    self.shown.push({ title, body, tag, data, silent, requireInteraction, actions, image: options.image });
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
# The label of the element that has the focus, and whether one sees the whole of it and that it has the focus.
FOCUSED = """
() => {
  const focused = document.activeElement;
  const style = getComputedStyle(focused);
  const hasOutline = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const isMarked = focused.matches(":focus-visible") && hasOutline;
  const { left, top, right, bottom } = focused.getBoundingClientRect();
  const isThere = [[left + 3, top + 3], [right - 3, bottom - 3]].every((place) => {
    const hit = document.elementFromPoint(...place);
    return hit && (focused.contains(hit) || hit.contains(focused));
  });
  const label = focused.labels && focused.labels.length ? focused.labels[0].textContent : focused.textContent;
  return [label.trim(), isMarked && isThere];
}
"""
# Keeps the page's layout shifts.
OBSERVE = """
self.shifts = [];
new PerformanceObserver((list) => {
  const named = (node) => `${node?.nodeName}.${node?.className} “${(node?.textContent ?? "").trim().slice(0, 30)}”`;
  for (const one of list.getEntries()) {
    if (!one.hadRecentInput) self.shifts.push([one.value, ...one.sources.map((source) => named(source.node))]);
  }
}).observe({ type: "layout-shift", buffered: true });
"""
# After two frames, all that was laid out before has been reported.
SHIFTS = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(self.shifts))))"
MOST_SHIFT = 0.02  # of the cumulative layout shift; 0.1 counts as good


class Quiet(WSGIRequestHandler):
    def log(self, *args):
        pass


class Site:
    """The service on a port of its own, with its clock running. `host` is what it takes its public address for."""

    def __init__(self, data_dir, push_service, host="localhost"):
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.base = f"http://localhost:{self.port}"
        self.insecure = f"http://lan.test:{self.port}"
        self.answering, self.answered, self.is_closed = 0, threading.Condition(), False
        self.asked = []  # (method, path, Cookie, Authorization) of every request
        self.service = Service(data_dir, WEBPUSH_HOSTS=push_service.origin, BASE_URL=f"http://{host}:{self.port}")
        self.server = make_server(
            "127.0.0.1", self.port, self._answer, threaded=True, request_handler=Quiet, fd=listening.fileno()
        )
        listening.close()  # the server has its own copy
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def _answer(self, environ, start_response):
        names = ("REQUEST_METHOD", "PATH_INFO", "HTTP_COOKIE", "HTTP_AUTHORIZATION")
        self.asked.append(tuple(environ.get(name) for name in names))
        with self.answered:
            if self.is_closed:
                raise ConnectionAbortedError  # the next test's database may be open already
            self.answering += 1
        try:
            return self.service.app(environ, start_response)
        finally:
            with self.answered:
                self.answering -= 1
                self.answered.notify()

    def close(self):
        """End the server once every request is answered: a late one could reach the next test's database."""
        self.server.shutdown()
        self.thread.join()
        with self.answered:
            self.is_closed = True
            assert self.answered.wait_for(lambda: not self.answering, LIMIT_S)
        self.server.server_close()

    def count(self, method, path):
        """How often this was requested."""
        return sum(asked[:2] == (method, path) for asked in self.asked)

    def setup_link(self):
        return self.base + accounts.make_setup_link(clock.now_ms())

    def cookie(self, email=OWNER):
        """A session of the owner, made with the sign-in form."""
        created = self.service.flask("account", "create", email, "--password-stdin", stdin=PASSWORD)
        self.service.flask("account", "set", email, "--admin")
        client = self.service.app.test_client()
        token = client.get("/app/login").text.partition('name="csrf" content="')[2].partition('"')[0]
        signed_in = client.post("/app/login", data={"csrf": token, "email": email, "password": PASSWORD})
        assert signed_in.status_code == 303, (created.output, signed_in.text)
        return {"name": "pocketbell", "value": client.get_cookie("pocketbell").value, "url": self.base}

    def request(self, path, key, body=None):
        """Make a request with an API key over real HTTP, and return its JSON."""
        data = json.dumps(body).encode() if body else None
        asked = urllib.request.Request(self.base + path, data, {"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return json.load(answer)

    def send(self, title="Disk", body="root at 98 %", **more):
        """Send a notification with a new API key, and return it as the REST API shows it."""
        sent = {"title": title, "body": body, **more}
        return self.request("/api/v1/notifications/send", self.new_key(), sent)["notification"]

    def detail(self, notification_id):
        """The notification in detail."""
        return self.request(f"/api/v1/notifications/{notification_id}", self.new_key())["notification"]

    def new_key(self):
        return self.service.caller(name="sender").key

    def subscribed(self):
        """The endpoints of the browsers that are currently devices."""
        kept = run("SELECT token FROM device WHERE kind = 'webpush' AND removed_at IS NULL ORDER BY seq")
        return [row[0] for row in kept]


class Phone:
    """One browser of the owner: a page, its subscriptions at the stand-in service, its service worker."""

    def __init__(self, site, context, push_service, settle="yes", is_signed_in=True, permission="default"):
        self.site, self.context, self.registrations = site, context, []
        self.subscription, self.next_subscription = push_service.browser(), push_service.browser()
        context.grant_permissions(["notifications"], origin=site.base)
        made = [self.subscription.subscription, self.next_subscription.subscription]
        told = json.dumps({"subscriptions": made, "settle": settle, "permission": permission})
        context.add_init_script(f"({PUSH_MANAGER})({told})")
        context.add_init_script(COUNT_TAPS)
        if is_signed_in:
            context.add_cookies([site.cookie()])
        self.page = context.new_page()

    def go(self, path="/app/devices"):
        self.page.goto(self.site.base + path)
        return self.page

    def enable(self):
        self.go()
        self.page.get_by_role("button", name=ENABLE).click()
        expect(self.page.get_by_text(ON)).to_be_visible()

    def taps(self):
        return int(self.page.evaluate("sessionStorage.getItem('taps')") or 0)

    def worker(self):
        """Wait for the service worker, make it record what it does, and return it."""
        (worker,) = until(lambda: self.context.service_workers, self.page)
        worker.evaluate(RECORD_SHOWN)
        worker.evaluate(RECORD_OPENED)
        return worker

    def start_worker(self):
        """Open the page that registers the service worker, and return the worker."""
        self.go()
        expect(state(self.page)).not_to_be_empty()
        return self.worker()

    def leave(self, worker):
        """Wait until the worker knows that none of our pages is open."""
        self.page.goto("about:blank")
        none = "self.clients.matchAll({ includeUncontrolled: true }).then((all) => all.length === 0)"
        until(lambda: worker.evaluate(none), self.page)

    def deliver(self, worker, text):
        """Hand a push to the service worker, wait until it shows a notification, and return that."""
        assert worker.evaluate("Notification.permission") == "granted", "mark the test with shows_notifications"
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


def until(condition, page, what=lambda: "it happens"):
    """Poll until the condition returns something true, and return it; fail when the time is up."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        answer = condition()
        if answer:
            return answer
        page.wait_for_timeout(20)  # lets the browser's events in
    pytest.fail(f"not within {LIMIT_S} s: {what()}")


def follow(link):
    """Click what leads to another page, and wait for all of that page: a click alone waits only for its address.

    Call this before anything that looks at the page as it is, such as `evaluate_all` and `count`, and before filling
    in a form.
    """
    with link.page.expect_navigation():
        link.click()


def said(page, sentence):
    expect(page.get_by_role("status").filter(has_text=sentence)).to_be_visible()


def tab_to(page, name, most=40):
    """Press Tab until the element with this label has the focus, which must be visible at every step."""
    page.wait_for_load_state()  # on half a page, Tab leads elsewhere
    for _ in range(most):
        page.keyboard.press("Tab")
        if focused(page) == name:
            return
    pytest.fail(f"{page.url}: no Tab leads to “{name}”")


def focused(page):
    """The label of the focused element, as soon as its focus is visible: the page may still be scrolling to it."""
    looks = []

    def is_seen():
        looks.append(page.evaluate(FOCUSED))
        return looks[-1][1]

    until(is_seen, page, lambda: f"on {page.url} one sees that “{looks[-1][0]}” has the focus")
    return looks[-1][0]


def listen(page):
    """A list that collects the browser's complaints from now on: console, policy, dialogs, failed requests."""
    troubles = []
    page.on("console", lambda message: troubles.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    left = "net::ERR_ABORTED"  # the page was left while this was on the way; what a policy stops fails otherwise
    page.on("requestfailed", lambda it: it.failure == left or troubles.append(f"failed: {it.url} {it.failure}"))
    return troubles


def state(page):
    """What the page says about this browser."""
    return page.locator("#push-state")


def jumps(page):
    """The layout shifts of the page if they are too large."""
    shifts = page.evaluate(SHIFTS)
    return shifts if sum(value for value, *_ in shifts) >= MOST_SHIFT else []


def settle(page):
    """Wait until the page says what it has to say about this browser."""
    if state(page).count():
        expect(state(page)).not_to_be_empty()


def no_script(page):
    """What the page says about this browser when its scripts do not run."""
    return page.locator("noscript p", has_text=NO_SCRIPT)


# Clicks the notification that is shown (a new one with `data`, if given), or its button `action`. Returns what was
# opened when the worker was done, or why it failed.
CLICK = """
async ({ data, action = "" }) => {
  self.opened = [];
  if (data !== undefined) await self.registration.showNotification("Click me", { data });
  const [notification] = await self.registration.getNotifications();
  const click = new NotificationEvent("notificationclick", { notification, action });
  let done;
  click.waitUntil = (promise) => { done = promise; };
  self.dispatchEvent(click);
  const late = new Promise((resolve) => setTimeout(resolve, 30000, "nothing for 30 s"));
  const failure = await Promise.race([done.then(() => null, String), late]);
  return self.opened.length ? self.opened : failure;
}
"""


def enable_button(page):
    return page.get_by_role("button", name=ENABLE)


GROUND = "getComputedStyle(document.body).backgroundColor"
