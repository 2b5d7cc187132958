"""Alerts and metrics in a real browser: from "New" to a right-looking notification, and what can go wrong.

How the pages look and read stands in test_pages.py.
"""

import json
import re
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Error, expect

from process import clock
from process.clock import DAY_MS
from store.database import run
from tests.support.browser import EMAIL, listen, said, tab_to, until

GRAFANA = Path("/work/shared/payloads/json/grafana-unified-test.json")
MAX_TAPS = 6
PREVIEW_MS = 300
POLL_MS = 5_000
EVENT = {
    "title": "Disk",
    "message": "root at 98 %",
    "value": 1.50,
    "host": {"name": "web-1", "zone": "eu"},
    "at": "2026-11-21T10:00:00Z",
}
HOSTILE = {
    "title": "</script><script>window.hacked = 1</script>",
    "message": "<img src=x onerror='window.hacked = 2'><b class=hostile>bold</b>",
    "<b class=hostile onclick=alert(1)>key</b>": "“quoted” 'x' \" & &amp; &lt;i class=hostile&gt;",
    '"><svg class=hostile onload="window.hacked = 3">': {"<script>window.hacked = 4</script>": "\u202edlrow"},
    "</textarea><i class=hostile>": "</code></pre><i class=hostile>",
    "אזהרה": "הדיסק של web-1 מלא ב־98 %",
}
# What of a hostile payload became markup.
HACKED = """
() => [
  ...document.querySelectorAll("main :is(script, .hostile, img[src='x'], [onerror], [onload], [onclick])"),
].map((element) => element.outerHTML.slice(0, 80)).concat(window.hacked ? [`hacked ${window.hacked}`] : [])
"""


def post(address, payload):
    """What a sender does; answers with the answer."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    with urllib.request.urlopen(urllib.request.Request(address, data), timeout=10) as answer:
        return json.load(answer)


PREFIX = "MCP - "


class AlertPage:
    """The page of one alert, and what is on it."""

    def __init__(self, page, site, name="Own JSON"):
        self.page, self.site = page, site
        page.goto(f"{site.base}/app/alerts/new")
        page.get_by_role("radio", name=name).check()
        page.get_by_role("button", name="Create and show its address").click()
        expect(page.locator("#address")).to_be_visible()
        self.path = urlsplit(page.url).path

    @property
    def address(self):
        return self.page.locator("#address").inner_text()

    @property
    def title(self):
        return self.page.get_by_label("Title", exact=True)

    @property
    def body(self):
        return self.page.get_by_label("Text", exact=True)

    @property
    def shown(self):
        """Title, without its prefix, and text as the preview has them."""
        title, body = (self.page.locator(f"#preview [data-{part}]").text_content() for part in ("title", "body"))
        return title.removeprefix(PREFIX), body

    @property
    def missing(self):
        return self.page.locator("#preview [data-missing] li")

    @property
    def error(self):
        return self.page.locator("#preview [data-error]")

    def receive(self, payload=EVENT):
        """The sender sends; the page is opened anew."""
        answer = post(self.address, payload)
        self.page.goto(self.site.base + self.path)
        return answer

    def expect_shown(self, title=None, body=None):
        if title is not None:
            expect(self.page.locator("#preview [data-title]")).to_have_text(PREFIX + title if title else "")
        if body is not None:
            expect(self.page.locator("#preview [data-body]")).to_have_text(body)

    def previews(self):
        return self.site.count("POST", f"{self.path}/preview")

    def save(self):
        self.page.get_by_role("button", name="Save", exact=True).click()
        said(self.page, "Saved")

    def stored(self):
        """The templates as they are saved."""
        return tuple(run("SELECT title_template, body_template FROM alert").fetchone())


@pytest.fixture
def owners_page(site, open_context):
    """A page of a signed-in owner."""
    context = open_context()
    context.add_cookies([site.cookie()])
    return context.new_page()


@pytest.fixture
def alert(owners_page, site):
    """The page of an alert for own JSON whose first request has come."""
    made = AlertPage(owners_page, site)
    made.receive()
    return made


def pushed(phone):
    """Title without the prefix and body of each message that the browser's push service got."""
    texts = [message["notification"] for message in phone.subscription.messages]
    return [(text["title"].removeprefix("MCP - "), text.get("body", "")) for text in texts]


# --- the whole way ------------------------------------------------------------------------------------------


