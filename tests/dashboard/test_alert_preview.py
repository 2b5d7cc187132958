"""The message of an alert: its preview, what is missing in a payload, which paths a payload offers."""

import json

import pytest

from core import message_templates, presets
from core.template_lint import NO_TEXT_AT_THE_END
from tests.support.accounts import account_set
from tests.support.alert_page import KEPT_BYTES, in_history, preview_of, told_of, values_of
from tests.support.pages import Page
from tests.support.payloads import EXPECTED, sample
from tests.support.rows import each
from tests.support.tables import everything
from tests.support.times import at_little_cost
from wire.strict_json import parse_event

# --- the preview --------------------------------------------------------------------------------------------


PREVIEWED = (  # payloads that differ in size, characters, digits, line breaks, filters and what is missing
    *("alertmanager-400-alerts-183KB", "alertmanager-disk-group", "apprise-json-notitle", "apprise-signal"),
    *("aws-sns-alarm", "github-issues-opened", "prometheus-targetdown", "uptimekuma-down", "wazuh-dpkg"),
)


@pytest.mark.skipif(not EXPECTED, reason="no payloads")
@each("name", PREVIEWED)
def test_the_preview_is_what_is_delivered(alert, name):
    """That each payload is delivered as expected with templates is told where webhooks are."""
    data, wanted = sample(name), EXPECTED[name]
    templates, payload = (wanted["title_template"], wanted["body_template"]), data.decode()
    expected = wanted["expected_title"].replace("{alert name}", "Backups"), wanted["expected_body"]
    without = alert.preview(payload=payload)
    assert alert.post(data=data).status_code == 200
    assert (without["title"], without["body"]) == in_history(alert.owner)
    for told in (alert.preview(*templates, payload), alert.preview(*templates))[: 1 + (len(data) <= KEPT_BYTES)]:
        assert (told["title"], told["body"], told["error"]) == (*expected, "")


def test_the_preview_uses_the_time_zone_of_the_account(alert):
    account_set("--timezone", "Asia/Tokyo")
    assert alert.preview('{{ at | date: "%H:%M" }}', "", '{"at": 0}')["title"] == "09:00"


@each("title, said", [("{{ a }}", "Saved. New notifications will look like this."), ("{{ a }} {{ b", "Saved, but")])
def test_saving_keeps_the_payload_that_was_pasted_and_its_preview(alert, title, said):
    answer = alert.owner.post(alert.path, {"title": title, "payload": '{"a": "pasted"}'})
    page = Page(answer.text)
    assert answer.status_code == 200 and page.said("status")[0].startswith(said)
    assert page.texts_of("textarea", id="payload") == ['{"a": "pasted"}']
    assert preview_of(page)[0] == title.replace("{{ a }}", "pasted") and alert.row.title_template == title


def test_saving_with_pasted_json_that_is_none_saves_the_message_and_says_what_is_wrong_with_the_json(alert):
    page = Page(alert.owner.post(alert.path, {"title": "{{ a }}", "payload": "{"}).text)
    assert page.said("status")[0].startswith("Saved.") and alert.row.title_template == "{{ a }}"
    assert page.texts_of("textarea", id="payload") == ["{"]
    assert told_of(page)["error"].startswith("The body is not valid JSON")


@each("button, payload", [("preview", "1"), ("preview", '{"a": NaN}'), ("test", "{'a': 1}"), ("test", "1")])
def test_pasted_json_that_is_none_is_refused_with_a_sentence(alert, button, payload):
    page = alert.owner.refused(alert.path, {"title": "{{ a }}", "body": "typed", "payload": payload, button: "1"})
    assert page.said("alert") == [told_of(page)["error"]] and page.said("alert")[0].endswith(".")
    assert page.texts_of("textarea", id="title") == ["{{ a }}"]
    assert page.texts_of("textarea", id="payload") == [payload]


@each("field, button", [("title", {}), ("body", {"test": "1"})])
def test_an_unknown_filter_is_refused_by_its_name(alert, field, button):
    draft = {"title": "t", "body": "b", field: "{{ a | shout }}"}
    error = alert.preview(**draft)["error"]
    assert "shout" in error and error.endswith(".")
    before = everything()
    page = alert.owner.refused(alert.path, draft | button)
    assert error in page.said("alert") and page.texts_of("textarea", id=field) == ["{{ a | shout }}"]
    assert everything() == before


@each(
    "field, text, why",
    [
        ("title", "{{ title", "the closing }} is missing."),
        ("body", "{{ a | truncate }}", "truncate takes a number of characters"),
        ("body", "{% if a %}", "tags are not supported"),
    ],
)
def test_what_a_template_never_fills_is_saved_with_a_warning(alert, field, text, why):
    page = alert.owner.done(alert.path, {"title": "t", "body": "b", field: f"a {text}"})
    said = page.said("status")
    assert said[0].startswith("Saved, but “") and text in said[0] and why in said[0] and said[0].endswith(".")
    assert getattr(alert.row, f"{field}_template") == f"a {text}"
    assert any(line.startswith(f"{text} cannot be filled: {why}") for line in page.texts_of("li"))


