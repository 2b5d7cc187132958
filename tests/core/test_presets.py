"""Presets: which sender a payload comes from, and what its notification says before anybody wrote a template.

preset_events/ has events as the senders document them, and the notification of each. Events that are `about` the same
thing have one tag; those about nothing have none.
"""

import json
from collections import defaultdict

import pytest

from core import alerts, message_templates, presets
from models import Alert
from tests.support.payloads import NAMES, PRESETS, made, payload_of, sender_of, with_payloads
from tests.support.rows import each
from tests.support.server import ROOT
from wire.strict_json import parse_event

EVENTS = {
    (path.stem, event["event"]): {**event, "payload": parse_event(json.dumps(event["payload"]).encode())}
    for path in sorted((ROOT / "tests/core/preset_events").glob("*.json"))
    for event in json.loads(path.read_text())
}
TOLD = {  # of real payloads: the title
    "github-workflow_job-failure": "linters failed · Codertocat/Hello-World",
    "gitlab-pipeline": "Pipeline succeeded · gitlab-org/gitlab-test",
    "gitea-pull_request": "Pull request opened · example/example",
    "gogs-push": "Push · unknwon/webhooks",
    "grafana-unified-test": "TestAlert resolved · Grafana",
    "alertmanager-firing": "InstanceDown firing · web-1:9100",
    "uptimekuma-down": "Shop — Käse & Co 🧀 is down",
    "sentry-event_alert": "Error #1: This is a test error!",
    "stripe-invoice.payment_failed": "Invoice payment failed · Stripe",
    "healthchecks-up": 'Nightly "borg" backup — NAS №1 is up',
    "netdata-custom": "Warning: test_alarm · vm",
    "radarr-download": "Imported",
    "dockerhub-build": "Pushed svendowideit/testhook:latest",
    "aws-sns-alarm": "bucketbytesAlarm is in alarm",
}
BAD_WORDS = ("fail", "down", "in alarm", "could not", "timed out", "corrupted")
FINE_WORDS = ("succeeded", "is up", "resolved", "restored", "closed: ", " is ok", "clear: ")


def flaws(content):
    """What no notification of a preset may have."""
    text, lines = f"{content.title}\n{content.body}", content.body.split("\n")
    return [
        *(f"missing: {path}" for path in content.missing),
        *(["braces"] if "{{" in text or "}}" in text else []),
        *(["a blank line"] if not all(line.strip() for line in lines) else []),
        *(["a gap"] if "  " in text or any(line != line.strip() for line in text.split("\n")) else []),
        *(["nothing counted"] if text.startswith("0 ") or "\n0 " in text else []),
        *(["the link"] if content.url and content.url in text else []),
    ]


@each("preset", PRESETS.values())
def test_the_templates_of_a_preset_can_be_saved(preset):
    message_templates.check_template(preset.title)
    message_templates.check_template(preset.body)
    saved = {column: text or None for column, text in preset.templates.items()}
    assert alerts.checked(preset.templates) == saved


def test_every_preset_with_templates_has_events():
    assert {preset for preset, _ in EVENTS} == {preset.id for preset in PRESETS.values() if preset.title}


@each("key", EVENTS)
def test_what_the_notification_of_an_event_says(key):
    event, content = EVENTS[key], made(PRESETS[key[0]], EVENTS[key]["payload"])
    expected = {name: event[name] for name in ("title", "body", "priority", "url")}
    assert {name: getattr(content, name) for name in expected} == expected and flaws(content) == []
    assert content.image == event.get("image")


@each("preset", PRESETS.values())
def test_events_about_the_same_thing_have_one_tag(preset):
    tags = defaultdict(set)
    for (its, _), event in EVENTS.items():
        if its == preset.id:
            tags[event["about"]].add(made(preset, event["payload"]).tag)
    assert tags.pop(None, {None}) == {None}
    assert [about for about, found in tags.items() if len(found) > 1 or None in found] == []
    assert len(set.union(set(), *tags.values())) == len(tags)


