"""The title and the body of the notification that an event makes."""

import json

from tests.support.accounts import account_set
from tests.support.rows import each
from tests.support.service import last
from tests.support.tables import query
from tests.support.webhooks import guess

# Title and body

BLANK = ["", "\x01\x02", " \t\n", "\u200b", "\x85\xa0"]


@each(
    "payload, title, body",
    [
        (dict(zip(["name", "subject", "title", "msg", "text", "body", "message"], "nstgxbm", strict=True)), "t", "m"),
        ({"name": "n", "subject": "s", "msg": "g", "text": "x", "body": "b"}, "s", "b"),
        ({"name": "n", "msg": "g", "text": "x"}, "n", "x"),
        ({"msg": "g", "content": "c"}, "Backups", "g"),
        ({"content": "c"}, "Backups", "c"),
        (
            {"title": 1, "subject": None, "name": "n", "message": {"a": 1}, "body": ["b"], "text": True, "msg": "g"},
            "n",
            "g",
        ),
        *(({"title": blank, "message": "m"}, "Backups", "m") for blank in BLANK),
        ({"title": "{{ message }}", "message": "{{ title }}"}, "{{ message }}", "{{ title }}"),
    ],
)
def test_without_templates_the_payloads_usual_fields_are_taken(owner, hook, payload, title, body):
    assert hook.post(payload).status_code == 200
    assert last(owner) == (title, body)


def test_templates_are_filled_from_the_payload(service, owner):
    hook = service.alert(
        "--title",
        "[{{ status }}] {{alerts.0.labels.alertname}}",
        "--body",
        "{{ on }} {{no.such}} {{ nil }}| {{ alerts.0.labels }} %",
    )
    hook.post({"status": "firing", "on": True, "nil": None, "alerts": [{"labels": {"alertname": "Disk", "n": 1}}]})
    assert last(owner) == ("[firing] Disk", 'true {{no.such}} | {"alertname":"Disk","n":1} %')


@each("option, rendered", [("--title", ("v", "m")), ("--body", ("t", "v"))])
def test_a_template_that_is_not_there_leaves_the_usual_field(service, owner, option, rendered):
    service.alert(option, "{{ v }}").post({"v": "v", "title": "t", "message": "m"})
    assert last(owner) == rendered


def test_a_changed_template_is_used_at_once(owner, hook):
    hook.post({"a": "1"})
    hook.set("--title", "T {{ a }}", "--body", "B {{ a }}")
    hook.post({"a": "2"})
    assert last(owner) == ("T 2", "B 2")


@each("options", [(), ("--title", "{{ title }}", "--body", "{{ message }}")])
@each("letter", ["x", "é", "😀"])
def test_a_title_is_cut_to_1000_characters_before_the_prefix_and_a_body_to_10000(service, owner, options, letter):
    hook = service.alert(*options)
    hook.post({"title": letter * 1_000, "message": letter * 10_000})
    assert last(owner) == (letter * 1_000, letter * 10_000)
    hook.post({"title": letter * 1_001, "message": letter * 10_001})
    assert last(owner) == (letter * 999 + "…", letter * 9_999 + "…")


def test_a_title_that_renders_to_nothing_is_the_alerts_name(service, owner):
    service.alert("--title", "{{ a }}{{ b }}", "--body", "m").post({"a": "", "b": None})
    assert last(owner) == ("Backups", "m")


def missing_of(hook, payload):
    """The variables that are stored with the notification as missing; None if there are none."""
    answer = hook.post(payload)
    assert answer.status_code == 200
    missing = query(hook.service, "SELECT missing FROM notification ORDER BY seq DESC LIMIT 1")[0][0]
    return missing and json.loads(missing)


@each(
    "title, body, payload, missing",
    [
        ("{{ a }}", "{{ b }}", {"a": 1, "b": 2}, None),
        ("{{ a }}", "{{ b }}", {"b": 2}, ["a"]),
        ("{{ b }}", "{{ a }}", {}, ["b", "a"]),
        ("{{ a }} {{a}}", "{{ a }} {{ b }} {{ b }}", {}, ["a", "b"]),
        ("no variable", "{% at %} { all }", {}, None),
    ],
)
def test_variables_that_an_event_lacks_are_kept_each_once(service, owner, title, body, payload, missing):
    assert missing_of(service.alert("--title", title, "--body", body), payload) == missing


def test_without_templates_nothing_is_missing(service, owner, hook):
    assert missing_of(hook, {}) is None
    assert missing_of(hook, {"title": "{{ a }}", "message": "{{ b }}"}) is None


def test_a_held_event_keeps_its_missing_variables(service, owner):
    account_set("--quiet-hours", "09:00-11:00")
    assert missing_of(service.alert("--title", "{{ a }}"), {}) == ["a"]


def test_missing_variables_are_not_told_to_the_sender(service, owner):
    answer = service.alert("--title", "{{ a }}").post({})
    assert set(answer.json) == {"ok", "status", "notificationId"}


def test_senders_whose_address_the_server_does_not_know_are_one_sender(service):
    assert guess(service, 61, address="") == [404] * 60 + [429]