def test_several_invalid_placeholders_are_counted_in_the_message_about_saving(alert):
    page = alert.owner.done(alert.path, {"title": "{{ a", "body": "{{ }} {% x %}"})
    assert page.said("status")[0].endswith("the closing }} is missing. The preview lists 2 more.")


def test_the_preview_says_why_a_filter_cannot_apply_and_without_a_request_what_no_request_can_fill(alert):
    told = alert.preview("{{ title | round }} {{ }}")["unfilled"]
    assert told == [["{{ }}", "the name of a variable is missing."]]
    alert.post({"name": "disk", "load": "high", "many": ["a"]})
    draft = {
        "title": "{{ name | round }} {{ many | join }}",
        "body": '{{ load | date: "%H" }} {{ load | default: nobody }}',
    }
    told = alert.preview(**draft)["unfilled"]
    assert told == [
        ["{{ name | round }}", "round needs a number."],
        ['{{ load | date: "%H" }}', "date needs a time: Unix seconds, milliseconds or ISO 8601."],
        ["{{ load | default: nobody }}", NO_TEXT_AT_THE_END],
    ]


def test_a_template_that_is_too_long_is_refused(alert):
    longest = {"title": 1000, "body": 10_000}
    for field, most in longest.items():
        draft = {"title": "t", "body": "b", field: "x" * (most + 1)}
        assert str(most) in alert.preview(**draft)["error"]
        assert str(most) in alert.owner.refused(alert.path, draft).said("alert")[0]
    assert alert.owner.post(alert.path, {field: "x" * most for field, most in longest.items()}).status_code == 303


def test_a_draft_is_shown_with_the_payload_that_was_pasted_and_not_saved_by_looking_at_it(alert):
    alert.post({"a": 1})
    before = everything()
    assert alert.preview("{{ a }}", "new", '{"a": 2}')["title"] == "2"
    assert everything() == before


def test_templates_in_order_are_saved_as_they_were_typed_without_a_warning(alert):
    page = alert.owner.done(alert.path, {"title": "{{ a }}", "body": " { b } 50 %\r\n\r\nsecond "})
    assert page.said("status")[0] == "Saved. New notifications will look like this."
    assert (alert.row.title_template, alert.row.body_template) == ("{{ a }}", " { b } 50 %\n\nsecond ")
    alert.owner.done(alert.path, {"title": "", "body": " \r\n"})
    assert (alert.row.title_template, alert.row.body_template) == (None, None)


def test_a_test_sends_the_draft_to_all_devices_and_saves_nothing(alert, push_service, browser):
    second = push_service.browser()
    assert alert.owner.enable(second).status_code == 201
    account_set("--quiet-hours", "09:00-11:00")
    form = {"title": "{{ a }}", "body": "b", "payload": '{"a": "tried"}', "test": "1"}
    page = Page(alert.owner.post(alert.path, form).text)
    assert page.said("status")[0] == "Test delivered. You can find it in History."
    assert page.texts_of("textarea", id="title") == ["{{ a }}"]
    assert [len(one.messages) for one in (browser, second)] == [1, 1]
    assert (alert.row.title_template, alert.kept, alert.row.notification_count) == (None, None, 0)


def test_enter_in_a_field_of_the_template_never_sends_a_test(alert):
    """The first button of a form is what Enter presses."""
    of_template = [e for e in alert.page.elements if any(p.attributes.get("id") == "template" for p in e.within)]
    assert next(e.text for e in of_template if e.tag == "button" and e.attributes.get("type") != "button") == "Save"


def test_a_test_without_a_device_says_that_it_is_stored(alert):
    page = Page(alert.owner.post(alert.path, {"title": "a", "body": "b", "test": "1"}).text)
    assert page.said("status")[0] == "Test saved to History. No device received it."


# --- what is missing ----------------------------------------------------------------------------------------


PAYLOAD = {
    "repository": {"full_name": "a/b", "html_url": "u"},
    "alerts": [{"labels": {"alertname": "x", "severity": "y"}}],
    "monitor": {"name": "n"},
}


MEANT = {
    "repository.fullname": "repository.full_name",
    "repository.full_nam": "repository.full_name",
    "repositry.full_name": "repository.full_name",
    "full_name": "repository.full_name",
    "data.repository.full_name": "repository.full_name",
    "alerts.0.label.severity": "alerts.0.labels.severity",
    "alerts.labels.severity": "alerts.0.labels.severity",
    "severity": "alerts.0.labels.severity",
    "Monitor.Name": "monitor.name",
    "zzz": None,
    **{f"quux.quuux{number:02}": None for number in range(30)},
}


