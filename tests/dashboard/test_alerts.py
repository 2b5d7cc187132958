"""The pages of alerts: the list, settings, the address, hostile names, snippets."""

import subprocess

import segno

from core.alerts import ICONS
from dashboard import page
from models import Alert
from store.database import EVERYBODY, transaction
from tests.support.alert_page import AlertPage, in_history
from tests.support.hostile import TOGETHER
from tests.support.pages import Page, signed_in
from tests.support.rows import each
from tests.support.server import PATIENCE_S
from tests.support.tables import alter
from tests.support.times import DAY_S

# --- the list -----------------------------------------------------------------------------------------------


def names(page):
    return [e.text for e in page.elements if e.tag == "strong" and any(one.tag == "a" for one in e.within)]


def test_alerts_that_need_a_look_come_first_and_those_that_are_off_last(service, owner, browser):
    for name in ("A off", "B fine", "C failing", "D paused", "E misses", "F fine"):
        AlertPage(service, owner, name=name)
    ids = {one.name: one for one in Alert.select()}
    with transaction(EVERYBODY):
        Alert.update(is_active=0).where(Alert.name == "A off").execute()
        Alert.update(is_active=0, paused_at=1_795_255_200_000).where(Alert.name == "D paused").execute()
        ids["E misses"].title_template = "{{ nothing }}"
        ids["E misses"].save()
    send = {one.name: one.short_code for one in Alert.select()}
    service.client.post(f"/p/{send['E misses']}", json={"a": 1})
    browser.then(410)
    service.client.post(f"/p/{send['C failing']}", json={"a": 1})
    page = owner.page("/app/alerts")
    found = names(page)
    assert set(found[:3]) == {"C failing", "D paused", "E misses"} and found[-1] == "A off"
    assert set(found[:2]) == {"C failing", "D paused"}, "failing and paused before what is merely missing"
    assert "Paused today 10:00: too many requests" in page.section("D paused")
    assert "Last notification failed" in page.section("C failing") and "1 variable missing" in page.section(
        "E misses"
    )
    assert "Off" in page.section("A off") and "Waiting for the first request" in page.section("B fine")


def test_the_list_says_how_many_requests_were_refused_until_one_is_taken(service, owner, moved_clock):
    hook = service.alert()
    for _ in range(2):
        assert hook.post(data=b"{").status_code == 400
        moved_clock.advance(60)
    assert "Refused 2 requests since 10:00: " in owner.page("/app/alerts").main
    assert hook.post({"title": "a"}).status_code == 200
    assert "Refused" not in owner.page("/app/alerts").main


def test_an_alert_that_works_again_is_not_listed_as_failing(service, alert):
    alert.post({"a": 1})
    alter(service, "UPDATE delivery SET status = 'failed'")
    alert.post({"a": 1})
    assert "failed" not in alert.owner.page("/app/alerts").main


def test_the_age_of_the_last_request_is_worded_correctly_for_any_age(alert, moved_clock):
    alert.post({"a": 1})
    for words in ("just now", "yesterday 10:00"):
        for path in ("/app/alerts", alert.path):
            said = alert.owner.page(path).main
            assert "1 sent" in said and words in said
        moved_clock.advance(DAY_S)


def is_on(page):
    (switch,) = [one for one in page.all("button") if one.get("role") == "switch"]
    return switch["aria-checked"]


def test_an_alert_is_switched_off_and_on(alert):
    page = alert.do("switch", on="0")
    assert "Off" in page.texts_of("span") and is_on(page) == "false" and not alert.row.is_active
    assert alert.post({"a": 1}).json == {"ok": True, "status": "inactive"}
    assert is_on(alert.do("switch", on="1")) == "true"
    assert alert.post({"a": 1}).json["status"] == "delivered"


def test_a_paused_alert_is_switched_on_again(alert):
    with transaction(EVERYBODY):
        Alert.update(is_active=0, paused_at=1).execute()
    assert ": too many requests." in alert.page.text
    assert "Paused" not in alert.do("switch", on="1").main and alert.row.paused_at is None