@each("key", EVENTS)
def test_problems_have_high_priority_and_recoveries_low_priority(key):
    """Urgent is what the sender calls critical, or its highest priority; a payment is of normal priority."""
    event = EVENTS[key]
    title, priority = event["title"].lower(), event["priority"]
    if any(word in title for word in FINE_WORDS) and key[0] != "stripe":
        assert priority == 2
    elif any(word in title.split(": ")[0] for word in BAD_WORDS):
        assert priority == 4
    if priority == 5:
        assert '"critical"' in json.dumps(event["payload"], default=str).lower() or key[0] == "opsgenie"


@with_payloads
@each("name", NAMES)
def test_a_payload_is_recognized_as_one_preset_only(name):
    recognized = presets.recognized(payload_of(name))
    assert (recognized and recognized.id) == sender_of(name)


@with_payloads
@each("name", [name for name in NAMES if sender_of(name)])
def test_the_notification_of_a_real_payload_has_no_flaw(name):
    content = made(PRESETS[sender_of(name)], payload_of(name))
    assert flaws(content) == [] and content.title == TOLD.get(name, content.title)


@each(
    "payload",
    [
        {},
        {"message": "x"},
        {"title": "t", "message": "m"},
        {"check": {"name": "disk"}, "client": {"name": "web-1"}, "status": 2},
        {"alerts": [], "title": "x"},
        {"repository": {"full_name": "a/b"}, "sender": {"login": "x"}},
        {"data": {}, "type": "x"},
        {"repository": None, "sender": "x", "object_kin": 1},
        {"monitor": None, "msg": "x"},
        {"event": "x", "data": {"type": "incident"}},
    ],
)
def test_an_unknown_payload_is_not_recognized(payload):
    assert presets.recognized(payload) is None


@each("key", [key for key in EVENTS if key[0] != "home-assistant"])
def test_an_event_is_recognized_as_its_senders_in_any_order_of_the_presets(monkeypatch, key):
    """Grafana sends everything that Alertmanager sends: where two presets fit, the longer mark decides."""
    assert presets.recognized(EVENTS[key]["payload"]) is PRESETS[key[0]]
    monkeypatch.setattr(presets, "PRESETS", presets.PRESETS[::-1])
    assert presets.recognized(EVENTS[key]["payload"]).id == key[0]
    monkeypatch.undo()


def group(*alerts, **more):
    return {
        "receiver": "hook",
        "groupKey": "1",
        "status": "firing",
        "groupLabels": {},
        "alerts": list(alerts),
        **more,
    }


def one_alert(status, labels=(), **annotations):
    return {"status": status, "labels": dict(labels), "annotations": annotations}


@each("preset", ["alertmanager", "grafana"])
@each(
    "alerts, body",
    [
        ([one_alert("firing", summary="a"), one_alert("resolved", summary="b")], "a\nResolved: b"),
        ([one_alert("firing", summary="a", description="no"), one_alert("firing", summary="b")], "a\nb"),
        ([one_alert("firing", description="a"), one_alert("resolved", description="b")], "a\nResolved: b"),
        ([one_alert("firing", summary="", description="a")], "a"),
        ([one_alert("resolved", [("alertname", "Disk")])], "All clear\nResolved: Disk"),
        ([one_alert("resolved", summary="a"), one_alert("resolved", summary="b")],
         "All clear\nResolved: a\nResolved: b"),
        ([], "All clear"),
    ],
)  # fmt: skip
def test_firing_and_resolved_alerts_are_told_apart_by_summary_description_or_labels(preset, alerts, body):
    assert made(PRESETS[preset], group(*alerts)).body == body


@each("share", [0, 0.5, 1])
def test_a_group_of_a_thousand_alerts_is_shown(share):
    firing = int(share * 1_000)
    alerts = [
        one_alert("firing" if n < firing else "resolved", summary=f"Pod worker-{n} restarts") for n in range(1_000)
    ]
    text = made(PRESETS["alertmanager"], group(*alerts))
    assert text.body.startswith("Pod worker-0 restarts\n" if firing else "All clear\nResolved: Pod worker-0")
    assert "{{" not in text.body and len(text.body) == 10_000


HEALTHCHECKS = {  # a check as Healthchecks fills in $JSON, without what no template shows
    "name": 'the "nas"', "slug": "the-nas", "tags": 'prod "a\\b"', "desc": "runs at 02:00", "status": "down"
}  # fmt: skip


