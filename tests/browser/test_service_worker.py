"""The service worker: pushes, taps on notifications, pages without a network."""

import json
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.support.browser import CHROMIUM, CLICK, FLAGS, GROUND, Phone, until

# Everything that this browser stores for our origin, except its HTTP cache.
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


# --- the service worker -------------------------------------------------------------------------------------


BAD_PUSHES = [
    *("", "not JSON", "{", "null", "[]", "7", "{}", '{"notification": null}'),
    *('{"notification": {"body": "no title"}}', '{"notification": {"title": 7}}'),
]
ODD_PUSHES = [
    '{"notification": {"title": "T", "body": {"toString": 1, "valueOf": 1}}}',
    '{"notification": {"title": "T", "body": null, "tag": [], "navigate": {}}}',
    '{"notification": {"title": "T", "body": "\\ud800", "tag": "\\u0000"}}',
    '{"notification": {"title": "T", "body": "b", "actions": [{}, 7, {"title": "x"}, {"action": "x", "title": {}}]}}',
]


@pytest.mark.shows_notifications
@pytest.mark.parametrize("is_declarative", [True, False], ids=["declarative", "plain"])
def test_a_push_is_shown_in_either_form(phone, site, is_declarative):
    message = {"title": "Disk", "body": "root at 98 %", "tag": "7", "navigate": f"{site.base}/app/settings"}
    push = {"web_push": 8030, "notification": message} if is_declarative else message
    worker = phone.start_worker()
    shown = phone.deliver(worker, json.dumps(push))
    assert [shown[name] for name in ("title", "body", "tag")] == ["Disk", "root at 98 %", "7"]
    worker.evaluate(CLICK, {})
    expect(phone.page).to_have_url(f"{site.base}/app/settings")


@pytest.mark.shows_notifications
def test_a_push_is_shown_with_its_picture(phone, site):
    worker, address = phone.start_worker(), f"{site.base}/i/{'A' * 22}"
    shown = phone.deliver(worker, json.dumps({"notification": {"title": "Door", "image": address}}))
    assert shown["image"] == address
    assert phone.deliver(worker, json.dumps({"notification": {"title": "Door", "image": {}}}))["image"] is None


@pytest.mark.shows_notifications
def test_a_push_that_cannot_be_read_still_shows_a_notification(phone):
    worker = phone.start_worker()
    for text in BAD_PUSHES:
        shown = phone.deliver(worker, text)
        assert (shown["title"], shown["body"]) == ("Pocketbell", "You have a notification that could not be read.")


@pytest.mark.shows_notifications
def test_a_push_with_odd_fields_still_shows_a_notification(phone):
    worker = phone.start_worker()
    for text in ODD_PUSHES:
        assert phone.deliver(worker, text)["title"] in ("T", "Pocketbell")


@pytest.mark.shows_notifications
def test_clicking_a_notification_opens_its_page_when_none_is_open(phone, site):
    worker = phone.start_worker()
    phone.leave(worker)
    data = {"navigate": f"{site.base}/app/keys"}
    assert worker.evaluate(CLICK, {"data": data}) == [f"{site.base}/app/keys"]


@pytest.mark.shows_notifications
def test_clicking_a_notification_takes_the_open_page_there(phone, site):
    worker = phone.start_worker()
    worker.evaluate(CLICK, {"data": {"navigate": f"{site.base}/app/keys"}})
    phone.page.wait_for_url(f"{site.base}/app/keys")
    assert worker.evaluate("self.opened") == []


@pytest.mark.shows_notifications
def test_clicking_a_notification_works_with_an_open_page_not_controlled_by_the_worker(phone, site):
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


@pytest.mark.shows_notifications
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


@pytest.mark.shows_notifications
def test_an_open_page_is_never_taken_to_another_origin(phone, site):
    worker = phone.start_worker()
    asked = []
    phone.page.on("request", lambda request: asked.append(urlsplit(request.url).netloc))
    for wanted in ("https://evil.example/app/", f"{site.base}//evil.example/app/"):
        phone.go("/app/keys")
        worker.evaluate(CLICK, {"data": {"navigate": wanted}})
    assert set(asked) == {f"localhost:{site.port}"}


@pytest.mark.shows_notifications
def test_clicking_a_notification_without_data_opens_the_web_app(phone, site):
    worker = phone.start_worker()
    phone.leave(worker)
    assert worker.evaluate(CLICK, {"data": None}) == [f"{site.base}/app/"]


# --- without a network --------------------------------------------------------------------------------------


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


def test_offline_a_page_says_so_and_the_requested_page_returns_when_online(phone):
    phone.enable()
    ground = phone.page.evaluate(GROUND)
    phone.context.set_offline(True)
    page = phone.go("/app/settings")
    expect(page.get_by_role("heading", name="You are offline")).to_be_visible()
    assert page.evaluate(GROUND) == ground  # it has the style
    page.get_by_role("link", name="Try again").click()
    expect(page.get_by_role("heading", name="You are offline")).to_be_visible()
    phone.context.set_offline(False)
    page.get_by_role("link", name="Try again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Let it ring once")
    phone.go("/app/settings")
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")


def test_the_offline_page_follows_a_dark_system_theme(site, open_context, push_service):
    phone = Phone(site, open_context(color_scheme="dark"), push_service)
    phone.start_worker()
    ground = phone.page.evaluate(GROUND)
    phone.context.set_offline(True)
    expect(phone.go("/app/").get_by_role("heading", name="You are offline")).to_be_visible()
    assert phone.page.evaluate(GROUND) == ground


def test_the_browser_cache_holds_no_data_of_an_account(phone, site):
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