@each("back", ["/app/alerts", "/app/alerts/x?tab=activity"])
def test_an_alert_is_switched_on_the_page_to_which_it_leads_back(alert, back):
    answer = alert.owner.post(f"{alert.path}/switch?back={back}", {"on": "0"})
    assert answer.location == back and not alert.row.is_active


def test_each_part_has_an_address_and_connect_is_the_first_until_a_request_came(alert):
    def current(query=""):
        links = [
            a for a in alert.owner.page(alert.path + query).all("a") if a.get("href", "").startswith(f"{alert.path}?")
        ]
        assert [a["href"].partition("=")[2] for a in links] == ["connect", "message", "activity", "settings"]
        (part,) = [a["href"].partition("=")[2] for a in links if "aria-current" in a]
        return part

    assert current() == "connect"
    assert [current(f"?tab={part}") for part in ("message", "activity", "settings")] == [
        "message",
        "activity",
        "settings",
    ]
    alert.post({"a": 1})
    assert current() == current("?tab=nonsense") == "message" and current("?tab=connect") == "connect"


def test_the_icons_are_offered_as_pictures_with_the_present_one_first(alert):
    alert.settings(icon="flame")
    offered = [one for one in alert.tab("settings").all("input") if one.get("name") == "icon"]
    assert {one["value"] for one in offered} == ICONS and offered[0]["value"] == "flame"
    assert [one["value"] for one in offered if "checked" in one] == ["flame"]


def test_an_alerts_page_leads_to_its_own_history(service, owner, alert):
    alert.post({"title": "Disk"})
    service.caller().send("of a key")
    (path,) = [link["href"] for link in alert.page.all("a") if "notifications?" in link["href"]]
    assert owner.page(path).titles() == ["Disk"]


def test_a_deleted_alert_leaves_its_history(alert):
    alert.post({"message": "kept"})
    code = alert.hook.code
    assert "“Backups” deleted" in alert.do("delete").text
    assert names(alert.owner.page("/app/alerts")) == [] and alert.owner.get(alert.path).status_code == 404
    assert in_history(alert.owner)[1] == "kept"
    (row,) = alert.owner.page("/app/notifications").rows()
    assert alert.path not in alert.owner.get(f"/app/notifications/{row}").text
    assert alert.owner.service.client.post(f"/p/{code}", json={}).status_code == 404


def test_the_settings_are_saved(alert):
    assert alert.settings(name=" New ", icon="flame", color="#00FF00", frequency="1h").status_code == 303
    row = alert.row
    assert (row.name, row.icon, row.color.upper(), row.frequency) == ("New", "flame", "#00FF00", "1h")
    assert (row.ignores_quiet_hours, row.urgent_passes_quiet_hours, row.repeats_urgent) == (0, 0, 0)
    assert row.keeps_payload == 1
    for word, columns in [("ignore", (1, 0)), ("urgent", (0, 1)), ("follow", (0, 0))]:
        alert.settings(quiet_hours=word)
        row = alert.row
        assert (row.ignores_quiet_hours, row.urgent_passes_quiet_hours, row.repeats_urgent) == (*columns, 0)
        page = alert.tab("settings")
        assert page.chosen("quiet_hours") == word
    assert (page.value("name"), page.value("icon"), page.chosen("frequency")) == ("Backups", "bell", "instant")


@each("color, ink", [("#757575", "dark"), ("#747474", "light"), ("#FF0000", "dark"), ("#0000FF", "light")])
def test_an_icon_is_drawn_in_what_is_easier_to_read_on_its_colour(color, ink):
    assert page.ink(color) == ink


def test_an_alert_with_an_icon_of_former_times_can_be_changed(alert):
    with transaction(EVERYBODY):
        Alert.update(icon="no-such-icon").execute()
    assert alert.settings(icon="no-such-icon", name="New").status_code == 303
    assert (alert.row.name, alert.row.icon) == ("New", "no-such-icon")
    assert alert.post({"a": 1}).status_code == 200 and "#bell" in alert.owner.get(alert.path).text


