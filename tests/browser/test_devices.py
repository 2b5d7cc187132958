"""A browser as a device: switched on, refused, given another subscription."""

import pytest
from playwright.sync_api import expect

from store.database import EVERYBODY, run, transaction
from tests.support.accounts import OWNER
from tests.support.browser import ON, Phone, enable_button, follow, state, until
from tests.support.memory import open_service
from tests.support.rows import each

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/17.5 Mobile/15E148 Safari/604.1"
)
IPAD = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/17.5 Safari/605.1.15"
)


# Fires the event with which a push service gives a browser another subscription, `given` or to be made. Returns the
# options with which the worker subscribed, or why it failed.
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


def change_vapid_key(site):
    """Give the server another key pair, as after a move without its database."""
    with transaction(EVERYBODY):
        run("DELETE FROM server_key")
    open_service(site.service.app, site.service.settings)


# --- a browser and its device -------------------------------------------------------------------------------


def test_a_device_that_the_owner_removed_in_its_own_browser_stays_removed(phone):
    phone.enable()
    phone.page.locator("summary", has_text="Edit").click()
    phone.page.locator("summary", has_text="Remove ").click()
    follow(phone.page.get_by_role("button", name="Remove"))
    expect(phone.page.get_by_text("Device removed")).to_be_visible()
    expect(state(phone.page)).not_to_be_empty()
    phone.page.reload()
    expect(phone.page.locator("summary", has_text="Remove ")).to_have_count(0)
    expect(enable_button(phone.page)).to_be_visible()


def test_the_devices_page_shows_each_state_of_this_browser_in_turn(phone, site):
    """default → on → lost → on: each with its sentence, and the button where enabling is what to do next."""
    expect(state(phone.go())).to_have_text("This browser does not get your notifications yet.")
    enable_button(phone.page).click()
    expect(state(phone.page)).to_have_text(ON)
    expect(enable_button(phone.page)).to_be_hidden()
    device = site.service.flask("device", "list", OWNER).output.split("\t")[0]
    site.service.flask("device", "remove", OWNER, device)
    phone.page.reload()
    expect(state(phone.page)).to_contain_text("This browser was removed")
    expect(state(phone.page)).to_contain_text("Turn on notifications again")
    enable_button(phone.page).click()
    expect(state(phone.page)).to_have_text(ON)
    assert site.subscribed() == [phone.subscription.endpoint]


def test_a_browser_that_is_allowed_and_not_subscribed_is_told_so(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, permission="granted")
    expect(state(phone.go())).to_contain_text("Notifications are allowed, but off in this browser")
    enable_button(phone.page).click()
    expect(state(phone.page)).to_have_text(ON)


def test_after_a_change_of_the_servers_key_one_tap_restores_the_one_device(phone, site, push_service):
    phone.enable()
    change_vapid_key(site)
    expect(state(phone.go())).to_contain_text("The server’s key has changed since you turned on notifications here.")
    enable_button(phone.page).click()
    expect(state(phone.page)).to_have_text(ON)
    assert site.subscribed() == [phone.next_subscription.endpoint]
    site.send()
    assert (len(phone.subscription.messages), len(phone.next_subscription.messages)) == (0, 1)


def test_a_change_of_the_servers_key_is_noticed_on_every_page(phone, site):
    phone.enable()
    change_vapid_key(site)
    phone.page.evaluate("sessionStorage.removeItem('visited')")  # as in a new tab
    phone.go("/app/notifications")
    until(lambda: site.subscribed() == [phone.next_subscription.endpoint], phone.page)
    site.send()
    assert (len(phone.subscription.messages), len(phone.next_subscription.messages)) == (0, 1)