@pytest.fixture
def grafana():
    if not GRAFANA.exists():
        pytest.skip("the collected payloads are not here")
    return GRAFANA.read_bytes()


def test_from_new_to_a_right_looking_notification_of_grafana(phone, site, grafana):
    phone.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.base)
    phone.enable()
    page, before = phone.go("/app/"), phone.taps()
    page.clock.install()
    page.get_by_role("link", name="Alerts", exact=True).click()
    page.get_by_role("link", name="New", exact=True).click()
    page.get_by_role("radio", name="Grafana").check()
    page.get_by_role("button", name="Create and show its address").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Grafana")
    expect(page.get_by_text("Contact points")).to_be_visible()  # how to send from there
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert phone.taps() - before <= MAX_TAPS
    address = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(rf"{site.base}/p/[0-9A-Za-z]{{7}}", address)
    expect(page.get_by_text("Waiting for the first request")).to_be_visible()
    post(address, grafana)
    page.clock.run_for(POLL_MS + 100)
    expect(page.get_by_text("Waiting for the first request")).to_have_count(0)
    shown = ("[RESOLVED:1]  (TestAlert Grafana)", "0 firing:   \n1 resolved: Notification test  ")
    assert AlertPage.shown.fget(SimpleNamespace(page=page)) == shown
    assert pushed(phone) == [shown]
    expect(page.locator("#preview li")).to_have_count(0)  # nothing is missing
    expect(page.get_by_role("button", name="Take the templates")).to_have_count(0)


def test_a_waiting_page_asks_and_stays_until_the_first_request(owners_page, site):
    owners_page.clock.install()
    AlertPage(owners_page, site)
    owners_page.evaluate("window.isSame = true")
    for _ in range(3):
        with owners_page.expect_response(lambda answer: "/app/alerts/" in answer.url):
            owners_page.clock.run_for(POLL_MS)
    assert owners_page.evaluate("window.isSame")


def test_a_waiting_page_shows_a_first_request_that_was_refused(owners_page, site):
    owners_page.clock.install()
    waiting = AlertPage(owners_page, site)
    with pytest.raises(urllib.error.HTTPError):
        post(waiting.address, "no object")
    owners_page.clock.run_for(POLL_MS + 100)
    expect(owners_page.locator("table")).to_contain_text("400")
    expect(owners_page.get_by_text("Waiting for the first request")).to_be_visible()


def not_reloaded(page, payload_of=None):
    """Give the page three chances to load itself again; fails if it does."""
    page.evaluate("window.isSame = true")
    if payload_of:
        post(payload_of.address, EVENT)
    for _ in range(3):
        page.clock.run_for(POLL_MS + 100)
        page.wait_for_timeout(150)  # for what was asked to be answered
    return page.evaluate("window.isSame === true")


def test_a_waiting_page_is_not_loaded_again_while_one_writes_a_template(owners_page, site):
    owners_page.clock.install()
    waiting = AlertPage(owners_page, site)
    waiting.title.fill("{{ host")
    assert not_reloaded(owners_page, waiting)
    expect(waiting.title).to_have_value("{{ host")
    waiting.title.fill("")
    owners_page.clock.run_for(POLL_MS + 100)
    expect(owners_page.get_by_text("Waiting for the first request")).to_have_count(0)


def test_a_waiting_page_is_not_loaded_again_while_one_writes_in_the_settings(owners_page, site):
    owners_page.clock.install()
    waiting = AlertPage(owners_page, site)
    owners_page.get_by_label("Name", exact=True).fill("Boiler")
    assert not_reloaded(owners_page, waiting)
    expect(owners_page.get_by_label("Name", exact=True)).to_have_value("Boiler")


@pytest.mark.parametrize("status", [500, 502])
def test_a_waiting_page_outlasts_a_server_that_is_being_restarted(owners_page, site, status):
    owners_page.clock.install()
    waiting = AlertPage(owners_page, site)
    owners_page.route(f"**{waiting.path}", lambda route: route.fulfill(status=status, body="<h1>Bad gateway</h1>"))
    assert not_reloaded(owners_page)
    owners_page.unroute_all()
    post(waiting.address, EVENT)
    owners_page.clock.run_for(POLL_MS + 100)
    expect(owners_page.get_by_text("Waiting for the first request")).to_have_count(0)
    waiting.expect_shown("Disk", "root at 98 %")


