"""The pages of alerts: the list, the message and its preview, the last payload, recent requests, settings."""

import http.cookiejar
import json
import re
import shlex
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import ANY
from urllib.parse import urlencode

import pytest
import segno

from core import alerts, message_templates
from models import Alert
from store.alert_payloads import AlertPayload
from store.database import transaction
from store.deliveries import Delivery
from tests.dashboard.test_pages import HOSTILE
from tests.support import pages
from tests.support.pages import EMAIL, PASSWORD, Page, Visitor, account_set, everything, make_account, signed_in
from tests.support.server import serving
from wire.strict_json import parse_event

cheap_passwords, owner, stranger, browser = pages.cheap_passwords, pages.owner, pages.stranger, pages.browser

FOLDER = Path(__file__).parents[3] / "shared" / "payloads"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8")) if FOLDER.is_dir() else {}
MINUTE_S, HOUR_S = 60, 3_600
KEPT_BYTES = 65_536


class AlertPage:
    """An alert with its webhook, and the page its owner has of it."""

    def __init__(self, service, owner, *options, name="Backups"):
        self.hook, self.owner = service.alert(*options, name=name), owner
        self.post = self.hook.post
        self.path = f"/app/alerts/{self.hook.id}"

    @property
    def page(self):
        return self.owner.page(self.path)

    @property
    def row(self):
        return Alert.get(Alert.id == self.path.rpartition("/")[2])

    def preview(self, title="", body="", payload=""):
        sent = {"title": title, "body": body, "payload": payload}
        answer = self.owner.post(f"{self.path}/preview", json.dumps(sent), content_type="application/json")
        told = dict(answer.json)
        return SimpleNamespace(
            status_code=answer.status_code, json=told | {"title": told.get("title", "").removeprefix("MCP - ")}
        )

    def do(self, action, **form):
        """Send one of the page's forms; answers with the page that it leads to."""
        return self.owner.done(f"{self.path}/{action}", form)

    def refused(self, action):
        """Send a form that is refused; answers with the alert's page."""
        assert self.owner.post(f"{self.path}/{action}").location == self.path
        return self.page

    def settings(self, **more):
        form = {"name": "Backups", "icon": "bell", "color": "#3b82f6", "frequency": "instant", "keeps_payload": "1"}
        return self.owner.post(f"{self.path}/settings", form | more)

    @property
    def seen(self):
        """The recent requests, as the page says them."""
        cells = self.page.texts_of("td")
        return cells[::2]

    @property
    def kept(self):
        row = AlertPayload.get_or_none()
        return row and row.payload


@pytest.fixture
def alert(service, owner):
    return AlertPage(service, owner)


def sample(name):
    return (FOLDER / "json" / f"{name}.json").read_bytes()


def shown(page):
    """Title and body of a page's preview."""
    place = next(n for n, e in enumerate(page.elements) if e.attributes.get("id") == "preview")
    found = {name: e for e in page.elements[place:] for name in e.attributes if name in ("data-title", "data-body")}
    return "".join(found["data-title"].texts).removeprefix("MCP - "), "".join(found["data-body"].texts)


def in_history(owner):
    """Title and body of the newest notification."""
    (entry, *_) = owner.service.caller().listed()
    return entry["title"].removeprefix("MCP - "), entry["body"]


# --- the preview --------------------------------------------------------------------------------------------


@pytest.mark.skipif(not EXPECTED, reason="no payloads")
@pytest.mark.parametrize("name", EXPECTED)
def test_the_preview_is_what_is_delivered(service, owner, name):
    """By the page's script and by the page itself, before and after the templates are saved."""
    title, body = EXPECTED[name]["title_template"], EXPECTED[name]["body_template"]
    expected = EXPECTED[name]["expected_title"].replace("{alert name}", "Backups"), EXPECTED[name]["expected_body"]
    alert, payload = AlertPage(service, owner), sample(name)
    the_preview_without_templates_is_what_is_delivered(alert, payload)
    pasted = alert.preview(title, body, payload.decode("utf-8-sig")).json
    assert (pasted["title"], pasted["body"], pasted["error"]) == (*expected, "")
    if len(payload) <= KEPT_BYTES:
        of_the_last = alert.preview(title, body).json
        assert (of_the_last["title"], of_the_last["body"]) == expected
    alert.owner.done(alert.path, {"title": title, "body": body})
    if len(payload) <= KEPT_BYTES:
        assert shown(alert.page) == expected
    alert.post(data=payload)
    assert in_history(owner) == expected


def the_preview_without_templates_is_what_is_delivered(alert, payload):
    pasted = alert.preview(payload=payload.decode("utf-8-sig")).json
    assert alert.post(data=payload).status_code == 200
    assert (pasted["title"], pasted["body"]) == in_history(alert.owner)
    if len(payload) <= KEPT_BYTES:
        assert shown(alert.page) == in_history(alert.owner)


def test_the_preview_uses_the_time_zone_of_the_account(service, alert):
    account_set(service, "--timezone", "Asia/Tokyo")
    assert alert.preview('{{ at | date: "%H:%M" }}', "", '{"at": 0}').json["title"] == "09:00"


