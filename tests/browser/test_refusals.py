"""What is wrong with a form is seen at once on a phone: on top, with the focus, and beside its field."""

import re
from contextlib import suppress

import pytest
from playwright.sync_api import expect

import push
from tests.support.accounts import OWNER, PASSWORD
from tests.support.browser import until
from tests.support.rows import each
from tests.support.wrong_forms import Form

PHONE = {"width": 390, "height": 844}
BESIDE_PX = 80
LABEL_PX = 24  # stands above its field
LONG = "x" * 101
FOCUSED = """
() => {
  const it = document.activeElement;
  const { left, top, right, bottom } = it.getBoundingClientRect();
  const bar = document.querySelector("nav");
  const end = bar ? Math.min(innerHeight, bar.getBoundingClientRect().top) : innerHeight;
  const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  const isSeen = top >= 0 && left >= 0 && bottom <= end && right <= innerWidth && it.contains(over);
  return { id: it.id, role: it.getAttribute("role"), text: it.textContent.trim(), isSeen };
}
"""
GAP_PX = """
([field, words]) => {
  const [one, other] = [field, words].map((id) => document.getElementById(id).getBoundingClientRect());
  return Math.max(0, other.top - one.bottom, one.top - other.bottom);
}
"""
IN_VIEW = """
([id, labels]) => {
  const { top, bottom } = document.getElementById(id).getBoundingClientRect();
  return top >= labels && bottom <= innerHeight;
}
"""


DEVICES = "/app/devices"
SETUP = {"email": "a@example.org", "password": PASSWORD}
ADD, SETTINGS = "Add a native app", "/app/settings"
ALERT, ALERT_SETTINGS = (f"/app/alerts/{{alert}}?tab={tab}" for tab in ("message", "settings"))
METRIC = "/app/metrics/one?project=home&metric=cpu"
OF_VISITORS = {
    "sign-in": Form("password", "/app/login", "Sign in", {"email": OWNER, "password": "wrong"}),
    "set-up: e-mail": Form("email", "{setup}", "Create account", {**SETUP, "email": "nobody"}),
    "set-up: password": Form("password", "{setup}", "Create account", {**SETUP, "password": "short"}),
    "set-up: zone": Form("time_zone", "{setup}", "Create account", {**SETUP, "time_zone": "Moon"}),
}
OF_OWNERS = {
    "key": Form("name", "/app/keys", "Create key", {"name": " "}),
    "device: token": Form("token-token", DEVICES, "Add device", {"token-token": "short"}, ADD),
    "device: kind": Form("token-kind", DEVICES, "Add device", {"token-kind": "pager", "token-token": "x"}, ADD),
    "device: name": Form("token-name", DEVICES, "Add device", {"token-token": "ab" * 32, "token-name": LONG}, ADD),
    "device: new name": Form("name-{device}", DEVICES, "Save", {"name-{device}": LONG}, "Edit"),
    "quiet hours: neither": Form("begin-0", "/app/quiet", "Save", {"begin-0": "", "end-0": ""}),
    "quiet hours: no end": Form("end-0", "/app/quiet", "Save", {"begin-0": "22:00", "end-0": ""}),
    "quiet hours: equal": Form("end-0", "/app/quiet", "Save", {"begin-0": "22:00", "end-0": "22:00"}),
    "time zone": Form("time_zone", SETTINGS, "Save", {"time_zone": "Moon"}),
    "theme": Form("theme", SETTINGS, "Save", {"theme": "pink"}),
    "password: current": Form("current", SETTINGS, "Change password", {"current": "wrong", "new": PASSWORD}),
    "password: new": Form("new", SETTINGS, "Change password", {"current": PASSWORD, "new": "short"}),
    "new alert": Form("name", "/app/alerts/new", "Create alert", {"name": LONG}),
    "template: title": Form("title", ALERT, "Save", {"title": "{{ a | shout }}"}),
    "template: text": Form("body", ALERT, "Save", {"body": "{{ a | shout }}"}),
    "template: a test": Form("payload", ALERT, "Send a test", {"payload": "{"}, "Preview with other JSON"),
    "alert: name": Form("name", ALERT_SETTINGS, "Save settings", {"name": " "}),
    "alert: frequency": Form("frequency", ALERT_SETTINGS, "Save settings", {"frequency": "2h"}),
    "rule: value": Form("value", METRIC, "Add rule", {"value": ""}),
    "rule: for": Form("for", METRIC, "Add rule", {"for": "soon"}),
    "rule: silent": Form("silent", METRIC, "Add", {"silent": "1s"}),
    "history: search": Form("search", "/app/notifications", "Apply", {"search": "x" * 201}, "More filters"),
    "history: status": Form("status", "/app/notifications", "Apply", {"status": "lost"}, "More filters"),
    "history: sender": Form("sender", "/app/notifications", "Apply", {"sender": "0"}, "More filters"),
}
with_and_without_scripts = pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])


