"""Priority, link, tag and "resolved" of an event, and what a payload may not do to them."""

import json
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import event_fields, message_templates
from core.alerts import rendered
from core.value_text import as_text
from models import Alert
from tests.support.rows import each
from tests.support.strategies import ANY_TEXT
from wire.errors import Refused
from wire.strict_json import parse_event


def content(payload, **templates):
    raw = payload if isinstance(payload, str) else json.dumps(payload)
    return rendered(Alert(name="Disk", **templates), "UTC", parse_event(raw.encode()))


def priority(template, payload):
    return content(payload, priority_template=template).priority


def url(template, **payload):
    return content(payload, url_template=template).url


def tag(template, payload):
    return content(payload, tag_template=template).tag


# --- priority -----------------------------------------------------------------------------------------------


@each(
    "text, number",
    [
        ("1", 1), ("2", 2), ("3", None), ("4", 4), ("5", 5), ("min", 1), ("low", 2), ("normal", None),
        ("high", 4), ("urgent", 5), (" High\n", 4), ("URGENT", 5), ("\tmin ", 1), ("", None), ("6", None),
        ("0", None), ("-1", None), ("04", None), ("4.0", None), ("critical", None), ("٤", None), ("high!", None),
    ],
)  # fmt: skip
def test_a_priority_is_a_known_word_or_number_and_otherwise_the_default(text, number):
    assert priority("{{ p }}", {"p": text}) == priority(text, {}) == number


@each("value, number", [("4", 4), ("4.0", None), ("true", None), ("null", None), ("[4]", None), ('{"a": 4}', None)])
def test_a_priority_is_what_the_value_shows(value, number):
    assert priority("{{ p }}", f'{{"p": {value}}}') == number


def test_a_missing_priority_is_the_default_and_named():
    made = content({"a": 1}, priority_template="{{ level }}", title_template="{{ a }}")
    assert (made.priority, made.missing) == (None, ("level",))


# --- link ---------------------------------------------------------------------------------------------------


@each(
    "template, payload, link",
    [
        ("{{ a }}", {"a": "https://x.example/a?b=1&c=[2]#d"}, "https://x.example/a?b=1&c=[2]#d"),
        ("{{ a }}", {"a": "HTTP://x.example:8080/%41%zz"}, "HTTP://x.example:8080/%41%25zz"),
        ("{{ a }}", {"a": " https://x.example/a b\n"}, "https://x.example/a%20b"),
        ("{{ a }}", {"a": "https://x.example/ü"}, "https://x.example/%C3%BC"),
        (" {{ a }}\n", {"a": "https://x.example/"}, "https://x.example/"),
        ("{{ a }}/b?c={{ d }}", {"a": "https://x.example", "d": "1&e=2#f"}, "https://x.example/b?c=1%26e%3D2%23f"),
        ("https://x.example/{{ a }}", {"a": "b/c?d"}, "https://x.example/b/c%3Fd"),
        ("https://x.example/{{ a }}/{{ b }}", {"a": 7, "b": 9.5}, "https://x.example/7/9.5"),
        ("https://x.example/?q={{ a }}", {"a": "../../b"}, "https://x.example/?q=../../b"),
        ("https://x.example/a{{ a }}#{{ b }}", {"a": "/b", "b": "/c d"}, "https://x.example/a/b#/c%20d"),
        ("{{ a }}{{ b }}", {"a": "https://x.example/", "b": "//evil"}, "https://x.example///evil"),
        ("https://{{ host }}:{{ port }}/", {"host": "nas.local", "port": 3000}, "https://nas.local:3000/"),
        ("https://web{{ n }}.x.example/", {"n": 1}, "https://web1.x.example/"),
        ("https://x.example/", {}, "https://x.example/"),
    ],
)
def test_an_address_keeps_its_form_and_every_other_value_is_encoded(template, payload, link):
    assert url(template, **payload) == link


@each(
    "value",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)//https://x", "java\nscript:alert(1)", "data:text/html,x",
        "//evil", "/evil", "evil.example", "https:evil.example", "https:///evil", "ftp://x.example", "", " ", "https://",
        "\x00https://x.example", "view-source:https://x.example", "\u2028https//x",
    ],
)  # fmt: skip
def test_a_link_that_is_not_http_is_left_out(value):
    assert url("{{ a }}", a=value) is None