def test_a_visit_to_any_page_reports_the_device_once_per_tab(phone, site):
    phone.enable()
    before = site.count("POST", "/app/devices")
    for tab in (1, 2):
        with transaction(EVERYBODY):
            run("UPDATE device SET last_seen_at = 0")
        page = phone.context.new_page()
        page.goto(f"{site.base}/app/notifications")
        until(lambda: run("SELECT last_seen_at FROM device").fetchone()[0] > 0, page)
        until(lambda: page.evaluate("sessionStorage.getItem('visited')"), page)  # noqa: B023
        page.goto(f"{site.base}/app/settings")
        page.wait_for_load_state("networkidle")
        assert site.count("POST", "/app/devices") == before + tab


def test_a_page_of_an_ended_session_asks_to_sign_in(phone):
    phone.go()
    expect(enable_button(phone.page)).to_be_visible()
    phone.context.clear_cookies()
    enable_button(phone.page).click()
    expect(state(phone.page)).to_contain_text("You are signed out. Sign in again.")
    expect(enable_button(phone.page)).to_be_visible()


# --- when it cannot work ------------------------------------------------------------------------------------


def test_a_denied_permission_is_told_with_what_to_do(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, settle="denied")
    enable_button(phone.go()).click()
    expect(state(phone.page)).to_contain_text("Notifications are blocked for this site. Allow them")
    expect(enable_button(phone.page)).to_be_hidden()


def test_a_permission_that_was_denied_before_is_told_at_once(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, permission="denied")
    expect(state(phone.go())).to_contain_text("Notifications are blocked for this site. Allow them")
    expect(enable_button(phone.page)).to_be_hidden()


@pytest.mark.parametrize("path", ["/app/", "/app/devices"])
def test_an_insecure_address_is_explained_on_the_devices_page(site, open_page, path):
    page = open_page(cookie={**site.cookie(), "url": site.insecure})
    page.goto(site.insecure + path)
    expect(state(page)).to_contain_text("Browsers allow notifications only over https or on localhost")
    expect(state(page)).to_contain_text("Get an https address with one command")
    expect(enable_button(page)).to_be_hidden()


@pytest.mark.parametrize(
    "agent, touch_points, sentence",
    [
        (IPHONE, 5, "Add to Home Screen"),
        (IPAD, 5, "Add to Home Screen"),
        (IPAD, 0, "This browser has no Web Push, or this is a private window. Use a current"),
        (None, 0, "This browser has no Web Push, or this is a private window. Use a current"),
    ],
    ids=["iPhone", "iPad", "old Safari on a Mac", "another"],
)
def test_a_browser_without_web_push_is_told_what_to_do(site, open_page, agent, touch_points, sentence):
    page = open_page(user_agent=agent)
    page.add_init_script("delete window.PushManager; delete window.Notification")
    page.add_init_script(f"Object.defineProperty(navigator, 'maxTouchPoints', {{ value: {touch_points} }})")
    page.goto(f"{site.base}/app/devices")
    expect(state(page)).to_contain_text(sentence)
    expect(enable_button(page)).to_be_hidden()


def test_a_push_service_that_does_not_answer_is_named_after_4_seconds_and_given_up_after_20(
    site, open_context, push_service
):
    phone = Phone(site, open_context(), push_service, settle="never")
    phone.page.clock.install()
    enable_button(phone.go()).click()
    expect(state(phone.page)).to_contain_text("Asking the browser…")
    phone.page.clock.run_for(10_000)  # the page's time goes on by itself, too
    expect(state(phone.page)).to_contain_text("Still waiting for the browser’s push service")
    expect(enable_button(phone.page)).to_be_hidden()
    phone.page.clock.run_for(10_100)
    expect(state(phone.page)).to_contain_text("This browser cannot reach its push service.")
    expect(enable_button(phone.page)).to_be_visible()


FAULTS = [
    ("NotAllowedError", "undefined", "The browser did not allow it."),
    ("AbortError", "undefined", "This browser cannot reach its push service."),
    ("AbortError", "{}", "Use Google services for push messaging"),
    ("InvalidStateError", "undefined", "The browser reported a problem of its own."),
]