def test_the_preview_shows_numbers_with_the_digits_that_came(alert):
    alert.post(data='{"cost": 9.90, "id": 12345678901234567890123, "tiny": 1E-5}')
    template = "{{ cost }} {{ id }} {{ tiny }}"
    assert in_history(alert.owner)[1] == '{"cost":9.90,"id":12345678901234567890123,"tiny":1E-5}'
    assert alert.preview(template).json["title"] == "9.90 12345678901234567890123 1E-5"


def test_the_preview_shows_the_payload_that_was_pasted(alert):
    alert.post({"a": "last"})
    assert alert.preview("{{ a }}", "", '{"a": "pasted"}').json["title"] == "pasted"
    page = Page(alert.owner.post(alert.path, {"title": "{{ a }}", "payload": '{"a": "pasted"}', "preview": "1"}).text)
    assert shown(page)[0] == "pasted"


@pytest.mark.parametrize("payload", ["[1]", "{", "nonsense", '"x"', "{'a': 1}", '{"a": NaN}', '{"a": 1e400}'])
def test_pasted_json_that_is_none_is_refused_with_a_sentence(alert, payload):
    by_script = alert.preview("x", "y", payload)
    assert by_script.status_code in (200, 400, 422) and by_script.json["error"].endswith(".")
    for button in ("preview", "test"):
        page = alert.owner.refused(alert.path, {"title": "{{ a }}", "body": "typed", "payload": payload, button: "1"})
        assert page.said("alert") == [by_script.json["error"]]
        assert page.texts_of("textarea", id="title") == ["{{ a }}"] and page.texts_of("textarea", id="payload") == [
            " ".join(payload.split())
        ]


@pytest.mark.parametrize("sent", ["[]", "{", '{"title": 1}', '{"payload": {}}', ""])
def test_a_preview_that_is_asked_for_wrongly_is_refused(alert, sent):
    answer = alert.owner.post(f"{alert.path}/preview", sent, content_type="application/json")
    assert answer.status_code == 400 and answer.json["error"].endswith(".")


@pytest.mark.parametrize("field", ["title", "body"])
def test_an_unknown_filter_is_refused_by_its_name(alert, field):
    draft = {"title": "t", "body": "b", field: "{{ a | shout }}"}
    by_script = alert.preview(**draft).json
    assert "shout" in by_script["error"] and by_script["error"].endswith(".")
    before = everything()
    for button in ({}, {"test": "1"}):
        page = alert.owner.refused(alert.path, draft | button)
        assert by_script["error"] in page.said("alert") and page.texts_of("textarea", id=field) == ["{{ a | shout }}"]
    assert everything() == before


WARNED = [
    ("{{ title", "{{ title is shown as it is written: it has no }}."),
    ("{{ a | truncate }}", "{{ a | truncate }} is shown as it is written: truncate takes a number of characters"),
    ("{% if a %}", "{% if a %} is shown as it is written: there are no tags"),
]


@pytest.mark.parametrize("field", ["title", "body"])
@pytest.mark.parametrize("text, warning", WARNED)
def test_what_a_template_never_fills_is_saved_with_a_warning(alert, field, text, warning):
    page = alert.owner.done(alert.path, {"title": "t", "body": "b", field: f"a {text}"})
    said = page.said("status")
    assert said[0].startswith("Saved, but “") and warning.partition(" is shown")[0] in said[0]
    assert warning.partition(": ")[2] in said[0] and said[0].endswith(".")
    assert getattr(alert.row, f"{field}_template") == f"a {text}"
    assert any(line.startswith(warning) for line in alert.page.texts_of("li"))  # at later visits, too


def test_several_of_them_are_counted_where_it_says_saved(alert):
    page = alert.owner.done(alert.path, {"title": "{{ a", "body": "{{ }} {% x %}"})
    assert page.said("status")[0].endswith("it has no }}. The preview names 2 more.")


def test_a_template_in_order_is_saved_without_a_warning(alert):
    page = alert.owner.done(alert.path, {"title": "{{ a }}", "body": "{ b } 50 %"})
    assert page.said("status")[0] == "Saved. The next event is shown like this."


def test_the_preview_says_why_a_filter_cannot_apply(alert):
    alert.post({"name": "disk", "load": "high", "many": ["a"]})
    draft = {
        "title": "{{ name | round }} {{ many | join }}",
        "body": '{{ load | date: "%H" }} {{ load | default: nobody }}',
    }
    told = alert.preview(**draft).json["unfilled"]
    assert told == [
        ["{{ name | round }}", "round needs a number."],
        ['{{ load | date: "%H" }}', "date needs a time: Unix seconds, milliseconds or ISO 8601."],
        ["{{ load | default: nobody }}", 'default takes what to show instead, at last a text, as in default: "n/a".'],
    ]
    page = Page(alert.owner.post(alert.path, {**draft, "preview": "1"}).text)
    assert [f"{text} is shown as it is written: {why}" for text, why in told] == [
        line for line in page.texts_of("li") if "as it is written" in line
    ]