HOSTILE = [
    "javascript:alert(1)", "@evil.example", "@evil.example/", "//evil", "//evil.example/x", "/", "\\evil.example",
    '"><script>alert(1)</script>', "a\r\nLocation: https://evil.example", "\x00", "?x=1", "#x", ":80@evil.example",
    "..", "../..", ".", "..\\..", "%2e%2e", "%2f%2fevil.example", ".evil.example", ".evil.example/", "[::1]", " ",
    "https://evil.example/", "\u3002evil.example", "é", "😀", "a;b=c", "'-alert(1)-'", "x" * 3_000,
]  # fmt: skip


def stays(link, before, after=""):
    """Whether a link is the template's, with a harmless value in its place."""
    value = link[len(before) : len(link) - len(after)]
    is_behind_a_host = before.count("/") > 2
    is_plain = not set(value) - set(
        "/" * is_behind_a_host + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%"
    )
    return link.startswith(before) and link.endswith(after) and is_plain


@each("value", HOSTILE)
@each(
    "before, after",
    [
        ("https://x.example/", ""), ("https://x.example/a/", "/b"), ("https://x.example/?q=", "&r=1"),
        ("https://x.example/#", ""), ("https://x.example/a", ""), ("https://x.example", ""),
        ("https://x.example", "/a"),
        ("https://x.example:", "/"), ("https://user", "@x.example/"),
    ],
)  # fmt: skip
def test_a_hostile_value_changes_no_other_part_of_a_link(value, before, after):
    link = url(before + "{{ a }}" + after, a=value)
    if link is None:
        return
    assert stays(link, before, after) and len(link) <= 2_000
    if "@" not in after:
        assert urlsplit(link).hostname == "x.example" or (before.endswith("example") and "." not in value)
    path = unquote(link.partition("?")[0].partition("#")[0]).replace("\\", "/")
    assert not {".", ".."} & set(path.split("/"))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(HOSTILE) | ANY_TEXT, min_size=1, max_size=4))
def test_adjacent_values_change_no_other_part_of_a_link(texts):
    template = "https://x.example/a/" + "".join(f"{{{{ v.{place} }}}}" for place in range(len(texts)))
    link = url(template, v=texts)
    if link is not None:
        assert stays(link, "https://x.example/a/") and not {".", ".."} & set(unquote(link).split("/"))


@each("before", ["https:", "https:/", "http", "https", "ht"])
@each("value", ["//evil.example", "/evil.example/", "s://evil.example", "://evil.example", "tps://evil.example"])
def test_a_value_before_the_host_cannot_change_the_host(before, value):
    assert url(before + "{{ a }}", a=value) is None


def test_a_link_that_is_too_long_is_left_out():
    assert url("https://x.example/{{ a }}", a="x" * 1_982) == "https://x.example/" + "x" * 1_982
    assert url("https://x.example/{{ a }}", a="x" * 1_983) is None
    assert url("https://x.example/{{ a }}", a="é" * 700) is None  # six characters each


def test_what_does_not_fit_into_a_link_is_not_written(monkeypatch):
    written = []
    monkeypatch.setattr(
        message_templates, "as_text", lambda value, limit: written.append(limit) or as_text(value, limit)
    )
    assert url("https://x.example/" + "{{ a }}" * 200, a=[1] * 8_000) is None
    assert written == [2_001] + [0] * 199


def test_the_templates_of_an_alert_have_their_work_in_common():
    costly = "{{ a | map: 'x' | size }}"
    made = content({"a": [{"x": 1}] * 3_000, "b": "b"}, title_template="{{ b }}", tag_template=costly * 2)
    assert (made.title, made.tag) == ("b", None)
    made = content({"a": [{"x": 1}] * 3_000}, title_template=costly, tag_template=costly)
    assert (made.title, made.tag) == (costly, "3000")


@each("template", ["{{ a }}/{{ nope }}", "{{ nope }}", "{{ a }}/{{ a | first }}", "{{ a }}/{{ a | shout }}"])
def test_a_link_with_an_unfilled_placeholder_is_left_out(template):
    made = content({"a": "https://x.example"}, url_template=template)
    assert made.url is None and made.missing == (("nope",) if "nope" in template else ())


# --- tag ----------------------------------------------------------------------------------------------------