def test_settings_that_are_refused_keep_what_was_typed(alert):
    page = Page(alert.settings(name="A new name", frequency="1d", icon="no such icon").text)
    assert (page.value("name"), page.value("icon"), page.chosen("frequency")) == ("A new name", "bell", "1d")


def test_the_address_is_shown_as_a_qr_code(alert, monkeypatch):
    made = []
    monkeypatch.setattr(segno, "make", lambda text, make=segno.make, **more: made.append(text) or make(text, **more))
    assert "QR code with the webhook address" in alert.tab("connect").values()
    assert made == [f"http://localhost/p/{alert.hook.code}"]


def test_a_name_with_direction_marks_does_not_reverse_the_text_around_it(service, owner):
    alert = AlertPage(service, owner, name="ci \u202etxt.exe")
    said = owner.post(f"{alert.path}/delete")
    assert "“\u2068ci \u202etxt.exe\u2069”" in owner.get(said.location).text


# --- hostile texts ------------------------------------------------------------------------------------------


def hostile_pages(service, owner, text):
    alert = AlertPage(service, owner)
    with transaction(EVERYBODY):
        Alert.update(name=text, icon=text, title_template=text, body_template=f"{text} b").execute()
    alert.post({"key " + text.replace("\n", " "): {"x": text}, "title": text})
    found = [alert.page, owner.page("/app/alerts")]
    found.append(Page(owner.post(alert.path, {"title": text, "body": text, "payload": "{" + text}).text))
    found.append(owner.refused("/app/alerts/new", {"name": text + "x" * 100}))
    typed = alert.settings(name=text + "x" * 100, icon=text)
    alert.do("delete")
    return [page.shape for page in [*found, Page(typed.text)]], found


def test_texts_of_alerts_and_payloads_are_shown_escaped(service, owner):
    (harmless, _), *hostile = (hostile_pages(service, owner, one) for one in ("harmless", *TOGETHER))
    for text, (shapes, found) in zip(TOGETHER, hostile, strict=True):
        for tag in ("script", "iframe", "base", "h1", "style"):
            plain = [sum(name == tag for name, _ in shape) for shape in harmless]
            assert [sum(name == tag for name, _ in shape) for shape in shapes] == plain, (text, tag)
        elements = [names_of for shape in shapes for _, names_of in shape]
        odd = [names_of for names_of in elements for name in names_of if name.startswith("on") or name == "style"]
        assert odd == [], text
        focused = [names_of for names_of in elements if "autofocus" in names_of]
        assert all(names_of == ["autofocus", "class", "role", "tabindex"] for names_of in focused), text
        assert found[0].texts_of("h1") == [" ".join(text.split())]
        assert "".join(found[0].texts).count(text) >= 3, text


# --- snippets -----------------------------------------------------------------------------------------------


def snippet(page, id_):
    return "".join(next(e for e in page.elements if e.attributes.get("id") == id_).texts)


def test_every_snippet_works_as_it_is_shown(make_service, receiver, moved_clock):
    service = make_service(BASE_URL=receiver.origin)
    owner = signed_in(service)
    alert, caller = AlertPage(service, owner, "--title", "{{ title }}"), service.caller()
    page, metrics = alert.tab("connect"), owner.page("/app/metrics")
    commands = f"{snippet(page, 'curl')}\n{snippet(metrics, 'metric-curl')}".replace("YOUR-KEY", caller.key)
    subprocess.run(["sh", "-ec", commands], capture_output=True, check=True, timeout=PATIENCE_S)
    exec(snippet(page, "python"), {})
    for got in receiver.got:
        answer = service.client.open(got.path, method=got.method, data=got.body, headers=got.headers)
        assert answer.status_code == 200, answer.text
    assert [one["title"] for one in caller.listed()] == ["MCP - Backup"] * 2 and len(alert.seen) == 2
    assert "Temperature" in owner.page("/app/metrics").text