def test_without_a_request_the_preview_says_only_what_no_request_can_fill(alert):
    assert alert.preview("{{ a | round }} {{ }}").json["unfilled"] == [["{{ }}", "it names no variable."]]


@pytest.mark.parametrize("field, longest", [("title", 1000), ("body", 10_000)])
def test_a_template_that_is_too_long_is_refused(alert, field, longest):
    draft = {"title": "t", "body": "b", field: "x" * (longest + 1)}
    assert str(longest) in alert.preview(**draft).json["error"]
    assert str(longest) in alert.owner.refused(alert.path, draft).said("alert")[0]
    alert.owner.done(alert.path, draft | {field: "x" * longest})


def test_a_draft_is_not_saved_by_looking_at_it(alert):
    alert.post({"a": 1})
    before = everything()
    alert.preview("{{ a }}", "new", '{"a": 2}')
    alert.owner.post(alert.path, {"title": "{{ a }}", "body": "new", "payload": '{"a": 2}', "preview": "1"})
    assert everything() == before


def test_templates_are_saved_as_they_were_typed(alert):
    alert.owner.done(alert.path, {"title": "{{ a }}", "body": " first\r\n\r\nsecond "})
    assert (alert.row.title_template, alert.row.body_template) == ("{{ a }}", " first\n\nsecond ")
    alert.owner.done(alert.path, {"title": "", "body": " \r\n"})
    assert (alert.row.title_template, alert.row.body_template) == (None, None)


def test_a_test_sends_the_draft_to_all_devices_and_saves_nothing(service, alert, push_service, browser):
    second = push_service.browser()
    assert alert.owner.enable(second).status_code == 201
    account_set(service, "--quiet-hours", "09:00-11:00")
    form = {"title": "{{ a }}", "body": "b", "payload": '{"a": "tried"}', "test": "1"}
    page = Page(alert.owner.post(alert.path, form).text)
    assert page.said("status")[0] == "Sent, and delivered: it is in the history."
    assert page.texts_of("textarea", id="title") == ["{{ a }}"]
    assert [len(one.messages) for one in (browser, second)] == [1, 1]
    assert (alert.row.title_template, alert.kept, alert.row.notification_count) == (None, None, 0)


def test_a_test_without_a_device_says_that_it_is_stored(alert):
    page = Page(alert.owner.post(alert.path, {"title": "a", "body": "b", "test": "1"}).text)
    assert page.said("status")[0] == "There is no device to send it to: it is in the history alone."


# --- what is missing ----------------------------------------------------------------------------------------

PAYLOAD = {
    "repository": {"full_name": "a/b", "html_url": "u"},
    "alerts": [{"labels": {"alertname": "x", "severity": "y"}}],
    "monitor": {"name": "n"},
}


@pytest.mark.parametrize(
    "written, meant",
    [
        ("repository.fullname", "repository.full_name"),
        ("repository.full_nam", "repository.full_name"),
        ("repositry.full_name", "repository.full_name"),
        ("full_name", "repository.full_name"),
        ("data.repository.full_name", "repository.full_name"),
        ("alerts.0.label.severity", "alerts.0.labels.severity"),
        ("alerts.labels.severity", "alerts.0.labels.severity"),
        ("severity", "alerts.0.labels.severity"),
        ("Monitor.Name", "monitor.name"),
        ("zzz", None),
        ("quux.quuux", None),
    ],
)
def test_what_was_probably_meant_is_said(alert, written, meant):
    alert.post(PAYLOAD)
    assert alert.preview(f"{{{{ {written} }}}}").json["meant"] == {written: meant}
    alert.owner.done(alert.path, {"title": f"{{{{ {written} }}}}"})
    said = [text for text in alert.page.texts_of("li") if "is not in what came" in text]
    assert said == [f"{written} is not in what came." + (f" Did you mean {meant}?" if meant else "")]


def test_however_many_are_missing_each_is_said(alert):
    alert.post({"alertname": "x"})
    made = alert.preview("".join(f"{{{{ missing{n:02} }}}}" for n in range(30)), "{{ alertnam }}").json["meant"]
    assert made == {f"missing{n:02}": None for n in range(30)} | {"alertnam": "alertname"}


def test_what_is_there_is_not_said_to_be_missing(alert):
    alert.post(PAYLOAD)
    assert alert.preview("{{ monitor.name }}", '{{ x | default: "" }}').json["meant"] == {}


def test_before_anything_came_nothing_is_said_to_be_missing(alert):
    alert.owner.done(alert.path, {"title": "{{ a }}"})
    assert "is not in what came" not in alert.page.text


@pytest.mark.parametrize("many, longer", [(590, ""), (3, "x" * 180)], ids=["many", "long"])
def test_a_draft_with_very_many_variables_or_long_ones_is_previewed_soon(alert, many, longer):
    alert.post({f"some_key_{longer}{n}": n for n in range(300)})
    body = "".join(f"{{{{some_kye_{longer}{n}}}}}" for n in range(many))[:10_000]
    began = time.monotonic()
    assert alert.preview("", body).status_code == 200
    assert time.monotonic() - began < 2


