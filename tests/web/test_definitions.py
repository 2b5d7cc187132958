"""Alerts, heartbeats, rules and the account's settings by the REST API."""

import itertools

from core import heartbeats, metric_rules
from core.definitions import KINDS
from tests.support.answers import refusal
from tests.support.rows import each

LEAST = {
    "alert": {"name": "Disk"},
    "heartbeat": {"name": "Backup", "periodS": 3600},
    "rule": {"project": "shop", "metric": "cpu", "when": "> 90"},
}
UNIQUE = {kind.name: {**LEAST[kind.name], "unique": list(kind.known_by)} for kind in KINDS}
every_kind = each("kind", LEAST)


def create(caller, kind, **fields):
    answer = caller.post(f"/{kind}s", {**LEAST[kind], **fields})
    assert answer.status_code == 201, answer.json
    return answer.json[kind]


def address(kind, one):
    return f"/{kind}s/{one['id']}"


@every_kind
def test_what_was_created_is_shown_changed_and_deleted(owner, kind):
    made = create(owner, kind)
    assert made.items() >= LEAST[kind].items()
    assert owner.get(address(kind, made)).json == {"ok": True, kind: made}
    other = {next(iter(LEAST[kind])): "Other"}
    assert owner.patch(address(kind, made), other).json[kind] == {**made, **other}
    assert owner.delete(address(kind, made)).json == {"ok": True}
    assert owner.get(address(kind, made)).status_code == 404


def test_a_list_has_the_newest_first(owner):
    for kind in ("heartbeat", "rule"):
        made = [create(owner, kind), create(owner, kind)]
        assert owner.get(f"/{kind}s").json == {"ok": True, f"{kind}s": made[::-1]}


@every_kind
def test_a_second_request_with_unique_changes_what_the_first_created(owner, kind):
    first = owner.post(f"/{kind}s", UNIQUE[kind])
    more = {"alert": {"icon": "server"}, "heartbeat": {"graceS": 90}, "rule": {"forS": 60}}[kind]
    second = owner.post(f"/{kind}s", {**UNIQUE[kind], **more})
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json[kind] == {**first.json[kind], **more}
    third = owner.post(f"/{kind}s", UNIQUE[kind])
    assert third.json == second.json  # what is not named stays


@each("kind, unique", [("rule", ["name"]), *itertools.product(LEAST, ([], ["id"], "name", {}, 1, ["name", "name"]))])
def test_unique_names_what_a_definition_is_known_by(owner, kind, unique):
    assert refusal(owner.post(f"/{kind}s", {**LEAST[kind], "unique": unique})).startswith("unique must be [")


TEXTS = (1, True, [], {}, 1.5)
NAMES = (*TEXTS, "", "  ", "x" * 101)
FLAGS = (1, "true", [], {})
SECONDS = (True, "60", 60.5, 1e300, [], {}, -1, 10**30)
WRONG = {
    "alert": {
        "name": NAMES,
        "icon": (*TEXTS, "", "no-such-icon", "x" * 1000),
        "color": (*TEXTS, "", "red", "#12345", "#1234567"),
        "isActive": FLAGS,
        "repeatUrgent": FLAGS,
        "muteButton": FLAGS,
        "title": (*TEXTS, "x" * 1001, "{{ a | nope }}"),
        "body": (*TEXTS, "x" * 10_001, "{{ a | nope }}"),
        "priority": (*TEXTS, "x" * 201, "{{ a | nope }}"),
        "link": (*TEXTS, "x" * 2001, "{{ a | nope }}"),
        "tag": (*TEXTS, "x" * 201, "{{ a | nope }}"),
        "resolvedWhen": (*TEXTS, "x" * 201, "status", "= x", "a == b"),
        "frequency": (*TEXTS, "", "2h"),
        "quietHours": (*TEXTS, "", "never"),
        "preset": (*TEXTS, "no-such-preset", "../grafana", "x" * 1000),
        **dict.fromkeys(("id", "url", "createdAt", "notificationCount", "colour", "", "x" * 1000), (1, None)),
    },
    "heartbeat": {
        "name": NAMES,
        "periodS": (*SECONDS, 0, 59, heartbeats.MAX_PERIOD_S + 1),
        "graceS": (*SECONDS, 0, 59, heartbeats.MAX_GRACE_S + 1),
        "priority": (True, 0, 6, "9", "loud", 4.0, [], {}),
        **dict.fromkeys(("id", "url", "state", "period", "grace", "nextAt"), (1, None)),
    },
    "rule": {
        "project": NAMES,
        "metric": NAMES,
        "when": (*TEXTS, "", ">", "> many", "> 1e999", "silent", "silent 1s", "about 3", "x" * 1000),
        "forS": (*SECONDS, metric_rules.MAX_FOR_S + 1),
        **dict.fromkeys(("id", "state", "rule", "name", "projectId"), (1, None)),
    },
}
WRONG_VALUES = [
    (kind, field, value) for kind, fields in WRONG.items() for field, values in fields.items() for value in values
]


def test_a_wrong_value_of_any_field_is_refused_by_its_name(pro):
    made = {kind: create(pro, kind) for kind in LEAST}
    before = {kind: pro.get(address(kind, one)).json for kind, one in made.items()}
    for kind, field, value in WRONG_VALUES:
        for send, path in ((pro.post, f"/{kind}s"), (pro.patch, address(kind, made[kind]))):
            sentence = refusal(send(path, {**LEAST[kind], field: value}))
            assert sentence.startswith(field[:100]), (kind, field, value, sentence)
    assert {kind: pro.get(address(kind, one)).json for kind, one in made.items()} == before