def details(page):
    """What the browser itself said of a fault, which is folded away."""
    folded = page.locator("#push-fault")
    expect(folded).to_be_visible()
    expect(folded.locator("code")).to_be_hidden()
    return folded.locator("code").text_content()


@each("fault, brave, said", FAULTS)
def test_a_browser_error_is_shown_as_a_plain_sentence(phone, fault, brave, said):
    """Brave says what it is, and where its push messages are turned on."""
    phone.context.add_init_script(
        f"navigator.brave = {brave};"
        f"PushManager.prototype.subscribe = () => Promise.reject(new DOMException('Registration failed', '{fault}'))"
    )
    enable_button(phone.go()).click()
    expect(state(phone.page)).to_contain_text(said)
    expect(state(phone.page)).not_to_contain_text("Registration failed")
    assert details(phone.page) == f"{fault}: Registration failed"
    expect(enable_button(phone.page)).to_be_visible()


def test_a_service_worker_that_fails_to_start_is_shown_as_a_plain_sentence(phone):
    phone.context.add_init_script(
        "ServiceWorkerContainer.prototype.register = () => Promise.reject(new TypeError('Failed to register'))"
    )
    expect(state(phone.go())).to_contain_text("did not start Pocketbell's service worker")
    expect(state(phone.page)).not_to_contain_text("Failed to register")
    assert details(phone.page) == "TypeError: Failed to register"
    expect(enable_button(phone.page)).to_be_hidden()


def test_an_unreachable_server_is_shown_as_a_plain_sentence(phone):
    phone.go()
    phone.page.route("**/app/devices", lambda route: route.abort())
    enable_button(phone.page).click()
    expect(state(phone.page)).to_contain_text("Pocketbell did not answer.")
    expect(state(phone.page)).not_to_contain_text("Failed to fetch")


def test_a_refusal_by_the_server_is_shown(phone, site):
    for number in range(20):
        site.service.flask("device", "add", OWNER, "apns", f"{number:064x}")
    enable_button(phone.go()).click()
    expect(state(phone.page)).to_contain_text("There are 20 devices already: remove one first.")
    expect(enable_button(phone.page)).to_be_visible()


# --- another subscription -----------------------------------------------------------------------------------


def change_subscription(phone, worker, is_given):
    new = phone.next_subscription.subscription
    return worker.evaluate(CHANGE_SUBSCRIPTION, {"given": new if is_given else None, "next": new})


# Whether it is signed in and whether it is given the other one have nothing to do with each other.
@pytest.mark.parametrize(
    "is_signed_in, is_given", [(True, True), (False, False)], ids=["signed in, given", "signed out, to be made"]
)
def test_the_service_worker_reports_a_changed_subscription(phone, site, is_signed_in, is_given):
    phone.enable()
    if not is_signed_in:
        with transaction(EVERYBODY):
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


def test_the_service_worker_sends_no_request_without_a_token(phone, site):
    worker = phone.start_worker()
    assert change_subscription(phone, worker, is_given=False) == []
    assert site.count("POST", "/app/devices/resync") == 0


def test_a_token_that_the_server_refuses_is_forgotten_and_the_next_visit_gets_another(phone, site):
    phone.enable()
    worker = phone.worker()
    with transaction(EVERYBODY):
        run("UPDATE device SET resync_token_hash = NULL")
    assert change_subscription(phone, worker, is_given=True) == []
    until(lambda: worker.evaluate("recall('token').then((token) => token === undefined)"), phone.page)
    assert site.subscribed() == [phone.subscription.endpoint]
    page = phone.context.new_page()  # a new tab
    page.goto(f"{site.base}/app/settings")
    until(lambda: worker.evaluate("recall('token')"), page)
    assert change_subscription(phone, worker, is_given=True) == []
    assert site.subscribed() == [phone.next_subscription.endpoint]
