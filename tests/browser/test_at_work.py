"""The web app at work in a real browser: the whole first way in, the states of a device, the service worker, offline.

How the pages look and read stands in test_pages.py.
"""

import json
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

import push
from app import open_service
from core import local_time
from process import clock
from store.database import run, transaction
from tests.support.browser import (
    CHROMIUM,
    EMAIL,
    ENABLE,
    FLAGS,
    ON,
    PASSWORD,
    Phone,
    listen,
    no_script,
    said,
    state,
    tab_to,
    until,
)

MAX_TAPS = 6
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/17.5 Mobile/15E148 Safari/604.1"
)
IPAD = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/17.5 Safari/605.1.15"
)

# Clicks the notification that is shown (a new one with `data`, if given); answers with what was opened when the
# worker is done, or with why it failed.
CLICK = """
async ({ data }) => {
  self.opened = [];
  if (data !== undefined) await self.registration.showNotification("Click me", { data });
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
# What the push service does when it gives a browser another subscription, `given` or to be made; answers with the
# options with which the worker subscribed, or with why it failed.
CHANGE_SUBSCRIPTION = """
async ({ given, next }) => {
  const made = (subscription) => ({
    endpoint: subscription.endpoint,
    toJSON: () => ({ ...subscription, expirationTime: null }),
  });
  const asked = [];
  PushManager.prototype.getSubscription = async () => null;
  PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
    asked.push({ userVisibleOnly, key: [...new Uint8Array(applicationServerKey)] });
    return made(next);
  };
  const event = new ExtendableEvent("pushsubscriptionchange");
  Object.defineProperty(event, "oldSubscription", { value: null });
  Object.defineProperty(event, "newSubscription", { value: given ? made(given) : null });
  let done;
  event.waitUntil = (promise) => { done = promise; };
  self.dispatchEvent(event);
  return done.then(() => asked, String);
}
"""
# Everything that this browser keeps of us, but the HTTP cache.
KEPT = """
async () => {
  const cached = [];
  for (const name of await caches.keys()) {
    for (const request of await (await caches.open(name)).keys()) cached.push(new URL(request.url).pathname);
  }
  const stored = {};
  for (const { name, version } of await indexedDB.databases()) {
    const opening = indexedDB.open(name, version);
    const database = await new Promise((resolve) => { opening.onsuccess = () => resolve(opening.result); });
    for (const place of database.objectStoreNames) {
      const request = database.transaction(place).objectStore(place).getAllKeys();
      await new Promise((resolve) => { request.onsuccess = resolve; });
      stored[`${name}/${place}`] = request.result;
    }
    database.close();
  }
  return { cached, stored, tab: Object.keys(sessionStorage), origin: Object.keys(localStorage) };
}
"""
OF_THE_STAND_INS = {"taps", "made", "subscribed", "permission"}


def enable_button(page):
    return page.get_by_role("button", name=ENABLE)


def change_vapid_key(site):
    """The server has another key pair from now on, as after a move without its database."""
    with transaction():
        run("DELETE FROM server_key")
    open_service(site.service.app, site.service.settings)


# --- the whole way ------------------------------------------------------------------------------------------


def test_from_the_set_up_link_to_a_notification_on_the_screen_in_six_taps(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, is_signed_in=False)
    page = phone.page
    page.goto(site.setup_link())
    page.get_by_label("E-mail address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(f"{site.base}/app/")
    enable_button(page).click()
    expect(page.get_by_role("listitem").filter(has_text="Chrome on Linux")).to_be_visible()  # a step is done
    worker = phone.worker()
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("heading", name="It works")).to_be_visible()
    (message,) = phone.subscription.messages
    shown = phone.deliver(worker, json.dumps(message))
    assert (shown["title"], shown["tag"]) == ("MCP - It works", urlsplit(page.url).path.rpartition("/")[2])
    assert 3 <= phone.taps() <= MAX_TAPS


def test_tapping_a_notification_opens_its_page(phone, site):
    phone.enable()
    worker = phone.worker()
    sent = site.send("Disk", "root at 98 %")
    (message,) = phone.subscription.messages
    shown = phone.deliver(worker, json.dumps(message))
    assert (shown["title"], shown["body"], shown["tag"]) == ("MCP - Disk", "root at 98 %", sent["id"])
    worker.evaluate(CLICK, {})
    expect(phone.page).to_have_url(f"{site.base}/app/notifications/{sent['id']}")
    expect(phone.page.get_by_role("heading", level=1)).to_have_text("MCP - Disk")
    expect(phone.page.get_by_text("root at 98 %")).to_be_visible()


def test_the_check_list_ticks_itself_and_goes_when_it_is_hidden(phone, site):
    done = phone.go("/app/").get_by_role("heading", name="Get started")
    expect(done).to_contain_text("1 of 5")
    enable_button(phone.page).click()
    expect(done).to_contain_text("2 of 5")
    phone.page.get_by_role("button", name="Send a test").click()
    phone.go("/app/")
    expect(done).to_contain_text("3 of 5")
    phone.page.get_by_role("link", name="Make a key").click()
    phone.page.get_by_label("Name of a new key").fill("backup")
    phone.page.get_by_role("button", name="Make a key").click()
    phone.page.get_by_role("link", name="Home").click()
    expect(done).to_contain_text("4 of 5")
    phone.page.get_by_role("link", name="Add an alert").click()
    phone.page.get_by_role("radio", name="Grafana").check()
    phone.page.get_by_role("button", name="Create and show its address").click()
    phone.page.get_by_role("link", name="Home").click()
    expect(done).to_contain_text("5 of 5")
    phone.page.get_by_role("button", name="Hide this list").click()
    expect(phone.page.get_by_role("heading", name="Last 14 days")).to_be_visible()
    expect(done).to_have_count(0)


def test_a_script_sends_with_a_key_that_was_made_on_the_pages(phone, site):
    phone.enable()
    phone.page.get_by_role("navigation").get_by_role("link", name="Settings").click()
    phone.page.get_by_role("link", name="API keys").click()
    phone.page.get_by_label("Name of a new key").fill("backup")
    phone.page.get_by_role("button", name="Make a key").click()
    key = phone.page.locator("#full-key").inner_text()
    sent = site.request("/api/v1/notifications/send", key, {"title": "Disk", "body": "root at 98 %"})["notification"]
    (message,) = phone.subscription.messages
    assert message["notification"]["navigate"] == f"{site.base}/app/notifications/{sent['id']}"
    (listed,) = site.request("/api/v1/notifications", key)["notifications"]
    assert (listed["id"], listed["status"]) == (sent["id"], "delivered")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_whole_way_goes_by_keyboard_alone(site, open_context, push_service, width):
    context = open_context(viewport={"width": width, "height": 640})
    phone = Phone(site, context, push_service, is_signed_in=False)
    page, keyboard = phone.page, phone.page.keyboard
    page.goto(site.setup_link())
    tab_to(page, "E-mail address")
    keyboard.type(EMAIL)
    tab_to(page, "Password")
    keyboard.type(PASSWORD)
    tab_to(page, "Start")
    keyboard.press("Enter")
    expect(page).to_have_url(f"{site.base}/app/")
    expect(enable_button(page)).to_be_visible()
    tab_to(page, ENABLE)
    keyboard.press("Space")
    expect(page.get_by_role("listitem").filter(has_text="Chrome on Linux")).to_be_visible()  # a step is done
    worker = phone.worker()
    tab_to(page, "Send a test")
    keyboard.press("Space")
    expect(page.get_by_role("heading", name="It works")).to_be_visible()
    (message,) = phone.subscription.messages
    assert phone.deliver(worker, json.dumps(message))["title"] == "MCP - It works"
    tab_to(page, "Home")
    keyboard.press("Enter")
    expect(page).to_have_url(f"{site.base}/app/")
    assert phone.taps() <= MAX_TAPS


def test_the_first_tab_leads_past_the_navigation(phone):
    page = phone.go("/app/settings")
    tab_to(page, "Skip to the page", most=1)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('main').contains(document.activeElement)")


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
    expect(state(phone.page)).to_have_text(ON)
    expect(enable_button(phone.page)).to_be_hidden()
    expect(phone.page.locator("summary", has_text="Remove…")).to_have_count(1)


def test_a_device_that_the_owner_removed_in_its_own_browser_stays_removed(phone):
    phone.enable()
    phone.page.locator("summary", has_text="Remove…").click()
    with phone.page.expect_navigation():
        phone.page.get_by_role("button", name="Remove").click()
    expect(phone.page.get_by_text("The device is removed")).to_be_visible()
    expect(state(phone.page)).not_to_be_empty()
    phone.page.reload()
    expect(phone.page.locator("summary", has_text="Remove…")).to_have_count(0)
    expect(enable_button(phone.page)).to_be_visible()


def test_the_states_follow_each_other_from_the_first_visit_on(phone, site):
    """default → on → lost → on: each with its sentence, and the button where enabling is what to do next."""
    expect(state(phone.go())).to_contain_text(
        "This browser does not get your notifications yet. Enable it, and allow"
    )
    enable_button(phone.page).click()
    expect(state(phone.page)).to_have_text(ON)
    expect(enable_button(phone.page)).to_be_hidden()
    device = site.service.flask("device", "list", EMAIL).output.split("\t")[0]
    site.service.flask("device", "remove", EMAIL, device)
    phone.page.reload()
    expect(state(phone.page)).to_contain_text("Pocketbell has no device for it")
    expect(state(phone.page)).to_contain_text("Enable it again")
    enable_button(phone.page).click()
    expect(state(phone.page)).to_have_text(ON)
    assert site.subscribed() == [phone.subscription.endpoint]


def test_a_browser_that_is_allowed_and_not_subscribed_is_told_so(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, permission="granted")
    expect(state(phone.go())).to_contain_text("Notifications are allowed, but off in this browser")
    enable_button(phone.page).click()
    expect(state(phone.page)).to_have_text(ON)


def test_another_key_of_the_server_takes_one_tap_and_leaves_one_device(phone, site, push_service):
    phone.enable()
    change_vapid_key(site)
    expect(state(phone.go())).to_contain_text(
        "The server's key has changed since this browser was enabled. Enable it"
    )
    enable_button(phone.page).click()
    expect(state(phone.page)).to_have_text(ON)
    assert site.subscribed() == [phone.next_subscription.endpoint]
    site.send()
    assert (len(phone.subscription.messages), len(phone.next_subscription.messages)) == (0, 1)


def test_another_key_of_the_server_is_noticed_on_any_page(phone, site):
    phone.enable()
    change_vapid_key(site)
    phone.page.evaluate("sessionStorage.removeItem('visited')")  # as in a new tab
    phone.go("/app/notifications")
    until(lambda: site.subscribed() == [phone.next_subscription.endpoint], phone.page)
    site.send()
    assert (len(phone.subscription.messages), len(phone.next_subscription.messages)) == (0, 1)


def test_a_visit_on_any_page_tells_the_server_once_in_a_tab(phone, site):
    phone.enable()
    before = site.count("POST", "/app/devices")
    for tab in (1, 2):
        with transaction():
            run("UPDATE device SET last_seen_at = 0")
        page = phone.context.new_page()
        page.goto(f"{site.base}/app/notifications")
        until(lambda: run("SELECT last_seen_at FROM device").fetchone()[0] > 0, page)
        until(lambda: page.evaluate("sessionStorage.getItem('visited')"), page)  # noqa: B023
        page.goto(f"{site.base}/app/settings")
        page.wait_for_load_state("networkidle")
        assert site.count("POST", "/app/devices") == before + tab


def test_a_page_whose_session_ended_says_that_one_must_sign_in(phone):
    phone.go()
    expect(enable_button(phone.page)).to_be_visible()
    phone.context.clear_cookies()
    enable_button(phone.page).click()
    expect(state(phone.page)).to_contain_text("You are signed out: sign in again.")
    expect(enable_button(phone.page)).to_be_visible()


# --- when it cannot work ------------------------------------------------------------------------------------


def test_a_denied_permission_is_told_with_what_to_do(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, settle="denied")
    enable_button(phone.go()).click()
    expect(state(phone.page)).to_contain_text("Notifications are blocked for this site: allow them")
    expect(enable_button(phone.page)).to_be_hidden()


def test_a_permission_that_was_denied_before_is_told_at_once(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, permission="denied")
    expect(state(phone.go())).to_contain_text("Notifications are blocked for this site: allow them")
    expect(enable_button(phone.page)).to_be_hidden()


@pytest.mark.parametrize("path", ["/app/", "/app/devices"])
def test_an_insecure_address_is_told(site, open_context, path):
    context = open_context()
    context.add_cookies([{**site.cookie(), "url": site.insecure}])
    page = context.new_page()
    page.goto(site.insecure + path)
    expect(state(page)).to_contain_text("Browsers allow notifications over https or on localhost only")
    expect(state(page)).to_contain_text("Open Pocketbell at an https address")
    expect(enable_button(page)).to_be_hidden()


@pytest.mark.parametrize(
    "agent, touch_points, sentence",
    [
        (IPHONE, 5, "Add to Home Screen"),
        (IPAD, 5, "Add to Home Screen"),
        (IPAD, 0, "This browser has no Web Push. Take a current"),
        (None, 0, "This browser has no Web Push. Take a current"),
    ],
    ids=["iPhone", "iPad", "old Safari on a Mac", "another"],
)
def test_a_browser_without_web_push_is_told_what_to_do(site, open_context, agent, touch_points, sentence):
    context = open_context(user_agent=agent)
    context.add_init_script("delete window.PushManager; delete window.Notification")
    context.add_init_script(f"Object.defineProperty(navigator, 'maxTouchPoints', {{ value: {touch_points} }})")
    context.add_cookies([site.cookie()])
    page = context.new_page()
    page.goto(f"{site.base}/app/devices")
    expect(state(page)).to_contain_text(sentence)
    expect(enable_button(page)).to_be_hidden()


def test_a_push_service_that_does_not_answer_is_given_up_after_20_seconds(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, settle="never")
    phone.page.clock.install()
    enable_button(phone.go()).click()
    expect(state(phone.page)).to_contain_text("Asking the browser…")
    phone.page.clock.run_for(10_000)  # the page's time goes on by itself, too
    expect(state(phone.page)).to_contain_text("Asking the browser…")
    expect(enable_button(phone.page)).to_be_hidden()
    phone.page.clock.run_for(10_100)
    expect(state(phone.page)).to_contain_text("This browser cannot reach its push service.")
    expect(enable_button(phone.page)).to_be_visible()


FAULTS = {
    "NotAllowedError": "The browser was not allowed to.",
    "AbortError": "This browser cannot reach its push service.",
    "InvalidStateError": "The browser reported a fault of its own (InvalidStateError).",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_browser_is_told_in_words_of_ours(phone, fault):
    phone.context.add_init_script(
        f"PushManager.prototype.subscribe = () => Promise.reject(new DOMException('Registration failed', '{fault}'))"
    )
    enable_button(phone.go()).click()
    expect(state(phone.page)).to_contain_text(FAULTS[fault])
    expect(state(phone.page)).not_to_contain_text("Registration failed")
    expect(enable_button(phone.page)).to_be_visible()


def test_a_service_worker_that_cannot_start_is_told_in_words_of_ours(phone):
    phone.context.add_init_script(
        "ServiceWorkerContainer.prototype.register = () => Promise.reject(new TypeError('Failed to register'))"
    )
    expect(state(phone.go())).to_contain_text("did not start Pocketbell's service worker")
    expect(state(phone.page)).not_to_contain_text("Failed to register")
    expect(enable_button(phone.page)).to_be_hidden()


def test_a_server_that_does_not_answer_is_told_in_words_of_ours(phone):
    phone.go()
    phone.page.route("**/app/devices", lambda route: route.abort())
    enable_button(phone.page).click()
    expect(state(phone.page)).to_contain_text("Pocketbell did not answer.")
    expect(state(phone.page)).not_to_contain_text("Failed to fetch")


def test_what_the_server_refuses_is_told(phone, site):
    for number in range(20):
        site.service.flask("device", "add", EMAIL, "apns", f"{number:064x}")
    enable_button(phone.go()).click()
    expect(state(phone.page)).to_contain_text("There are 20 devices already: remove one first.")
    expect(enable_button(phone.page)).to_be_visible()


# --- another subscription -----------------------------------------------------------------------------------


def change_subscription(phone, worker, is_given):
    new = phone.next_subscription.subscription
    return worker.evaluate(CHANGE_SUBSCRIPTION, {"given": new if is_given else None, "next": new})


@pytest.mark.parametrize("is_signed_in", [True, False], ids=["signed in", "signed out"])
@pytest.mark.parametrize("is_given", [True, False], ids=["given", "to be made"])
def test_the_worker_tells_the_server_of_another_subscription(phone, site, is_signed_in, is_given):
    phone.enable()
    if not is_signed_in:
        with transaction():
            run("DELETE FROM session")
    subscribed = change_subscription(phone, phone.worker(), is_given)
    public_key = phone.page.evaluate("[...keyBytes(document.getElementById('push').dataset.publicKey)]")
    assert subscribed == ([] if is_given else [{"userVisibleOnly": True, "key": public_key}])
    assert site.subscribed() == [phone.next_subscription.endpoint]
    (asked,) = [asked for asked in site.asked if asked[1] == "/app/devices/resync"]
    assert (asked[0], asked[2]) == ("POST", None)  # no cookie
    assert asked[3].startswith("Bearer ")
    site.send()
    assert (len(phone.subscription.messages), len(phone.next_subscription.messages)) == (0, 1)


def test_the_worker_asks_nothing_without_a_token(phone, site):
    worker = phone.start_worker()
    assert change_subscription(phone, worker, is_given=False) == []
    assert site.count("POST", "/app/devices/resync") == 0


def test_a_token_that_the_server_refuses_is_forgotten_and_the_next_visit_gets_another(phone, site):
    phone.enable()
    worker = phone.worker()
    with transaction():
        run("UPDATE device SET resync_token_hash = NULL")
    assert change_subscription(phone, worker, is_given=True) == []
    until(lambda: worker.evaluate("recall('token').then((token) => token === undefined)"), phone.page)
    assert site.subscribed() == [phone.subscription.endpoint]
    page = phone.context.new_page()  # a new tab
    page.goto(f"{site.base}/app/settings")
    until(lambda: worker.evaluate("recall('token')"), page)
    assert change_subscription(phone, worker, is_given=True) == []
    assert site.subscribed() == [phone.next_subscription.endpoint]


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


@pytest.mark.parametrize("is_declarative", [True, False], ids=["declarative", "plain"])
def test_a_push_is_shown_in_either_form(phone, site, is_declarative):
    message = {"title": "Disk", "body": "root at 98 %", "tag": "7", "navigate": f"{site.base}/app/settings"}
    push = {"web_push": 8030, "notification": message} if is_declarative else message
    worker = phone.start_worker()
    shown = phone.deliver(worker, json.dumps(push))
    assert [shown[name] for name in ("title", "body", "tag")] == ["Disk", "root at 98 %", "7"]
    worker.evaluate(CLICK, {})
    expect(phone.page).to_have_url(f"{site.base}/app/settings")


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
    data = {"navigate": f"{site.base}/app/keys"}
    assert worker.evaluate(CLICK, {"data": data}) == [f"{site.base}/app/keys"]


def test_clicking_a_notification_takes_the_open_page_there(phone, site):
    worker = phone.start_worker()
    worker.evaluate(CLICK, {"data": {"navigate": f"{site.base}/app/keys"}})
    phone.page.wait_for_url(f"{site.base}/app/keys")
    assert worker.evaluate("self.opened") == []


def test_clicking_a_notification_works_though_the_open_page_was_loaded_past_the_worker(phone, site):
    worker = phone.start_worker()
    cdp = phone.context.new_cdp_session(phone.page)
    with phone.page.expect_navigation():
        cdp.send("Page.reload", {"ignoreCache": True})
    assert phone.page.evaluate("navigator.serviceWorker.controller") is None
    data = {"navigate": f"{site.base}/app/keys"}
    assert worker.evaluate(CLICK, {"data": data}) == [f"{site.base}/app/keys"]


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
        opened = worker.evaluate(CLICK, {"data": {"navigate": navigate}})
        if not isinstance(opened, list) or [urlsplit(one).netloc for one in opened] != [f"localhost:{site.port}"]:
            wrong[str(wanted)] = opened
    assert wrong == {}


def test_an_open_page_is_never_taken_to_another_origin(phone, site):
    worker = phone.start_worker()
    asked = []
    phone.page.on("request", lambda request: asked.append(urlsplit(request.url).netloc))
    for wanted in ("https://evil.example/app/", f"{site.base}//evil.example/app/"):
        phone.go("/app/keys")
        worker.evaluate(CLICK, {"data": {"navigate": wanted}})
    assert set(asked) == {f"localhost:{site.port}"}


def test_clicking_a_notification_without_data_opens_the_web_app(phone, site):
    worker = phone.start_worker()
    phone.leave(worker)
    assert worker.evaluate(CLICK, {"data": None}) == [f"{site.base}/app/"]


# --- without a network --------------------------------------------------------------------------------------

GROUND = "getComputedStyle(document.body).backgroundColor"
OWN_PAGES = (
    "",
    "notifications",
    "notifications?search=Disk",
    "alerts",
    "alerts/new",
    "metrics",
    "devices",
    "keys",
    "quiet",
    "settings",
)


def test_without_a_network_there_is_a_page_that_says_so_and_the_wanted_one_comes_back(phone):
    phone.enable()
    ground = phone.page.evaluate(GROUND)
    phone.context.set_offline(True)
    page = phone.go("/app/settings")
    expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    assert page.evaluate(GROUND) == ground  # it has the style
    page.get_by_role("link", name="Try again").click()
    expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    phone.context.set_offline(False)
    page.get_by_role("link", name="Try again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Home")
    phone.go("/app/settings")
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")


def test_the_page_without_a_network_is_dark_in_a_dark_system(site, open_context, push_service):
    phone = Phone(site, open_context(color_scheme="dark"), push_service)
    phone.start_worker()
    ground = phone.page.evaluate(GROUND)
    phone.context.set_offline(True)
    expect(phone.go("/app/").get_by_role("heading", name="No connection")).to_be_visible()
    assert phone.page.evaluate(GROUND) == ground


def test_a_browser_keeps_nothing_that_belongs_to_an_account(phone, site):
    phone.enable()
    phone.worker()
    sent = site.send("Secret", "of an account")
    alert = site.service.alert()
    alert.post({"title": "Secret", "message": "of an alert"})
    for path in (*OWN_PAGES, f"notifications/{sent['id']}", f"alerts/{alert.id}"):
        phone.go(f"/app/{path}")
    kept = phone.page.evaluate(KEPT)
    assert "/app/static/offline.html" in kept["cached"]
    assert [path for path in kept["cached"] if not path.startswith("/app/static/")] == []
    assert kept["stored"] == {"pocketbell/push": ["publicKey", "token"]}
    assert set(kept["tab"]) | set(kept["origin"]) == {"visited", *OF_THE_STAND_INS}


def test_the_web_app_can_be_installed(playwright, site, tmp_path):
    profile = playwright.chromium.launch_persistent_context(
        tmp_path / "profile", executable_path=CHROMIUM, args=FLAGS
    )
    try:
        profile.add_cookies([site.cookie()])
        page = profile.new_page()
        page.goto(f"{site.base}/app/devices")
        until(lambda: profile.service_workers, page)
        cdp = profile.new_cdp_session(page)
        manifest = cdp.send("Page.getAppManifest")
        assert (manifest["errors"], manifest["url"]) == ([], f"{site.base}/app/static/manifest.webmanifest")
        assert cdp.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
    finally:
        profile.close()


# --- copying, theme -----------------------------------------------------------------------------------------


def new_key(page, origin):
    page.goto(f"{origin}/app/keys")
    page.get_by_label("Name of a new key").fill("backup")
    page.get_by_role("button", name="Make a key").click()
    return page.locator("#full-key").inner_text()


def pasted(page):
    """What is in the clipboard, as one finds out over plain http, too."""
    field = page.get_by_label("Name of a new key")
    field.focus()
    page.keyboard.press("Control+V")
    return field.input_value()


@pytest.mark.parametrize("is_secure", [True, False], ids=["localhost", "plain http"])
def test_a_new_key_is_copied_with_one_tap(site, open_context, is_secure):
    origin = site.base if is_secure else site.insecure
    context = open_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.base)
    context.add_cookies([{**site.cookie(), "url": origin}])
    page = context.new_page()
    key = new_key(page, origin)
    assert page.evaluate("'clipboard' in navigator") is is_secure
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert pasted(page) == key


def test_a_new_key_that_cannot_be_copied_is_selected_for_it(site, open_context):
    context = open_context()
    context.add_init_script("document.execCommand = () => false")
    context.add_cookies([{**site.cookie(), "url": site.insecure}])
    page = context.new_page()
    key = new_key(page, site.insecure)
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Select it above and copy it")).to_have_count(1)
    assert page.evaluate("getSelection().toString()") == key


def is_dark(page):
    red, green, blue = page.evaluate(f"{GROUND}.match(/[0-9]+/g).slice(0, 3).map(Number)")
    return red + green + blue < 3 * 128


def choose_theme(page, theme):
    page.get_by_label(theme).check()
    page.get_by_role("region", name="Theme").get_by_role("button", name="Save").click()


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_theme_that_was_chosen_goes_before_the_systems(site, open_context, system):
    context = open_context(color_scheme=system)
    context.add_cookies([site.cookie()])
    page = context.new_page()
    seen = []
    for theme in ("Dark", "Light", "Like the system"):
        page.goto(f"{site.base}/app/settings")
        with page.expect_navigation():
            choose_theme(page, theme)
        page.goto(f"{site.base}/app/")
        page.wait_for_load_state()  # the style sheet counts
        seen.append(is_dark(page))
    assert seen == [True, False, system == "dark"]


# --- the browser's own complaints, and none of its help -----------------------------------------------------


def test_the_first_way_in_breaks_no_policy_and_writes_no_error_to_the_console(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, is_signed_in=False)
    page, troubles = phone.page, listen(phone.page)
    page.on("response", lambda answer: troubles.append(answer.url) if answer.status >= 400 else None)
    page.goto(site.setup_link())
    phone.context.add_cookies([site.cookie()])
    phone.enable()
    page.goto(f"{site.base}/app/login")
    page.goto(f"{site.base}/app/")
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("heading", name="It works")).to_be_visible()
    page.goto(f"{site.base}/app/devices")
    expect(state(page)).to_have_text(ON)
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_text("Its push service took the test")).to_be_visible()
    new_key(page, site.base)
    assert troubles == []


def sign_in(page, password):
    page.get_by_label("E-mail address").fill(EMAIL)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_the_ways_in_and_out_work_without_javascript(site, open_context):
    page = open_context(java_script_enabled=False).new_page()
    page.goto(site.setup_link())
    page.get_by_label("E-mail address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(f"{site.base}/app/")
    expect(no_script(page)).to_be_visible()
    expect(enable_button(page)).to_be_hidden()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page).to_have_url(f"{site.base}/app/login")
    sign_in(page, PASSWORD)
    expect(page).to_have_url(f"{site.base}/app/")


def look_for(page, search="", status="", day=""):
    """Fill in and send the form of the history."""
    if not page.get_by_label("Status", exact=True).is_visible():
        page.get_by_text("Filter by").click()
    page.get_by_role("searchbox", name="Search").fill(search)
    page.get_by_label("Status", exact=True).select_option(status)
    page.get_by_label("Day", exact=True).fill(day)
    page.get_by_role("button", name="Show").click()


def test_home_and_history_work_without_javascript(plain, site):
    plain.get_by_role("button", name="Send a test").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("MCP - It works")
    site.send("Disk", "root at 98 %")
    plain.get_by_role("link", name="Home").click()
    plain.get_by_role("link", name="See all").click()
    notifications = plain.get_by_role("main").get_by_role("listitem")
    expect(notifications).to_have_count(2)
    look_for(plain, search="ROOT", status="delivered", day=local_time.local_day(clock.now_ms(), "UTC"))
    expect(notifications).to_have_count(1)
    expect(plain.locator("mark")).to_have_text("root")
    plain.get_by_role("link", name="Disk").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("MCP - Disk")
    plain.get_by_role("link", name="History").first.click()
    look_for(plain, status="failed")
    expect(plain.get_by_text("No match")).to_be_visible()
    plain.get_by_role("link", name="Show all").click()
    expect(notifications).to_have_count(2)


def test_the_check_list_is_hidden_without_javascript(plain):
    plain.get_by_role("button", name="Hide this list").click()
    expect(plain.get_by_role("heading", name="Latest")).to_be_visible()
    expect(plain.get_by_role("heading", name="Get started")).to_have_count(0)


def test_devices_work_without_javascript(plain, monkeypatch):
    monkeypatch.setattr(push, "configured", lambda: set(push.PROVIDERS))  # the form takes its tokens
    plain.get_by_role("link", name="Settings").click()
    plain.get_by_role("link", name="Devices").first.click()
    expect(no_script(plain)).to_be_visible()
    plain.get_by_text("Add a device of a native app by hand").click()
    plain.get_by_label("Token").fill("ab" * 32)
    plain.get_by_label("Name", exact=True).fill("iPhone")
    plain.get_by_role("button", name="Add").click()
    said(plain, "The device is added")
    plain.get_by_label("Rename iPhone").click()
    plain.get_by_label("New name").fill("Pixel")
    plain.get_by_role("button", name="Save").click()
    said(plain, "The device has its new name")
    plain.get_by_role("button", name="Test Pixel").click()
    expect(plain.get_by_role("alert")).to_contain_text("The test did not go out")
    expect(plain.get_by_role("button", name="Remove Pixel")).to_be_hidden()
    plain.locator("summary", has_text="Remove…").click()
    plain.get_by_role("button", name="Remove Pixel").click()
    said(plain, "The device is removed")


def test_keys_work_without_javascript(plain):
    plain.get_by_role("link", name="Settings").click()
    plain.get_by_role("link", name="API keys").click()
    plain.get_by_label("Name of a new key").fill("backup")
    plain.get_by_role("button", name="Make a key").click()
    expect(plain.locator("#full-key")).to_contain_text("sk_test_")
    expect(plain.get_by_role("button", name="Copy")).to_have_count(0)
    expect(plain.get_by_role("button", name="Revoke backup")).to_be_hidden()
    plain.locator("summary", has_text="Revoke…").click()
    plain.get_by_role("button", name="Revoke backup").click()
    said(plain, "The key is revoked")


def test_quiet_hours_work_without_javascript(plain, site):
    plain.get_by_role("link", name="Settings").click()
    plain.get_by_role("link", name="Quiet hours").click()
    plain.get_by_label("From").fill("00:00")
    plain.get_by_label("To").fill("23:59")
    plain.get_by_role("button", name="Save").click()
    said(plain, "Quiet hours are 00:00-23:59")
    alert = site.service.alert("--frequency", "1d")  # held, at whatever time of the day
    assert alert.post({"title": "Disk"}).json["status"] == "held"
    plain.reload()
    plain.get_by_role("button", name="Deliver now").click()
    said(plain, "The held notification is on its way")
    plain.get_by_role("button", name="Switch off").click()
    said(plain, "Quiet hours are off")


def test_settings_work_without_javascript(plain, site):
    plain.get_by_role("link", name="Settings").click()
    choose_theme(plain, "Dark")
    expect(plain.get_by_label("Dark")).to_be_checked()
    expect(plain.locator("meta[name=color-scheme]")).to_have_attribute("content", "dark")
    plain.get_by_role("combobox", name="Time zone").select_option("Asia/Tokyo")
    plain.get_by_role("region", name="Time zone").get_by_role("button", name="Save").click()
    said(plain, "The time zone is Asia/Tokyo")
    plain.get_by_label("Current password").fill(PASSWORD)
    plain.get_by_label("New password").fill("another horse battery")
    plain.get_by_role("button", name="Change the password").click()
    said(plain, "The password is changed")
    plain.get_by_role("button", name="Sign out everywhere").click()
    expect(plain).to_have_url(f"{site.base}/app/login")
    plain.goto(f"{site.base}/app/settings")
    expect(plain.get_by_role("heading", level=1)).to_have_text("Sign in")
    sign_in(plain, "another horse battery")
    expect(plain).to_have_url(f"{site.base}/app/settings")