@each(
    "kind, sent, sentence",
    [
        *((kind, {}, f"{next(iter(LEAST[kind]))} is required.") for kind in LEAST),
        *((kind, dict.fromkeys(LEAST[kind]), f"{next(iter(LEAST[kind]))} is required.") for kind in LEAST),
        ("heartbeat", {"name": "Backup"}, "periodS: Set a period or a cron expression."),
        ("heartbeat", {"name": "B", "periodS": 60, "cron": "0 3 * * *"}, "periodS: Set either a period or a cron"),
        ("heartbeat", {"name": "B", "cron": "0 3 * *"}, 'cron: "0 3 * *" is not a cron expression'),
        ("heartbeat", {"name": "B", "cron": ["0 3 * * *"]}, "cron must be a string."),
        ("rule", {**LEAST["rule"], "when": "silent 1h", "forS": 60}, "forS: A silent rule says how long itself"),
    ],
)
def test_what_is_missing_or_contradicts_itself_is_refused(owner, kind, sent, sentence):
    assert refusal(owner.post(f"/{kind}s", sent)).startswith(sentence)


def test_a_wrong_body_is_refused_before_an_unknown_id(owner):
    assert refusal(owner.patch("/alerts/unknown", {"colour": "red"})).startswith("colour is not known")


@each("kind, most", [("heartbeat", "MAX_HEARTBEATS"), ("rule", "MAX_RULES")])
def test_a_request_over_the_limit_of_an_account_is_refused(owner, monkeypatch, kind, most):
    monkeypatch.setattr({"heartbeat": heartbeats, "rule": metric_rules}[kind], most, 1)
    create(owner, kind)
    assert "1" in refusal(owner.post(f"/{kind}s", LEAST[kind]))
    assert owner.post(f"/{kind}s", UNIQUE[kind]).status_code == 200


def test_a_created_alert_takes_events_until_its_address_changes(service, owner):
    made = create(owner, "alert", title="{{ host }} is full")
    old = made["url"].removeprefix("http://localhost")
    assert service.client.post(old, json={"host": "nas"}).json["status"] == "delivered"
    assert owner.listed()[0]["title"] == "MCP - nas is full"
    rotated = owner.post(f"{address('alert', made)}/rotate").json["alert"]
    assert rotated["url"] != made["url"] and service.client.post(old, json={}).status_code == 404
    owner.patch(address("alert", made), {"isActive": False})
    new = rotated["url"].removeprefix("http://localhost")
    assert service.client.post(new, json={"host": "nas"}).json["status"] == "inactive"


def test_a_created_heartbeat_is_pinged_paused_resumed_and_rotated(service, owner, moved_clock):
    made = create(owner, "heartbeat", graceS=600)
    assert (made["state"], made["nextAt"], made["lastPingAt"]) == ("new", None, None)
    path, now = made["url"].removeprefix("http://localhost"), moved_clock.ms
    assert service.client.get(path).text == "OK"
    at = address("heartbeat", made)
    up = {**made, "state": "up", "lastPingAt": now, "nextAt": now + 3_600_000}
    assert owner.get(at).json["heartbeat"] == up
    moved_clock.advance(3_700)
    service.work()
    assert owner.get(at).json["heartbeat"] == {**up, "state": "late"}
    assert owner.post(f"{at}/pause").json["heartbeat"] == {**up, "state": "paused", "nextAt": None}
    assert owner.post(f"{at}/resume").json["heartbeat"] == {**up, "nextAt": moved_clock.ms + 3_600_000}
    rotated = owner.post(f"{at}/rotate").json["heartbeat"]
    assert service.client.get(path).status_code == 404
    assert service.client.get(rotated["url"].removeprefix("http://localhost")).text == "OK"


def test_the_account_shows_and_changes_its_settings(owner):
    assert owner.get("/account").json == {"ok": True, "account": {"timeZone": "UTC", "quietHours": "off"}}
    wanted = {"timeZone": "Europe/Berlin", "quietHours": "22:00-07:00"}
    assert owner.patch("/account", wanted).json == {"ok": True, "account": wanted}
    assert owner.patch("/account", {"quietHours": "off"}).json["account"] == {**wanted, "quietHours": "off"}
    weekly = owner.patch("/account", {"quietHours": "MO-FR 22:00-07:00;sa, su 23:00-09:00"}).json["account"]
    assert weekly["quietHours"] == "mo-fr 22:00-07:00; sa,su 23:00-09:00"


ACCOUNT = [
    *(("timeZone", value) for value in (*TEXTS, "", "Berlin", "../etc/passwd")),
    *(("quietHours", value) for value in (*TEXTS, "", "22-7", "22:00-22:00", "OFF", "12:00-13:00; mo 12:30-14:00")),
    ("email", "x@example.org"),
    ("plan", "scale"),
]


def test_a_wrong_setting_of_the_account_changes_nothing(pro):
    for field, value in ACCOUNT:
        sent = {"timeZone": "Europe/Berlin", "quietHours": "22:00-07:00", field: value}
        assert refusal(pro.patch("/account", sent)).startswith(field)
    assert pro.get("/account").json["account"] == {"timeZone": "UTC", "quietHours": "off"}