@each(
    "check, body, title, lines",
    [
        (HEALTHCHECKS, "said\nmore", 'the "nas" is down', ["said", "more", 'Tags: prod "a\\b"']),
        (HEALTHCHECKS, "", 'the "nas" is down', ["runs at 02:00", 'Tags: prod "a\\b"']),
        ({"name": "", "slug": "", "tags": "", "desc": ""}, "", "A check without a name is down",
         ["No message with the last ping"]),
    ],
)  # fmt: skip
def test_the_set_up_of_healthchecks_makes_json_that_its_preset_shows(check, body, title, lines):
    """Healthchecks escapes what $NAME_JSON, $JSON and $BODY_JSON stand for, and nothing else."""
    sent = PRESETS["healthchecks"].snippet
    for name, value in {"$NAME_JSON": check["name"], "$JSON": check, "$BODY_JSON": body}.items():
        sent = sent.replace(name, json.dumps(value))
    payload = json.loads(sent.replace("$STATUS", "down"))
    assert presets.recognized(payload) is PRESETS["healthchecks"]
    text = made(PRESETS["healthchecks"], payload)
    assert (text.title, text.body.split("\n"), text.missing) == (title, lines, ())


GATUS = {"[ALERT_TRIGGERED_OR_RESOLVED]": "TRIGGERED", "[ENDPOINT_NAME]": "shop", "[ENDPOINT_GROUP]": "",
         "[ALERT_DESCRIPTION]": "", "[RESULT_ERRORS]": r'Get \"https://shop\": EOF'}  # fmt: skip


def test_the_set_up_of_gatus_makes_json_that_its_preset_shows():
    """Gatus escapes the quotation marks of errors: alerting/provider/custom of its source."""
    yaml = pytest.importorskip("yaml")
    sent = yaml.safe_load(PRESETS["gatus"].snippet)["alerting"]["custom"]["body"]
    for placeholder, value in GATUS.items():
        sent = sent.replace(placeholder, value)
    text = made(PRESETS["gatus"], json.loads(sent))
    assert presets.recognized(json.loads(sent)) is PRESETS["gatus"]
    assert (text.title, text.body, text.priority) == ("shop is down", 'Get "https://shop": EOF', 4)


# --- tags ---------------------------------------------------------------------------------------------------


@each(
    "preset, event, change",
    [
        ("alertmanager", "critical fires", {"groupKey": "2"}),
        ("grafana", "critical fires", {"groupKey": "2"}),
        ("uptime-kuma", "down", {"monitor": {"id": 1, "name": "Mail"}}),  # two installations number alike
        ("uptime-kuma", "down", {"monitor": {"id": 2, "name": "Shop"}}),
        ("healthchecks", "down", {"details": {"uuid": "2"}}),
        ("netdata", "warning", {"chart": "disk_space._home"}),
        ("sentry", "issue created", {"data": {"issue": {"id": "2", "title": "KeyError"}}}),
        ("sentry", "issue created", {"data": {"metric_alert": {"id": "9", "title": "KeyError"}}}),
        ("gatus", "down", {"group": "mail"}),
        ("better-stack", "incident started", {"data": {"id": "2", "type": "incident", "attributes": {}}}),
        ("diun", "new image", {"hostname": "pi"}),
    ],
)
def test_events_about_different_things_have_different_tags(preset, event, change):
    payload = EVENTS[preset, event]["payload"]
    one, other = made(PRESETS[preset], payload).tag, made(PRESETS[preset], payload | change).tag
    assert one and other and one != other


@each("preset", [preset for preset in PRESETS.values() if preset.resolved_when])
def test_an_event_that_resolves_is_among_those_of_its_preset(preset):
    """And has the tag of an event that does not."""
    resolving = Alert(name="", resolved_when=preset.resolved_when)
    about = defaultdict(set)
    for (its, _), event in EVENTS.items():
        if its == preset.id:
            about[event["about"]].add(alerts.rendered(resolving, "UTC", event["payload"]).priority == 2)
    assert {True, False} in about.values()