def test_a_waiting_page_outlasts_being_offline(phone, site):
    phone.start_worker()
    phone.page.clock.install()
    waiting = AlertPage(phone.page, site)
    phone.context.set_offline(True)
    assert not_reloaded(phone.page)
    phone.context.set_offline(False)
    post(waiting.address, EVENT)
    phone.page.clock.run_for(POLL_MS + 100)
    waiting.expect_shown("Disk", "root at 98 %")


def test_a_waiting_page_that_answered_a_form_is_not_sent_again(owners_page, site):
    owners_page.clock.install()
    waiting = AlertPage(owners_page, site)
    owners_page.get_by_label("Icon", exact=True).fill("no icon")
    owners_page.get_by_role("button", name="Save the settings").click()
    expect(owners_page.get_by_role("alert")).to_be_visible()
    sent = site.count("POST", f"{waiting.path}/settings")
    not_reloaded(owners_page)
    assert site.count("POST", f"{waiting.path}/settings") == sent


def test_a_waiting_page_whose_test_was_sent_is_not_sent_again(owners_page, site):
    """A draft stands on the page as an answer to POST: loading it again would post it again."""
    owners_page.clock.install()
    waiting = AlertPage(owners_page, site)
    waiting.title.fill("{{ title | nothing }}")
    owners_page.get_by_role("button", name="Send a test").click()
    expect(owners_page.get_by_role("alert")).to_be_visible()
    sent = site.count("POST", waiting.path)
    not_reloaded(owners_page, waiting)
    assert site.count("POST", waiting.path) == sent
    expect(waiting.title).to_have_value("{{ title | nothing }}")


# --- the live preview ---------------------------------------------------------------------------------------


TEMPLATES = [
    ("{{ title | upcase }} on {{ host.name }}", "{{ message }}\n{{ value }} at {{ at | date: '%H:%M' }}"),
    ('{{ nothing | default: "none" }}', "{{ host }}"),
    ("{{ not.there }} stays", "  two  spaces\n\nאזהרה: {{ message }} 🔥"),
    ("", ""),
]


@pytest.mark.parametrize("title, body", TEMPLATES)
def test_the_live_preview_is_what_is_then_delivered(phone, site, title, body):
    phone.enable()
    alert = AlertPage(phone.page, site)
    alert.receive()
    alert.title.fill("another")
    alert.body.fill("draft")
    alert.expect_shown("another", "draft")
    alert.title.fill(title)
    alert.body.fill(body)
    until(lambda: alert.shown[0] != "another" and alert.shown[1] != "draft", phone.page)
    shown = alert.shown
    alert.save()
    assert alert.shown == shown
    post(alert.address, EVENT)
    assert pushed(phone)[-1] == shown