def test_before_anything_came_a_text_without_template_is_empty(alert):
    assert alert.preview("", "").json["body"] == ""
    assert shown(alert.page)[1] == ""


# --- paths of a payload -------------------------------------------------------------------------------------

ODD_KEYS = ["a.b", "a-b", "a b", "ü", "0", "a.b.c", "🔥", "$ref", "a[0]", "a:b", "'", '"', "#", "<b>", "a\tb", "a..b"]
HARD_KEYS = ["{", "}", "a|b", "a\nb", " a", "a ", "", "{{ x }}", "a\rb", "\u2028a\u2028b", "\x85x", "x\x85"]


def misses(payload):
    return [
        path
        for path in message_templates.paths(payload)
        if message_templates.fill(f"{{{{ {path} }}}}", payload, 10).missing
    ]


@pytest.mark.parametrize("key", ODD_KEYS + HARD_KEYS)
def test_every_path_that_is_offered_works(key):
    other = {"x": 1, key: {key: [{key: 2}, 3]}, f"{key}.x": {"y": None}, "list": [[1], {key: 1}]}
    assert misses(other) == []


@pytest.mark.skipif(not EXPECTED, reason="no payloads")
@pytest.mark.parametrize("name", EXPECTED)
def test_every_path_that_is_offered_of_a_senders_payload_works(name):
    payload = parse_event(sample(name))
    assert misses(payload) == [] and 0 < len(message_templates.paths(payload)) <= 300


@pytest.mark.parametrize("key", ODD_KEYS)
def test_a_key_with_dots_hyphens_or_spaces_is_offered_as_it_is(key):
    assert message_templates.paths({key: {"x": 1}}) == [key, f"{key}.x"]


@pytest.mark.parametrize("key", ["{", "}", "a|b", "a\nb", "a\rb"])
def test_a_key_that_no_template_can_hold_is_left_out(key):
    assert message_templates.paths({key: {"x": 1}, "fine": 1}) == ["fine"]


def test_each_path_is_offered_with_what_a_template_would_show_for_it(alert):
    payload = {"z": 9.9, "a": {"b.c": "of a"}, "a.b": {"c": "of a.b"}, "long": "x" * 100, "none": None}
    alert.post(data=json.dumps(payload).replace("9.9", "9.90"))
    expected = {
        "z": "9.90",
        "a": '{"b.c":"of a"}',
        "a.b": '{"c":"of a.b"}',
        "long": "x" * 59 + "…",
        "none": "",
        "a.b.c": "of a.b",
    }
    assert list(alert.preview("").json["values"].items()) == list(expected.items())
    assert alert.preview("", "", '{"pasted": 1}').json["values"] == {"pasted": "1"}
    (listed,) = alert.page.texts_of("ul", **{"class": "plain paths"})
    assert listed == " ".join(f"{path} {value}".strip() for path, value in expected.items())


def test_of_a_list_the_first_two_are_offered():
    assert message_templates.paths({"a": [{"b": 1}, 2, 3]}) == ["a", "a.0", "a.1", "a.0.b"]


def nested(depth):
    return json.loads('{"a":' * depth + "1" + "}" * depth)


@pytest.mark.parametrize(
    "payload",
    [
        {f"k{n}": n for n in range(100_000)},
        {"k" * 900_000: {"x": 1}},
        {"{" * 10 + str(n): n for n in range(50_000)},
        {f"k{n}": {f"m{m}": m for m in range(300)} for n in range(300)},
        {"a": [[[list(range(1000))] * 10] * 10] * 10},
        nested(64),
        {"k" * 190: {"x" * 9: {"y": {}}}},
        {" " * 100_000 + "x": 1, "x" + " " * 100_000: 1, " " * 100_000: 2},
    ],
    ids=range(8),
)
def test_the_paths_of_a_hostile_payload_are_few_and_found_fast(payload):
    began = time.monotonic()
    found = message_templates.paths(payload)
    assert time.monotonic() - began < 1
    assert len(found) <= 300 and all(len(path) <= 200 for path in found)


# --- the last payload ---------------------------------------------------------------------------------------

DIGITS = '{"a":9.90,"b":1E5,"c":-0,"d":12345678901234567890123456789,"e":1.0e-7,"f":"ü🔥","g":[true,null,{}]}'


def test_the_last_payload_is_kept_digit_for_digit(alert):
    alert.post({"before": 1})
    alert.post(data=DIGITS)
    assert alert.kept == DIGITS


def test_the_last_payload_is_shown_digit_for_digit(alert):
    alert.post(data=DIGITS)
    (text,) = [text for text in alert.page.texts_of("code") if "ü🔥" in text]
    assert re.sub(r"\s", "", text) == DIGITS


def test_the_last_payload_of_a_form_is_kept_as_the_json_in_it(alert):
    form = urlencode({"payload": '{"a": "ü & 9.90"}'})
    assert alert.post(data=form, headers={"Content-Type": "application/x-www-form-urlencoded"}).status_code == 200
    assert alert.kept == '{"a":"ü & 9.90"}'