@with_and_without_scripts
def test_an_error_in_a_visitors_form_is_visible_focused_and_beside_its_field(site, open_context, scripts):
    page = open_context(viewport=PHONE, java_script_enabled=scripts).new_page()
    all_are_seen(OF_VISITORS, page, site.base, {"setup": site.setup_link().removeprefix(site.base)})


@with_and_without_scripts
def test_an_error_in_an_owners_form_is_visible_focused_and_beside_its_field(site, open_page, monkeypatch, scripts):
    monkeypatch.setattr(push, "configured", lambda: set(push.PROVIDERS))
    page = open_page(viewport=PHONE, java_script_enabled=scripts)
    device = site.service.flask("device", "add", OWNER, "apns", "cd" * 32).output.strip()
    metrics = [{"metricId": "cpu", "metricName": "CPU", "value": 90}]
    site.request("/api/webhooks/custom", site.new_key(), {"projectId": "home", "metrics": metrics})
    one_of_each_page = {form.path: name for name, form in OF_OWNERS.items()}.values()
    forms = OF_OWNERS if scripts else {name: OF_OWNERS[name] for name in one_of_each_page}
    all_are_seen(forms, page, site.base, {"device": device, "alert": site.service.alert().id})


def all_are_seen(forms, page, base, ids):
    """Send each of the forms, and fail with everything that is wrong with the answers."""
    wrong = {}
    for name, form in forms.items():
        form.send(page, base, ids)
        wrong[name] = faults(page, form.wrong.format(**ids))
    assert {name: found for name, found in wrong.items() if found} == {}


def faults(page, wrong):
    """The faults of a page that reports what is wrong with a field."""
    expect(page).to_have_title(re.compile("^Error: "))
    with suppress(AssertionError):
        expect(page.get_by_role("alert")).to_be_focused()  # which takes until the page is drawn
    focused, found = page.evaluate(FOCUSED), []
    if focused["role"] != "alert" or not focused["text"] or not focused["isSeen"]:
        found.append(f"not in sight with the focus: {focused}")
    field, words = page.locator(f"#{wrong}"), page.locator(f"#{wrong}-problem")
    if field.get_attribute("aria-invalid") != "true" or f"{wrong}-problem" not in field.get_attribute(
        "aria-describedby"
    ):
        found.append("the field is not marked")
    if words.inner_text().strip() != focused["text"]:
        found.append(f"beside the field stands {words.inner_text()!r}")
    elif page.evaluate(GAP_PX, [wrong, f"{wrong}-problem"]) > BESIDE_PX:
        found.append("the words are far from their field")
    page.get_by_role("alert").get_by_role("link").click()
    until(lambda: page.evaluate(IN_VIEW, [wrong, LABEL_PX]), page)
    return found


def test_a_failed_action_of_a_button_is_visible_and_focused(site, open_page):
    page = open_page(viewport=PHONE, java_script_enabled=False)
    site.service.flask("device", "add", OWNER, "apns", "cd" * 32)
    page.goto(f"{site.base}/app/devices")
    page.get_by_role("button", name="Test APNs").click()
    expect(page.get_by_role("alert")).to_contain_text("could not be sent")
    expect(page.get_by_role("alert")).to_be_focused()
    assert page.evaluate(FOCUSED)["isSeen"]


def test_an_error_page_has_the_focus_on_its_error(open_page):
    page = open_page("/app/notifications/unknown", viewport=PHONE, java_script_enabled=False)
    expect(page.get_by_role("alert")).to_contain_text("no longer exists")
    expect(page.get_by_role("alert")).to_be_focused()
    assert page.evaluate(FOCUSED)["isSeen"]


@with_and_without_scripts
@each(
    "title, payload, words",
    [
        ("{{ a | shout }}", "", 'There is no filter "shout"'),
        ("{{ a }}", "{", "JSON"),
        ("{{ a }}", '{"a": "as it is shown"}', "as it is shown"),
    ],
)
def test_a_requested_preview_is_visible_with_its_error(site, open_page, scripts, title, payload, words):
    page = open_page(viewport=PHONE, java_script_enabled=scripts)
    page.goto(f"{site.base}/app/alerts/{site.service.alert().id}?tab=message")
    page.locator("#title").fill(title)
    page.locator("summary", has_text="Preview with other JSON").click()
    page.locator("#payload").fill(payload)
    page.get_by_role("button", name="Preview").click()
    expect(page).to_have_url(re.compile("#preview$"))
    expect(page.locator("#preview")).to_contain_text(words)
    focused = until(lambda: (now := page.evaluate(FOCUSED))["id"] == "preview" and now, page)
    assert focused["isSeen"]