@each(
    "template, tag_",
    [
        ("{{ a }}", "x"), ("disk {{ a }}", "disk x"), ("fixed", "fixed"), ("{{ long }}", "y" * 64),
        (" {{ a }}\n", "x"), ("{{ n }}", "7"), ("{{ nope }}", None), ("disk {{ nope }}", None),
        ("{{ a }} {{ nope }}", None), ("{{ a | first }}", None), ("disk {{ none }}", None), ("{{ none }}", None),
        ('disk {{ nope | default: "" }}', None), ('{{ nope | default: "" }} {{ a }}', "x"), ("{{ blank }}", None),
        ("{{ long | hash }}", "56846f2db153afa8"), ("{{ long }}{{ nope }}", None),
    ],
)  # fmt: skip
def test_a_tag_is_cut_and_left_out_where_events_would_share_it(template, tag_):
    payload = {"a": "x", "long": "y" * 100, "n": 7, "none": None, "blank": " \n"}
    assert tag(template, payload) == tag_


def test_a_missing_variable_of_a_tag_is_reported_once():
    made = content({}, tag_template="{{ a }} {{ b }}", title_template="{{ a }}", url_template="{{ b }}")
    assert made.missing == ("a", "b") and made.tag is made.url is None


# --- resolved -----------------------------------------------------------------------------------------------


PAYLOAD = (
    '{"status": "resolved", "a.b": {"c": [0, 1.50]}, "on": true, "none": null, "o": {"x": 1}, "q": "it is \\"ok\\""}'
)


@each(
    "condition, is_so",
    [
        ("status = resolved", True), ("status=resolved", True), ('status = "resolved"', True),
        ("status = 'resolved'", True), ("status = Resolved", False), ("status = resolve", False),
        ("status = resolved!", False), ("a.b.c.0 = 0", True), ("a.b.c.1 = 1.50", True), ("a.b.c.1 = 1.5", False),
        ("on = true", True), ("on = 1", False), ("none = null", False), ("nope = nope", False),
        ('o = {"x":1}', False),
        ('q = it is "ok"', True), ("status.x = resolved", False),
    ],
)  # fmt: skip
def test_a_condition_compares_what_the_value_shows(condition, is_so):
    assert event_fields.checked_condition(f" {condition} ") == condition
    templates = {"resolved_when": condition, "priority_template": "urgent", "repeats_urgent": 1}
    made = content(PAYLOAD, **templates)
    assert (made.priority, made.acknowledge) == ((2, ()) if is_so else (5, (60, 3_600)))


@each("condition", ["", " ", "\n", None])
def test_an_empty_condition_is_no_condition(condition):
    assert event_fields.checked_condition(condition) is None


@each(
    "condition",
    [
        "status", "= resolved", "status =", "status == resolved", "status != ok", "a >= 1", "{{ status }} = ok",
        "a | upcase = B", "a\nb = c", "x" * 197 + " = y", "a\0 = b", "a = \ud800",
    ],
)  # fmt: skip
def test_a_malformed_condition_is_refused(condition):
    with pytest.raises(Refused) as refused:
        event_fields.checked_condition(condition)
    assert refused.value.status == 400 and refused.value.message.endswith(".")


def test_a_condition_on_a_hostile_payload_is_found_false():
    assert not event_fields.holds("a" + ".a" * 90 + " = x", {"a" * 100_000: {"b": 1}, "a": {"a": {"a": 1}}})


def test_the_longest_condition_on_the_worst_payload_stays_within_the_work_limit():
    payload = "x"
    for _ in range(99):
        payload = {"a": payload}  # at each object all that is left of the path is looked for first
    condition = ".".join("a" * 99) + "=x"
    assert event_fields.checked_condition(condition) == condition and len(condition) == 199
    assert event_fields.holds(condition, payload)


# --- repeating ----------------------------------------------------------------------------------------------


@each("level, repeats", [("urgent", (60, 3_600)), ("5", (60, 3_600)), ("high", ()), ("normal", ()), ("nope", ())])
def test_urgent_events_repeat_if_the_alert_says_so(level, repeats):
    templates = {"priority_template": "{{ level }}"}
    assert content({"level": level}, **templates, repeats_urgent=1).acknowledge == repeats
    assert content({"level": level}, **templates).acknowledge == ()


def test_an_alert_without_templates_sets_only_the_link():
    made = content({"priority": 5, "url": "https://x.example", "tag": "t", "title": "t"}, repeats_urgent=1)
    assert (made.priority, made.url, made.tag, made.acknowledge) == (None, "https://x.example", None, ())
    for templates in ({"title_template": "t", "body_template": "b"}, {"url_template": "https://a.example/{{ b }}"}):
        assert content({"url": "https://x.example"}, **templates).url is None