def test_what_cannot_be_stored_is_kept_as_it_was_delivered(alert):
    alert.post(data='{"a": "x\\u0000y\\ud800z"}')
    assert alert.kept == '{"a":"x\ufffdy\ufffdz"}' and shown(alert.page) == in_history(alert.owner)


@pytest.mark.parametrize("character", ["x", "ü", "🔥"])
def test_a_payload_of_64_kb_is_kept_and_a_larger_one_not(alert, character):
    room = KEPT_BYTES - len('{"a":""}')
    fits = character * (room // len(character.encode()))
    alert.post({"a": fits})
    assert alert.kept == f'{{"a":"{fits}"}}'
    alert.post({"a": fits + character})
    assert (alert.kept, AlertPayload.select().count()) == (None, 1)
    page = alert.page
    assert "more than 64 KB" in page.text and "x" * 100 not in page.text
    assert not page.forms("/replay")


def test_a_payload_that_was_refused_replaces_nothing(alert):
    alert.post({"a": 1})
    assert alert.post(data='{"a": 1e400}').status_code == 400
    assert alert.kept == '{"a":1}'


def test_a_payload_that_made_no_notification_is_not_kept(alert):
    alert.do("switch", on="0")
    alert.post({"a": 1})
    assert alert.kept is None


def test_a_payload_is_forgotten_on_demand(alert):
    alert.post({"a": "secret"})
    page = alert.do("forget")
    assert "forgotten" in page.text and "secret" not in page.section("Message") and AlertPayload.select().count() == 0


def test_a_payload_is_not_kept_when_its_owner_does_not_want_it(alert):
    alert.post({"a": 1})
    form = {"name": "x", "icon": "bell", "color": "#3b82f6", "frequency": "instant"}
    alert.owner.done(f"{alert.path}/settings", form)
    assert AlertPayload.select().count() == 0
    assert alert.post({"a": 2}).status_code == 200
    assert AlertPayload.select().count() == 0
    alert.owner.done(f"{alert.path}/settings", form | {"keeps_payload": "1"})
    alert.post({"a": 3})
    assert alert.kept == '{"a":3}'


def test_a_payload_goes_with_its_alert(alert):
    alert.post({"a": 1})
    alert.do("delete")
    assert AlertPayload.select().count() == 0


def test_a_payload_is_in_no_log(alert, caplog):
    caplog.set_level(0)
    alert.post({"a": "topsecret"})
    alert.preview("{{ a }}", "", '{"a": "topsecret", }')
    alert.preview("{{ a }}")
    alert.do("replay")
    alert.post(data='{"a": "topsecret" broken')
    assert "topsecret" not in caplog.text


def test_each_alert_keeps_its_own_payload(service, owner):
    first, second = AlertPage(service, owner, name="A"), AlertPage(service, owner, name="B")
    first.post({"a": "of the first"})
    second.post({"a": "of the second"})
    assert "of the first" in first.page.section("Message") and "of the first" not in second.page.section("Message")


def test_a_payload_is_in_a_backup(service, alert, tmp_path):
    alert.post({"a": 1})
    done = service.flask("backup", tmp_path / "copy.db")
    assert done.exit_code == 0, done.output
    assert sqlite3.connect(tmp_path / "copy.db").execute("SELECT payload FROM alert_payload").fetchall() == [
        ('{"a":1}',)
    ]


# --- sending it again ---------------------------------------------------------------------------------------


def test_the_last_payload_is_sent_again_with_the_templates_as_they_are_now(service, alert, browser):
    alert.post(data='{"cost": 9.90}')
    alert.owner.done(alert.path, {"title": "Paid {{ cost }}", "body": "now"})
    page = alert.do("replay")
    assert page.texts_of("h1") == ["MCP - Paid 9.90"] and in_history(alert.owner) == ("Paid 9.90", "now")
    assert len(browser.messages) == 2 and alert.row.notification_count == 2
    assert service.caller().get("/stats").json["stats"]["totalNotificationsAllTime"] == 2
    assert alert.kept is not None


def test_what_is_sent_again_is_held_by_quiet_hours(service, alert, browser):
    alert.post({"a": 1})
    account_set(service, "--quiet-hours", "09:00-11:00")
    assert "held" in alert.do("replay").text and len(browser.messages) == 1


def test_an_alert_that_is_off_sends_nothing_again(alert):
    alert.post({"a": 1})
    alert.do("switch", on="0")
    page = alert.refused("replay")
    assert page.said("alert") == ["The alert is off: switch it on first."] and alert.row.notification_count == 1


def test_the_last_payload_is_sent_again_even_if_the_address_changes_meanwhile(alert, monkeypatch):
    alert.post({"title": "again"})
    rendered = alerts.rendered

    def rendered_while_rotated(*args):
        alerts.rotate_code(1, alert.row.id)
        return rendered(*args)

    monkeypatch.setattr(alerts, "rendered", rendered_while_rotated)
    alert.do("replay")
    assert alert.row.notification_count == 2


def test_what_is_not_kept_is_not_sent_again(alert):
    assert alert.refused("replay").said("alert") == ["No request is kept to send again."]
    alert.post({"a": "x" * KEPT_BYTES})
    assert alert.refused("replay").said("alert") == ["No request is kept to send again."]


# --- recent requests ----------------------------------------------------------------------------------------


def test_recent_requests_are_shown_with_their_answers_newest_first(make_service, push_service, moved_clock):
    service = make_service(WEBPUSH_HOSTS=push_service.origin, MAX_BODY_BYTES="1024")
    alert = AlertPage(service, signed_in(service))
    assert "None since" in alert.page.section("Recent requests")
    alert.post({"a": 1})
    alert.owner.enable(push_service.browser())
    alert.post({"a": 1})
    account_set(service, "--quiet-hours", "09:00-11:00")
    alert.post({"a": 1})
    alert.do("switch", on="0")
    alert.post({"a": 1})
    alert.do("switch", on="1")
    sentence = alert.post(data="[1]").json["error"]
    assert alert.post({"a": "x" * 2000}).status_code == 413
    taken = ["200 inactive", "200 held", "200 delivered", "200 stored, no device"]
    assert alert.seen == [ANY, f"400 {sentence}", *taken]
    assert alert.seen[0].startswith("413 ") and alert.seen[0].endswith(".")


def test_a_request_beyond_60_a_minute_is_shown_with_the_reason_and_equal_ones_as_one(alert):
    for _ in range(60):
        assert alert.post({"a": 1}).status_code == 200
    for _ in range(7):
        assert alert.post({"a": 1}).status_code == 429
    assert alert.seen == ["429 more than 60 a minute (7 times)", *["200 stored, no device"] * 29]


def test_a_request_beyond_the_limit_of_all_alerts_is_shown_with_the_reason(make_service, moved_clock):
    service = make_service(INGEST_PER_MINUTE="2")
    alert = AlertPage(service, signed_in(service))
    for _ in range(3):
        alert.post({"a": 1})
    assert alert.seen == ["429 too many for all alerts together", *["200 stored, no device"] * 2]


def test_the_sender_is_not_told_the_reason(alert):
    for _ in range(60):
        alert.post({"a": 1})
    assert alert.post({"a": 1}).json["error"] == "Rate limit exceeded"


def test_refusals_with_others_between_are_not_put_together(alert):
    for body in ("[1]", "[1]", '{"a": 1}', "[1]", "{"):
        alert.post(data=body)
    assert [seen[:3] for seen in alert.seen] == ["400", "400", "200", "400"] and alert.seen[3].endswith("(2 times)")


def test_equal_refusals_count_as_one_with_the_time_of_the_last(alert, moved_clock):
    alert.post(data="[1]")
    moved_clock.advance(2 * HOUR_S)
    alert.post(data="[1]")
    moved_clock.advance(10 * MINUTE_S)
    assert "(2 times)10 min ago" in alert.page.section("Recent requests")


def test_recent_requests_hold_nothing_of_a_payload(alert):
    bodies = ('{"a": "topsecret" x', '{"topsecret": NaN}', '{"topsecret": 1e400}', "payload=topsecret", "topsecret")
    assert [alert.post(data=body).status_code for body in bodies] == [400] * 5
    assert "topsecret" not in alert.page.text and len(alert.seen) >= 4


def test_recent_requests_of_one_alert_are_not_another_ones(service, alert):
    alert.post({"a": 1})
    assert AlertPage(service, alert.owner, name="Other").seen == []


# --- the list -----------------------------------------------------------------------------------------------


def names(owner):
    return owner.page("/app/alerts").texts_of("strong")


def test_alerts_that_need_a_look_come_first_and_those_that_are_off_last(service, owner, browser):
    for name in ("A off", "B fine", "C failing", "D paused", "E misses", "F fine"):
        AlertPage(service, owner, name=name)
    ids = {one.name: one for one in Alert.select()}
    with transaction():
        Alert.update(is_active=0).where(Alert.name == "A off").execute()
        Alert.update(is_active=0, paused_at=1_795_255_200_000).where(Alert.name == "D paused").execute()
        ids["E misses"].title_template = "{{ nothing }}"
        ids["E misses"].save()
    send = {one.name: one.short_code for one in Alert.select()}
    service.client.post(f"/p/{send['E misses']}", json={"a": 1})
    browser.then(410)
    service.client.post(f"/p/{send['C failing']}", json={"a": 1})
    found = names(owner)
    assert set(found[:3]) == {"C failing", "D paused", "E misses"} and found[-1] == "A off"
    assert set(found[:2]) == {"C failing", "D paused"}, "failing and paused before what is merely missing"
    page = owner.page("/app/alerts")
    assert "paused today 10:00: too many requests" in page.section("D paused")
    assert "the last one failed" in page.section("C failing") and "1 missing" in page.section("E misses")
    assert "off" in page.section("A off") and "waiting for the first request" in page.section("B fine")


def test_an_alert_that_works_again_is_no_trouble(service, alert):
    alert.post({"a": 1})
    with transaction():
        Delivery.update(status="failed").execute()
    alert.post({"a": 1})
    assert "failed" not in alert.owner.page("/app/alerts").main


def test_an_alert_is_switched_off_and_on(alert):
    page = alert.do("switch", on="0")
    assert "off" in page.texts_of("span", **{"class": "badge soon"}) and not alert.row.is_active
    assert alert.post({"a": 1}).json == {"ok": True, "status": "inactive"}
    assert "on" in alert.do("switch", on="1").texts_of("span", **{"class": "badge good"})
    assert alert.post({"a": 1}).json["status"] == "delivered"


def test_a_paused_alert_is_switched_on_again(alert):
    with transaction():
        Alert.update(is_active=0, paused_at=1).execute()
    assert "paused: too many requests" in alert.page.text
    assert "paused" not in alert.do("switch", on="1").main and alert.row.paused_at is None


def test_a_new_address_ends_the_old_one(alert):
    old = alert.hook.code
    alert.post({"a": 1})
    page = alert.do("rotate")
    (address,) = page.texts_of("code", id="address")
    new = address.rpartition("/")[2]
    assert new != old and old not in page.text and address == f"http://localhost/p/{new}"
    post = alert.owner.service.client.post
    assert post(f"/p/{old}", json={}).status_code == 404 and post(f"/p/{new}", json={}).status_code == 200


def test_a_deleted_alert_leaves_its_history(alert):
    alert.post({"message": "kept"})
    code = alert.hook.code
    assert "is deleted" in alert.do("delete").text
    assert names(alert.owner) == [] and alert.owner.get(alert.path).status_code == 404
    assert in_history(alert.owner)[1] == "kept"
    (row,) = alert.owner.page("/app/notifications").rows()
    assert alert.path not in alert.owner.get(f"/app/notifications/{row}").text
    assert alert.owner.service.client.post(f"/p/{code}", json={}).status_code == 404


def test_the_settings_are_saved(alert):
    assert alert.settings(name=" New ", icon="flame", color="#00FF00", frequency="1h").status_code == 303
    row = alert.row
    assert (row.name, row.icon, row.color.upper(), row.frequency) == ("New", "flame", "#00FF00", "1h")
    assert (row.ignores_quiet_hours, row.keeps_payload) == (0, 1)
    alert.settings(ignores_quiet_hours="1", keeps_payload="")
    assert alert.row.ignores_quiet_hours == 1
    page = alert.page
    assert (page.value("name"), page.value("icon"), page.chosen("frequency")) == ("Backups", "bell", "instant")


WRONG_SETTINGS = [
    {"name": ""},
    {"name": " "},
    {"name": "x" * 101},
    {"name": "a\0b"},
    {"icon": "no such icon"},
    {"icon": ""},
    {"icon": "../x"},
    {"color": "red"},
    {"color": "#12345"},
    {"color": "#12345g"},
    {"color": '#123456"'},
    {"frequency": "2h"},
    {"frequency": ""},
]


@pytest.mark.parametrize("wrong", WRONG_SETTINGS, ids=str)
def test_settings_that_are_wrong_are_refused_with_a_sentence(alert, wrong):
    before = everything()
    answer = alert.settings(**wrong)
    (said,) = Page(answer.text).said("alert")
    assert answer.status_code == 422 and said.endswith(".") and everything() == before


def test_an_unknown_icon_is_refused_with_names_that_there_are(alert):
    (said,) = Page(alert.settings(icon="harddrive").text).said("alert")
    assert "harddrive" in said and "hard-drive" in said


def test_an_alert_with_an_icon_of_former_times_can_be_changed(alert):
    with transaction():
        Alert.update(icon="no-such-icon").execute()
    assert alert.settings(icon="no-such-icon", name="New").status_code == 303
    assert (alert.row.name, alert.row.icon) == ("New", "no-such-icon")
    assert alert.post({"a": 1}).status_code == 200 and "#bell" in alert.owner.get(alert.path).text


def test_settings_that_are_refused_keep_what_was_typed(alert):
    page = Page(alert.settings(name="A new name", frequency="1d", icon="no such icon").text)
    assert (page.value("name"), page.value("icon"), page.chosen("frequency")) == ("A new name", "no such icon", "1d")


def test_the_address_is_shown_as_a_qr_code(alert, monkeypatch):
    made = []
    monkeypatch.setattr(segno, "make", lambda text, make=segno.make, **more: made.append(text) or make(text, **more))
    answer = alert.owner.get(f"{alert.path}/qr.svg")
    assert (answer.status_code, answer.mimetype) == (200, "image/svg+xml")
    assert made == [f"http://localhost/p/{alert.hook.code}"]


GETS = ["", "/qr.svg"]
POSTS = ["", "/preview", "/replay", "/preset", "/settings", "/switch", "/rotate", "/delete", "/forget"]


def test_another_accounts_alert_is_as_good_as_unknown(alert, stranger):
    alert.post({"a": "secret"})
    before, unknown = everything(), "/app/alerts/" + "0" * 32
    for ending in GETS:
        foreign, none = (stranger.get(path + ending) for path in (alert.path, unknown))
        assert (foreign.status_code, foreign.text) == (404, none.text), ending
    for ending in POSTS:
        body = "{}" if ending == "/preview" else {"preset": "grafana"}
        foreign, none = (stranger.post(path + ending, body) for path in (alert.path, unknown))
        assert (foreign.status_code, foreign.text) == (404, none.text), ending
    assert everything() == before and names(stranger) == []


def test_a_name_turns_nothing_around_in_what_is_said_of_it(service, owner):
    alert = AlertPage(service, owner, name="ci \u202etxt.exe")
    said = owner.post(f"{alert.path}/delete")
    assert "“\u2068ci \u202etxt.exe\u2069”" in owner.get(said.location).text


# --- hostile texts ------------------------------------------------------------------------------------------


def hostile_pages(service, owner, text):
    alert = AlertPage(service, owner)
    with transaction():
        Alert.update(name=text, icon=text, title_template=text, body_template=f"{text} b").execute()
    alert.post({"key " + text.replace("\n", " "): {"x": text}, "title": text})
    found = [alert.page, owner.page("/app/alerts")]
    found.append(Page(owner.post(alert.path, {"title": text, "body": text, "payload": "{" + text}).text))
    found.append(owner.refused("/app/alerts/new", {"name": text + "x" * 100}))
    typed = alert.settings(name=text + "x" * 100, icon=text)
    alert.do("delete")
    return [page.shape for page in [*found, Page(typed.text)]], found


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_written_in_alerts_and_payloads_is_shown_as_it_is(service, owner, text):
    (shapes, found), (harmless, _) = (hostile_pages(service, owner, one) for one in (text, "harmless"))
    for tag in ("script", "iframe", "base", "h1", "style"):
        plain = [sum(name == tag for name, _ in shape) for shape in harmless]
        assert [sum(name == tag for name, _ in shape) for shape in shapes] == plain, tag
    elements = [names_of for shape in shapes for _, names_of in shape]
    assert not [names_of for names_of in elements for name in names_of if name.startswith("on") or name == "style"]
    focused = [names_of for names_of in elements if "autofocus" in names_of]
    assert all(names_of == ["autofocus", "class", "role", "tabindex"] for names_of in focused)
    assert found[0].texts_of("h1") == [" ".join(text.split())]
    assert "".join(found[0].texts).count(text) >= 3


# --- snippets -----------------------------------------------------------------------------------------------


def snippet(page, id_):
    return "".join(next(e for e in page.elements if e.attributes.get("id") == id_).texts)


class Remote:
    """A browser that speaks with a server over HTTP."""

    def __init__(self, server):
        self.base = f"http://127.0.0.1:{server.port}"
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(jar)

    def open(self, path, **form):
        data = urlencode(form).encode() if form else None
        asked = urllib.request.Request(self.base + path, data, {"Origin": self.base})
        return Page(self.opener.open(asked, timeout=15).read().decode())

    def sign_in(self):
        token = self.open("/app/login").value("csrf")
        self.open("/app/login", email=EMAIL, password=PASSWORD, csrf=token)
        return self


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_snippet_works_as_it_is_shown(tmp_path):
    with serving(tmp_path / "data") as server:
        server.wait_until_ready()
        subprocess.run(
            [Path(sys.executable).parent / "flask", "account", "create", EMAIL, "--password-stdin"],
            input=PASSWORD, text=True, env=server.environ, check=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        key = server.flask("key", "create", EMAIL, "test").strip()
        server.flask("alert", "create", EMAIL, "Backups", "--title", "{{ title }}")
        remote = Remote(server).sign_in()
        (path,) = [a["href"] for a in remote.open("/app/alerts").all("a") if a.get("class") == "row"]
        page = remote.open(path)
        shell = shlex.split(snippet(page, "curl"))
        assert shell[0] == "curl"
        assert json.loads(run(["curl", "-s", *shell[1:]]))["status"] == "delivered"
        run([sys.executable, "-c", snippet(page, "python")])
        metric = snippet(remote.open("/app/metrics"), "metric-curl").replace("YOUR-KEY", key)
        said = run(["sh", "-c", metric.replace("curl ", "curl -s -w '\\n%{http_code}' ", 1)])
        assert said.splitlines()[-1] == "200", said
        assert "Temperature" in remote.open("/app/metrics").text
        assert "200 stored, no device" in remote.open(path).text
        listed = json.loads(server.get("/api/v1/notifications", key).text)["notifications"]
        assert [one["title"] for one in listed] == ["MCP - Backup"] * 2


def test_snippets_hold_the_public_address(make_service, moved_clock):
    service = make_service(BASE_URL="https://bell.example.org")
    make_account(service)
    owner = Visitor(service)
    owner.sign_in()
    alert = AlertPage(service, owner)
    address = f"https://bell.example.org/p/{alert.hook.code}"
    assert address in snippet(alert.page, "curl") and address in snippet(alert.page, "python")