def test_the_preview_names_every_missing_variable_and_the_one_that_was_probably_meant(alert):
    body = "".join(f"{{{{ {name} }}}}" for name in list(MEANT)[1:])
    draft = {"title": "{{ repository.fullname }}", "body": '{{ monitor.name }} {{ x | default: "" }}' + body}
    page = alert.owner.done(alert.path, draft)
    assert "is not in this request" not in page.text  # there is none yet
    alert.post(PAYLOAD)
    assert alert.preview(**draft)["meant"] == MEANT
    said = [text for text in alert.page.texts_of("li") if "is not in this request" in text]
    asked = {name: f" Did you mean {meant}?" if meant else "" for name, meant in MEANT.items()}
    assert said == [f"{name} is not in this request.{more}" for name, more in asked.items()]


@each("many, longer", [(590, ""), (3, "x" * 180)])
def test_a_draft_with_very_many_variables_or_long_ones_is_previewed_soon(alert, many, longer):
    alert.post({f"some_key_{longer}{n}": n for n in range(300)})
    body = "".join(f"{{{{some_kye_{longer}{n}}}}}" for n in range(many))[:10_000]
    with at_little_cost():
        assert alert.preview("", body)["body"] == body


def test_before_the_first_request_the_preview_uses_the_sample(service, alert):
    sample = presets.of(None).sample
    told = alert.preview("{{ title }}", "")
    assert (told["source"], told["title"]) == ("With sample data", sample["title"])
    assert values_of(told["page"]).keys() == sample.keys()
    path = alert.owner.post("/app/alerts/new", {"preset": "grafana"}).location
    page = alert.owner.page(f"{path}?tab=message")
    assert "With sample data from Grafana" in page.text and "{{" not in preview_of(page)[0] + preview_of(page)[1]
    alert.post({"title": "mine"})
    assert alert.preview("{{ title }}", "")["source"] == "With the last request"
    assert alert.preview("{{ title }}", "", "{}")["source"] == "With your JSON"


# --- paths of a payload -------------------------------------------------------------------------------------


ODD_KEYS = ["a.b", "a-b", "a b", "ü", "0", "a.b.c", "🔥", "$ref", "a[0]", "a:b", "'", '"', "#", "<b>", "a\tb", "a..b"]
HARD_KEYS = ["{", "}", "a|b", "a\nb", " a", "a ", "", "{{ x }}", "a\rb", "\u2028a\u2028b", "\x85x", "x\x85"]


def misses(payload):
    return [
        path
        for path in message_templates.paths(payload)
        if message_templates.fill(f"{{{{ {path} }}}}", payload, 10).missing
    ]


@each("key", ODD_KEYS + HARD_KEYS)
def test_every_offered_path_can_be_filled(key):
    other = {"x": 1, key: {key: [{key: 2}, 3]}, f"{key}.x": {"y": None}, "list": [[1], {key: 1}]}
    assert misses(other) == []


@pytest.mark.skipif(not EXPECTED, reason="no payloads")
@each("name", EXPECTED)
def test_every_offered_path_of_a_real_payload_can_be_filled(name):
    payload = parse_event(sample(name))
    assert misses(payload) == [] and 0 < len(message_templates.paths(payload)) <= 300


@each("key", ODD_KEYS)
def test_a_key_with_dots_hyphens_or_spaces_is_offered_as_it_is(key):
    assert message_templates.paths({key: {"x": 1}}) == [key, f"{key}.x"]


@each("key", ["{", "}", "a|b", "a\nb", "a\rb"])
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
    assert list(values_of(alert.preview("")["page"]).items()) == list(expected.items())
    assert values_of(alert.preview("", "", '{"pasted": 1}')["page"]) == {"pasted": "1"}
    (listed,) = alert.page.texts_of("ul", **{"class": "paths"})
    assert listed == " ".join(f"{path} {value}".strip() for path, value in expected.items())


def test_the_first_two_elements_of_a_list_are_offered():
    assert message_templates.paths({"a": [{"b": 1}, 2, 3]}) == ["a", "a.0", "a.1", "a.0.b"]


def nested(depth):
    return json.loads('{"a":' * depth + "1" + "}" * depth)


@each(
    "make",  # made in the test: every worker collects it, and one of them needs them
    [
        lambda: {f"k{n}": n for n in range(20_000)},
        lambda: {"k" * 900_000: {"x": 1}},
        lambda: {"{" * 10 + str(n): n for n in range(20_000)},
        lambda: {f"k{n}": {f"m{m}": m for m in range(30)} for n in range(300)},
        lambda: {"a": [[[list(range(1000))] * 10] * 10] * 10},
        lambda: nested(64),
        lambda: {"k" * 190: {"x" * 9: {"y": {}}}},
        lambda: {" " * 100_000 + "x": 1, "x" + " " * 100_000: 1, " " * 100_000: 2},
    ],
)
def test_the_paths_of_a_hostile_payload_are_few_and_found_fast(make):
    payload = make()
    with at_little_cost():
        found = message_templates.paths(payload)
    assert len(found) <= 300 and all(len(path) <= 200 for path in found)