def test_the_preview_waits_until_one_stops_typing_for_300_ms(alert):
    alert.page.clock.install(time=0)
    alert.page.reload()
    alert.page.clock.pause_at(3600)  # from now on time goes on only when it is told to
    alert.title.focus()
    for letter in "Disk full":
        alert.page.keyboard.type(letter)
        alert.page.clock.run_for(PREVIEW_MS // 6)
    assert alert.previews() == 0
    alert.page.clock.run_for(PREVIEW_MS)
    alert.expect_shown("Disk full")
    assert alert.previews() == 1


def test_did_you_mean_comes_and_goes_as_one_types(alert):
    alert.title.fill("{{ titel }} {{ host.nane }} {{ zzzzzz }}")
    expect(alert.missing).to_have_text(
        [
            "titel is not in what came. Did you mean title?",
            "host.nane is not in what came. Did you mean host.name?",
            "zzzzzz is not in what came.",
        ]
    )
    alert.title.fill("{{ title }} {{ host.name }}")
    expect(alert.missing).to_have_count(0)
    alert.expect_shown("Disk web-1")


def test_why_a_placeholder_stays_as_it_is_written_comes_and_goes_as_one_types(alert):
    said = alert.page.locator("#preview [data-unfilled] li")
    alert.title.fill("{{ title | round }} {{ title | truncate: abc }} {{ ti")
    expect(said).to_have_text(
        [
            "{{ title | round }} is shown as it is written: round needs a number.",
            "{{ title | truncate: abc }} is shown as it is written:"
            " truncate takes a number of characters, as in truncate: 30.",
            "{{ ti is shown as it is written: it has no }}.",
        ]
    )
    alert.title.fill("{{ title | truncate: 30 }}")
    expect(said).to_have_count(0)


def test_nothing_is_said_to_be_missing_before_anything_came(owners_page, site):
    waiting = AlertPage(owners_page, site)
    expect(waiting.missing).to_have_count(0)
    waiting.title.fill("{{ title }}!")
    waiting.expect_shown("{{ title }}!")
    expect(waiting.missing).to_have_count(0)


def open_values(page):
    """The line may be closed at first."""
    page.locator("details", has=page.locator(".paths")).evaluate("line => { line.open = true; }")


def tap(page, path):
    open_values(page)
    page.get_by_role("button", name=path, exact=True).click()


def test_a_tap_on_a_value_puts_it_at_the_cursor_of_the_field_that_was_last_in_use(alert):
    page = alert.page
    tap(page, "message")  # no field was in use
    expect(alert.body).to_have_value("{{ message }}")
    alert.title.fill("on  now")
    alert.title.evaluate("field => field.setSelectionRange(3, 3)")
    tap(page, "host.name")
    expect(alert.title).to_have_value("on {{ host.name }} now")
    expect(alert.title).to_be_focused()
    page.keyboard.type("!")
    expect(alert.title).to_have_value("on {{ host.name }}! now")
    alert.expect_shown("on web-1! now", "root at 98 %")
    alert.body.click()
    page.keyboard.press("Control+A")
    tap(page, "host.zone")
    expect(alert.body).to_have_value("{{ host.zone }}")
    alert.expect_shown(body="eu")


def test_a_tap_on_a_value_while_json_was_pasted_goes_to_the_text(alert):
    alert.title.focus()
    alert.page.get_by_text("Try with other JSON").click()
    alert.page.get_by_label("JSON", exact=True).fill('{"title": "Other", "message": "text"}')
    tap(alert.page, "title")
    expect(alert.page.get_by_label("JSON", exact=True)).to_have_value('{"title": "Other", "message": "text"}')
    until(lambda: "{{ title }}" in alert.title.input_value() + alert.body.input_value(), alert.page)


def test_undo_takes_an_inserted_value_away(alert):
    alert.title.fill("on ")
    tap(alert.page, "host.name")
    expect(alert.title).to_have_value("on {{ host.name }}")
    alert.page.keyboard.press("Control+Z")
    expect(alert.title).to_have_value("on ")


def test_the_values_of_pasted_json_are_offered_at_once(alert):
    alert.page.get_by_text("Try with other JSON").click()
    alert.page.get_by_label("JSON", exact=True).fill('{"pasted": {"value": "mine"}}')
    tap(alert.page, "pasted.value")
    expect(alert.body).to_have_value("{{ pasted.value }}")
    alert.expect_shown(body="mine")
    expect(alert.page.get_by_role("button", name="host.name", exact=True)).to_have_count(0)


def test_what_is_wrong_with_a_draft_is_shown_and_goes(alert):
    expect(alert.error).to_be_hidden()
    alert.title.fill("{{ title | upper }}")
    expect(alert.error).to_contain_text('There is no filter "upper"')
    expect(alert.error).to_be_visible()
    alert.expect_shown("", "")
    alert.title.fill("{{ title | upcase }}")
    expect(alert.error).to_be_hidden()
    alert.expect_shown("DISK", "root at 98 %")
    assert alert.stored() == (None, None)


def test_pasted_json_is_used_for_the_preview(alert):
    page = alert.page
    alert.title.fill("{{ title }} {{ ref }}")
    expect(alert.missing).to_contain_text(["ref is not in what came."])
    page.get_by_text("Try with other JSON").click()
    pasted = page.get_by_label("JSON", exact=True)
    pasted.fill('{"title": "Push", "ref": "main"')
    expect(alert.error).to_be_visible()
    pasted.fill('{"title": "Push", "ref": "main"}')
    expect(alert.error).to_be_hidden()
    alert.expect_shown("Push main", '{"title":"Push","ref":"main"}')
    expect(alert.missing).to_have_count(0)
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Values to insert")).to_be_visible()
    open_values(page)
    expect(page.get_by_role("button", name="ref", exact=True)).to_be_visible()
    expect(pasted).to_have_value('{"title": "Push", "ref": "main"}')
    alert.expect_shown("Push main")
    assert alert.stored() == (None, None)
    pasted.fill("")
    alert.expect_shown("Disk {{ ref }}")


def test_a_draft_is_sent_as_a_test_and_not_saved(phone, site):
    phone.enable()
    alert = AlertPage(phone.page, site)
    alert.receive()
    alert.title.fill("Test of {{ title }}")
    alert.expect_shown("Test of Disk", "root at 98 %")
    shown = alert.shown
    phone.page.get_by_role("button", name="Send a test").click()
    expect(phone.page.get_by_text("Sent, and delivered: it is in the history.")).to_be_visible()
    expect(alert.title).to_have_value("Test of {{ title }}")
    assert pushed(phone)[-1] == shown
    assert alert.stored() == (None, None)


def test_the_last_request_is_sent_again_with_the_mended_template_and_forgotten(phone, site):
    phone.enable()
    alert = AlertPage(phone.page, site)
    alert.receive()
    alert.title.fill("{{ title }} on {{ host.name }}")
    alert.save()
    phone.page.locator("summary", has_text="The last request,").click()
    phone.page.get_by_role("button", name="Send it again").click()
    expect(phone.page.get_by_role("heading", level=1)).to_have_text("MCP - Disk on web-1")
    assert pushed(phone) == [("Disk", "root at 98 %"), ("Disk on web-1", "root at 98 %")]
    phone.go(alert.path)
    phone.page.locator("summary", has_text="The last request,").click()
    phone.page.get_by_role("button", name="Forget it").click()
    said(phone.page, "forgotten")
    expect(phone.page.locator("summary", has_text="The last request,")).to_have_count(0)
    assert run("SELECT count(*) FROM alert_payload").fetchone()[0] == 0


def test_a_preset_is_proposed_and_taken(owners_page, site, grafana):
    alert = AlertPage(owners_page, site)
    alert.receive(grafana)
    expect(owners_page.get_by_text("What came last looks like Grafana")).to_be_visible()
    owners_page.get_by_role("button", name="Take the templates for Grafana").click()
    said(owners_page, "The templates are those for Grafana")
    expect(alert.title).to_have_value("{{ title }}")
    alert.expect_shown("[RESOLVED:1]  (TestAlert Grafana)")
    expect(owners_page.get_by_role("button", name="Take the templates")).to_have_count(0)


def test_the_order_of_the_answers_does_not_matter(alert):
    held = []

    def hold_the_first(route):
        if held:
            route.continue_()
        else:
            held.append(route)

    alert.page.route("**/preview", hold_the_first)
    alert.title.fill("first")
    until(lambda: held, alert.page)
    alert.title.fill("second")
    alert.expect_shown("second")
    with suppress(Error):  # the page has given it up
        held[0].continue_()
    alert.page.wait_for_timeout(500)
    alert.expect_shown("second")


def test_a_preview_of_a_tap_and_of_typing_in_the_wrong_order_shows_the_later(alert):
    """A tap previews at once, and what was typed before it 300 ms later: both of the same draft."""
    alert.title.fill("typed ")
    tap(alert.page, "host.name")
    alert.expect_shown("typed web-1")
    alert.page.wait_for_timeout(PREVIEW_MS + 200)
    alert.expect_shown("typed web-1")


# --- when it cannot work ------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["offline", "signed out", "broken answer", "server fault"])
def test_a_preview_that_fails_leaves_the_page_usable(alert, way):
    page, troubles = alert.page, []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    cookies = page.context.cookies()
    if way == "offline":
        page.context.set_offline(True)
    elif way == "signed out":
        page.context.clear_cookies()
    else:
        status = 200 if way == "broken answer" else 502
        page.route("**/preview", lambda route: route.fulfill(status=status, body="<h1>no JSON</h1>"))
    alert.title.fill("written ")
    page.wait_for_timeout(PREVIEW_MS + 200)
    tap(page, "host.name")
    page.wait_for_timeout(200)
    expect(alert.title).to_have_value("written {{ host.name }}")
    assert troubles == []
    page.context.set_offline(False)
    page.context.add_cookies(cookies)
    page.unroute_all()
    alert.title.press("End")
    alert.title.press_sequentially("!")
    alert.expect_shown("written web-1!")
    alert.save()
    assert alert.stored()[0] == "written {{ host.name }}!"


def test_a_draft_that_is_saved_while_signed_out_is_not_written_over(alert):
    alert.title.fill("written")
    alert.page.context.clear_cookies()
    alert.page.get_by_role("button", name="Save", exact=True).click()
    expect(alert.page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert alert.stored() == (None, None)


def test_a_hostile_payload_never_becomes_markup(owners_page, site):
    troubles = listen(owners_page)
    alert = AlertPage(owners_page, site)
    alert.receive(HOSTILE)
    owners_page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert owners_page.evaluate(HACKED) == []
    assert alert.shown == (HOSTILE["title"], HOSTILE["message"])
    open_values(owners_page)
    for key in HOSTILE:
        path = owners_page.get_by_role("button", name=key, exact=True)
        expect(path).to_have_count(1)
        alert.body.fill("")
        path.click()
        assert alert.body.input_value() == f"{{{{ {key} }}}}"
        alert.title.fill(f"{{{{ {key}x }}}}")
        value = HOSTILE[key] if isinstance(HOSTILE[key], str) else json.dumps(HOSTILE[key], ensure_ascii=False)
        alert.expect_shown(f"{{{{ {key}x }}}}", value.replace('": "', '":"'))
        expect(alert.missing).to_contain_text([f"{key}x is not in what came."])
        alert.body.focus()
    assert owners_page.evaluate(HACKED) == []
    alert.save()
    assert owners_page.evaluate(HACKED) == []
    owners_page.get_by_text("Try with other JSON").click()
    owners_page.get_by_label("JSON", exact=True).fill(json.dumps({"</textarea><script>alert(1)</script>": HOSTILE}))
    owners_page.get_by_role("button", name="Preview").click()
    expect(owners_page.get_by_text("Values to insert")).to_be_visible()
    assert owners_page.evaluate(HACKED) == []
    owners_page.goto(f"{site.base}/app/notifications")
    assert owners_page.evaluate(HACKED) == []
    assert troubles == []


def test_a_hostile_name_never_becomes_markup(owners_page, site):
    troubles = listen(owners_page)
    alert = AlertPage(owners_page, site)
    name = "<b class=hostile>&amp;</b>\"'<script>hacked=5</script>"
    owners_page.get_by_label("Name", exact=True).fill(name)
    owners_page.get_by_role("button", name="Save the settings").click()
    said(owners_page, "Saved")
    expect(owners_page.get_by_role("heading", level=1)).to_have_text(name)
    assert owners_page.evaluate(HACKED) == []
    owners_page.goto(f"{site.base}/app/alerts")
    expect(owners_page.get_by_role("link", name=name)).to_be_visible()
    assert owners_page.evaluate(HACKED) == []
    owners_page.goto(site.base + alert.path)
    owners_page.locator("summary", has_text="Delete…").click()
    owners_page.get_by_role("button", name="Delete").click()
    said(owners_page, name)
    assert owners_page.evaluate(HACKED) == []
    assert troubles == []


# --- the rest of the page -----------------------------------------------------------------------------------


def test_an_address_is_made_anew_and_an_alert_deleted_behind_their_lines(alert, site):
    page, before = alert.page, alert.address
    rotate, delete = (page.get_by_role("button", name=name) for name in ("Make a new address", "Delete Own JSON"))
    expect(rotate).to_be_hidden()
    expect(delete).to_be_hidden()
    page.get_by_text("New address…").click()
    rotate.click()
    said(page, "It has a new address")
    assert alert.address != before
    with pytest.raises(urllib.error.HTTPError, match="404"):
        post(before, EVENT)
    post(alert.address, EVENT)
    page.get_by_text("Delete…").click()
    delete.click()
    expect(page).to_have_url(f"{site.base}/app/alerts")
    said(page, "is deleted")
    assert run("SELECT count(*) FROM alert").fetchone()[0] == 0


def test_an_alert_is_switched_off_and_on_from_the_list(alert, site):
    page = alert.page
    page.goto(f"{site.base}/app/alerts")
    page.get_by_role("button", name="Switch off Own JSON").click()
    said(page, "It is off")
    assert post(alert.address, EVENT)["status"] == "inactive"
    page.goto(f"{site.base}/app/alerts")
    page.get_by_role("button", name="Switch on Own JSON").click()
    said(page, "It is on")
    assert post(alert.address, EVENT)["status"] == "delivered"


def test_the_qr_code_is_drawn(alert):
    alert.page.get_by_text("As a QR code").click()
    picture = alert.page.get_by_alt_text("QR code with the webhook address")
    until(lambda: picture.evaluate("image => image.complete && image.naturalWidth > 0"), alert.page)


def test_the_history_of_an_alert_is_of_that_alone(alert, site):
    site.send("Another", "of a key")
    alert.page.reload()
    alert.page.get_by_role("main").get_by_role("link", name="history").click()
    notifications = alert.page.get_by_role("main").get_by_role("listitem").filter(has_text="MCP - ")
    expect(notifications).to_have_count(1)
    expect(notifications).to_contain_text("Disk")


def test_what_was_refused_is_told_with_its_reason(alert):
    for data in (b"not JSON", b"[1]", b""):
        with pytest.raises(urllib.error.HTTPError, match="400"):
            post(alert.address, data)
    alert.page.reload()
    seen = alert.page.get_by_role("region", name="Recent requests").get_by_role("row")
    expect(seen.filter(has_text="400").first).to_contain_text("JSON")
    expect(seen.filter(has_text="200")).to_contain_text("stored, no device")


def test_the_whole_way_of_an_alert_goes_by_keyboard_alone(phone, site):
    phone.enable()
    page, keyboard = phone.go("/app/"), phone.page.keyboard
    tab_to(page, "Alerts")
    keyboard.press("Enter")
    expect(page).to_have_url(f"{site.base}/app/alerts")
    tab_to(page, "New")
    keyboard.press("Enter")
    expect(page).to_have_url(f"{site.base}/app/alerts/new")
    tab_to(page, "Own JSON")
    for _ in range(4):  # round to the first, and on to the fourth
        keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Grafana")).to_be_checked()
    tab_to(page, "Create and show its address")
    keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Grafana")
    post(page.locator("#address").inner_text(), EVENT)
    page.reload()
    expect(page.get_by_text("Waiting for the first request")).to_have_count(0)
    tab_to(page, "Title")
    keyboard.press("Control+A")
    keyboard.type("on {{ host.name }}")
    tab_to(page, "Text")
    keyboard.press("Control+A")
    keyboard.type("in ")
    open_values(page)
    tab_to(page, "host.zone")
    keyboard.press("Enter")
    expect(page.locator("#preview [data-title]")).to_have_text(f"{PREFIX}on web-1")
    expect(page.locator("#preview [data-body]")).to_have_text("in eu")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    tab_to(page, "Save")
    keyboard.press("Enter")
    said(page, "Saved")
    tab_to(page, "Send a test", most=60)
    keyboard.press("Space")
    said(page, "Sent, and delivered")
    assert pushed(phone)[-1] == ("on web-1", "in eu")


def test_a_value_that_one_is_about_to_take_stays_where_it_is_when_a_preview_comes(alert):
    open_values(alert.page)
    value = alert.page.get_by_role("button", name="host.name").element_handle()
    before = alert.previews()
    alert.title.fill("another title")
    alert.expect_shown("another title")
    assert alert.previews() > before and value.evaluate("it => it.isConnected")


def test_a_value_goes_into_the_title_by_keyboard_alone(alert):
    """On the way from the title to the values the focus passes through the text."""
    alert.title.focus()
    alert.page.keyboard.type("on ")
    open_values(alert.page)
    tab_to(alert.page, "host.name")
    alert.page.keyboard.press("Enter")
    expect(alert.title).to_have_value("on {{ host.name }}")


def test_the_whole_way_of_an_alert_goes_without_javascript(plain, site):
    plain.get_by_role("link", name="Alerts", exact=True).click()
    plain.get_by_role("link", name="Make the first one").click()
    alert = AlertPage(plain, site)
    expect(plain.get_by_role("button", name="Copy")).to_have_count(0)
    expect(plain.get_by_text("Waiting for the first request")).to_be_visible()
    alert.receive()
    alert.expect_shown("Disk", "root at 98 %")
    alert.title.fill("{{ titel }}")
    plain.get_by_role("button", name="Preview").click()
    expect(alert.missing).to_have_text(["titel is not in what came. Did you mean title?"])
    alert.title.fill("{{ title | upper }}")
    plain.get_by_role("button", name="Preview").click()
    expect(alert.error).to_contain_text('There is no filter "upper"')
    alert.title.fill("{{ title | upcase }}")
    plain.get_by_text("Try with other JSON").click()
    plain.get_by_label("JSON", exact=True).fill("{no JSON")
    plain.get_by_role("button", name="Preview").click()
    expect(plain.get_by_role("alert")).to_be_visible()
    expect(alert.title).to_have_value("{{ title | upcase }}")
    plain.get_by_label("JSON", exact=True).fill('{"title": "push"}')
    plain.get_by_role("button", name="Preview").click()
    alert.expect_shown("PUSH")
    plain.get_by_label("JSON", exact=True).fill("")
    plain.get_by_role("button", name="Send a test").click()
    said(plain, "There is no device to send it to")
    plain.goto(site.base + alert.path)
    alert.title.fill("{{ title | upcase }}")
    alert.save()
    plain.locator("summary", has_text="The last request,").click()
    plain.get_by_role("button", name="Send it again").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("MCP - DISK")
    plain.goto(site.base + alert.path)
    plain.get_by_label("Notify with").select_option("1d")
    plain.get_by_role("button", name="Save the settings").click()
    said(plain, "Saved")
    expect(plain.get_by_label("Notify with")).to_have_value("1d")
    plain.get_by_text("New address…").click()
    plain.get_by_role("button", name="Make a new address").click()
    said(plain, "new address")
    plain.get_by_text("Delete…").click()
    plain.get_by_role("button", name="Delete Own JSON").click()
    said(plain, "is deleted")


def test_where_javascript_is_off_nothing_is_offered_that_needs_it(plain, site):
    alert = AlertPage(plain, site)
    alert.receive()
    for button in plain.get_by_role("button").all():
        assert button.get_attribute("type") != "button", f"“{button.inner_text()}” does nothing"


def test_enter_in_a_field_of_the_template_never_sends_a_test(alert):
    """The first button of the form is what Enter presses."""
    first = alert.page.locator("#template button:not([type=button])").first
    assert first.inner_text() == "Save"


# --- metrics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_script", [True, False], ids=["JavaScript", "none"])
def test_a_metric_is_shown_in_each_range_and_downloaded(site, open_context, has_script):
    context = open_context(java_script_enabled=has_script)
    context.add_cookies([site.cookie()])
    make_values(site)
    page = context.new_page()
    troubles = listen(page)
    page.goto(f"{site.base}/app/")
    page.get_by_role("link", name="Metrics", exact=True).click()
    page.get_by_role("link", name="<b class=hostile>Boiler</b>").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("<b class=hostile>Boiler</b>")
    for name, seen in (("24 h", ["1"]), ("7 d", ["1", "2"]), ("30 d", ["1", "2", "4"])):
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "true")
        expect(page.locator(".tabs [aria-current]")).to_have_count(1)
        page.get_by_text("As a table").click()
        expect(page.locator("tbody tr td:nth-child(3)")).to_have_text(seen)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download as CSV").click()
        lines = Path(download.value.path()).read_text().splitlines()
        assert lines[0] == '"time","value","unit"'
        assert [line.split(",")[1:] for line in lines[1:]] == [[f"{value}.0", '"\'=°C"'] for value in reversed(seen)]
        assert download.value.suggested_filename.endswith(".csv")
        expect(page.locator("svg.chart-line polyline, svg.chart-line circle")).to_have_count(1)
        expect(page.locator("main .hostile")).to_have_count(0)
    page.get_by_role("link", name="Metrics").last.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Metrics")
    assert troubles == []


def make_values(site):
    """Values of one series: the last of them is in no range, each range has one more than the one before."""
    key = site.service.flask("key", "create", EMAIL, "sender").output.strip()
    ages = {1: 0, 2: 2 * DAY_MS, 4: 20 * DAY_MS, 8: 40 * DAY_MS}
    values = [
        {"metricId": "temp/1&2", "metricName": "<b class=hostile>Boiler</b>", "value": value, "unit": "=°C"}
        | {"timestamp": clock.now_ms() - age - 60_000}
        for value, age in ages.items()
    ]
    site.request("/api/webhooks/custom", key, {"projectId": "home #1", "metrics": values})


def test_the_range_of_the_list_is_that_of_a_metrics_page(owners_page, site):
    make_values(site)
    owners_page.goto(f"{site.base}/app/metrics")
    owners_page.get_by_role("link", name="30 d", exact=True).click()
    owners_page.get_by_role("link", name="Boiler").click()
    expect(owners_page.locator(".tabs [aria-current]")).to_have_text("30 d")
    owners_page.get_by_text("As a table").click()
    expect(owners_page.locator("tbody tr")).to_have_count(3)


def test_the_page_of_no_metrics_has_a_command_to_copy(open_context, site):
    context = open_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.base)
    context.add_cookies([site.cookie()])
    page = context.new_page()
    page.goto(f"{site.base}/app/metrics")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert f"{site.base}/api/webhooks/custom" in page.evaluate("navigator.clipboard.readText()")
