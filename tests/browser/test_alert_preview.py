"""The message of an alert in a browser: its live preview, and what it does when that cannot work."""

import json
from contextlib import suppress

import pytest
from playwright.sync_api import Error, expect

from tests.support.alerts_in_browser import EVENT, AlertPage, open_values, post, pushed
from tests.support.browser import follow, listen, until
from tests.support.rows import each

PREVIEW_MS = 300
HOSTILE = {
    "title": "</script><script>window.hacked = 1</script>",
    "message": "<img src=x onerror='window.hacked = 2'><b class=hostile>bold</b>",
    "<b class=hostile onclick=alert(1)>key</b>": "“quoted” 'x' \" & &amp; &lt;i class=hostile&gt;",
    '"><svg class=hostile onload="window.hacked = 3">': {"<script>window.hacked = 4</script>": "\u202edlrow"},
    "</textarea><i class=hostile>": "</code></pre><i class=hostile>",
    "אזהרה": "הדיסק של web-1 מלא ב־98 %",
}


# The parts of a hostile payload that became markup.
HACKED = """
() => [
  ...document.querySelectorAll("main :is(script, .hostile, img[src='x'], [onerror], [onload], [onclick])"),
].map((element) => element.outerHTML.slice(0, 80)).concat(window.hacked ? [`hacked ${window.hacked}`] : [])
"""


# --- the live preview ---------------------------------------------------------------------------------------


TEMPLATES = [
    ("{{ title | upcase }} on {{ host.name }}", "{{ message }}\n{{ value }} at {{ at | date: '%H:%M' }}"),
    ('{{ nothing | default: "none" }}', "{{ host }}"),
    ("{{ not.there }} stays", "  two  spaces\n\nאזהרה: {{ message }} 🔥"),
    ("", ""),
]


@pytest.fixture
def on_phone(phone, site):
    """As `alert`, on a phone that gets notifications."""
    phone.enable()
    made = AlertPage(phone.page, site)
    made.receive()
    return made


@each("title, body", TEMPLATES)
def test_the_live_preview_is_what_is_then_delivered(phone, on_phone, title, body):
    alert = on_phone
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


def test_the_preview_is_requested_300_ms_after_the_last_key(open_page, site):
    alert = AlertPage(open_page(), site)
    alert.receive()
    alert.page.clock.install(time=0)
    alert.page.reload()
    alert.page.clock.pause_at(3600)  # from now on the page's clock moves only by run_for
    alert.title.focus()
    for letter in "Disk full":
        alert.page.keyboard.type(letter)
        alert.page.clock.run_for(PREVIEW_MS // 6)
    assert alert.previews() == 0
    alert.page.clock.run_for(PREVIEW_MS)
    alert.expect_shown("Disk full")
    assert alert.previews() == 1


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
    page.locator("details:has(#tag)").evaluate("more => { more.open = true; }")
    page.locator("#tag").click()
    tap(page, "host.name")
    expect(page.locator("#tag")).to_have_value("{{ host.name }}")


def test_undo_removes_an_inserted_value(alert):
    alert.title.fill("on ")
    tap(alert.page, "host.name")
    expect(alert.title).to_have_value("on {{ host.name }}")
    alert.page.keyboard.press("Control+Z")
    expect(alert.title).to_have_value("on ")


def test_an_error_in_a_draft_is_shown_and_disappears_when_mended(alert):
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
    expect(alert.wrong).to_contain_text(["ref is not in this request."])
    page.get_by_text("Preview with other JSON").click()
    pasted = page.get_by_label("JSON", exact=True)
    pasted.fill('{"title": "Push", "ref": "main"')
    expect(alert.error).to_be_visible()
    pasted.fill('{"title": "Push", "ref": "main"}')
    expect(alert.error).to_be_hidden()
    alert.expect_shown("Push main", "ref: main")
    expect(alert.wrong).to_have_count(0)
    for _ in range(2):  # while it is typed, and when the page has come anew
        open_values(page)
        expect(page.get_by_role("button", name="ref", exact=True)).to_be_visible()
        expect(page.get_by_role("button", name="host.name", exact=True)).to_have_count(0)
        follow(page.get_by_role("button", name="Preview"))
    expect(pasted).to_have_value('{"title": "Push", "ref": "main"}')
    alert.expect_shown("Push main")
    assert alert.stored() == (None, None)
    pasted.fill("")
    alert.expect_shown("Disk {{ ref }}")


def test_a_late_answer_does_not_replace_a_newer_preview(alert):
    held = []

    def hold_the_first(route):
        if held:
            route.continue_()
        else:
            held.append(route)

    alert.page.route(f"**{alert.path}", hold_the_first)
    alert.title.fill("first")
    until(lambda: held, alert.page)
    alert.title.fill("second")
    alert.expect_shown("second")
    with suppress(Error):  # the page has given it up
        held[0].continue_()
    alert.page.wait_for_timeout(500)
    alert.expect_shown("second")


def test_the_preview_shows_the_latest_of_a_tap_and_typing_in_any_order_of_answers(alert):
    """A tap asks for a preview at once, typing only after 300 ms: both show the same draft."""
    alert.title.fill("typed ")
    tap(alert.page, "host.name")
    alert.expect_shown("typed web-1")
    alert.page.wait_for_timeout(PREVIEW_MS + 200)
    alert.expect_shown("typed web-1")


# --- when it cannot work ------------------------------------------------------------------------------------


@each("way", ["offline", "signed out", "broken answer", "server fault"])
def test_a_preview_that_fails_leaves_the_page_usable(alert, way):
    page, troubles = alert.page, []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    cookies, asked = page.context.cookies(), set()
    page.on("request", lambda request: asked.add(request))
    page.on("requestfailed", lambda request: asked.discard(request))
    page.on("response", lambda answer: asked.discard(answer.request))
    if way == "offline":
        page.context.set_offline(True)
    elif way == "signed out":
        page.context.clear_cookies()
    else:
        status = 200 if way == "broken answer" else 502
        page.route(f"**{alert.path}", lambda route: route.fulfill(status=status, body="<h1>no page of ours</h1>"))
    alert.title.fill(f"{way} ")
    page.wait_for_timeout(PREVIEW_MS + 200)
    tap(page, "host.name")
    page.wait_for_timeout(PREVIEW_MS + 200)
    until(lambda: not asked, page)  # a late answer would sign the browser out again
    expect(alert.title).to_have_value(f"{way} {{{{ host.name }}}}")
    assert troubles == []
    page.context.set_offline(False)
    page.context.add_cookies(cookies)
    page.unroute_all()
    alert.title.press("End")
    alert.title.press_sequentially("!")
    alert.expect_shown(f"{way} web-1!")
    alert.save()
    assert alert.stored()[0] == f"{way} {{{{ host.name }}}}!"


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
        expect(alert.wrong).to_contain_text([f"{key}x is not in this request."])
        alert.body.focus()
    assert owners_page.evaluate(HACKED) == []
    alert.save()
    assert owners_page.evaluate(HACKED) == []
    owners_page.get_by_text("Preview with other JSON").click()
    owners_page.get_by_label("JSON", exact=True).fill(json.dumps({"</textarea><script>alert(1)</script>": HOSTILE}))
    owners_page.get_by_role("button", name="Preview").click()
    expect(owners_page.get_by_text("Values to insert")).to_be_visible()
    assert owners_page.evaluate(HACKED) == []
    owners_page.goto(f"{site.base}/app/notifications")
    assert owners_page.evaluate(HACKED) == []
    assert troubles == []
