"""Alerts, heartbeats, rules and an account's settings in the fields of the REST API, and back again."""

import pytest

from core import accounts, alerts, metric_rules, presets
from core.definitions import ALERT, HEARTBEAT, KINDS, RULE
from process import clock
from tests.support.rows import each
from wire.errors import Refused

FULL = {
    ALERT: {
        "name": "Disk",
        "icon": "server",
        "color": "#112233",
        "isActive": False,
        "title": "{{ host }}",
        "body": "{{ text }}",
        "priority": "urgent",
        "link": "https://nas.example.org/{{ id }}",
        "tag": "disk {{ host }}",
        "resolvedWhen": "status = ok",
        "frequency": "1h",
        "repeatUrgent": True,
        "muteButton": True,
        "preset": "grafana",
        "quietHours": "urgent",
    },
    HEARTBEAT: {"name": "Backup", "cron": "0 3 * * *", "graceS": 90, "priority": 5},
    RULE: {"project": "shop", "metric": "cpu", "when": "> 0.30000000000000004", "forS": 300},
}
LEAST = {
    ALERT: {"name": "Disk"},
    HEARTBEAT: {"name": "Backup", "periodS": 3661},
    RULE: {"project": "shop", "metric": "cpu", "when": "silent 1d 1h"},
}


@pytest.fixture
def owned(service):
    """The owner's account."""
    return accounts.find_account(service.account())


def put(kind, account, sent):
    return kind.put(account, kind.checked(sent), clock.now_ms())


def changed(kind, account, one, **sent):
    return kind.update(account.seq, one.id, kind.checked(sent), clock.now_ms())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("fields", [FULL, LEAST], ids=["full", "least"])
def test_the_fields_of_a_definition_make_the_same_one_in_another_account(service, owned, kind, fields):
    made, is_new = put(kind, owned, fields[kind])
    assert is_new and kind.fields_of(made).items() >= fields[kind].items()
    other = accounts.find_account(service.account("other@example.org"))
    copied, _ = put(kind, other, kind.fields_of(made))
    assert kind.fields_of(copied) == kind.fields_of(made)


def test_a_condition_is_known_however_it_is_written(owned):
    put(RULE, owned, {"project": "shop", "metric": "cpu", "when": ">90"})
    put(RULE, owned, {"project": "shop", "metric": " cpu ", "when": ">  90.0", "forS": 60})
    (rule,) = RULE.of_account(owned.seq)
    assert metric_rules.rule_text(rule) == "> 90 for 1m"


def test_a_rule_on_another_metric_begins_anew(owned):
    rule, _ = put(RULE, owned, FULL[RULE])
    moved = changed(RULE, owned, rule, metric="memory")
    assert RULE.fields_of(moved) == {**FULL[RULE], "metric": "memory"} and moved.id == rule.id


def test_a_rule_that_becomes_silent_forgets_for_how_long_it_had_to_hold(owned):
    rule, _ = put(RULE, owned, FULL[RULE])
    assert RULE.fields_of(changed(RULE, owned, rule, when="silent 1h"))["forS"] == 0
    with pytest.raises(Refused, match="forS: A silent rule says how long itself"):
        changed(RULE, owned, rule, forS=60)


def test_a_heartbeat_has_a_period_or_a_cron(owned):
    beat, _ = put(HEARTBEAT, owned, FULL[HEARTBEAT])
    assert "cron" not in HEARTBEAT.fields_of(changed(HEARTBEAT, owned, beat, periodS=60))
    assert "periodS" not in HEARTBEAT.fields_of(changed(HEARTBEAT, owned, beat, cron="0 4 * * *"))


def test_a_preset_keeps_the_look_that_an_alerts_owner_chose(owned):
    alert, _ = put(ALERT, owned, {"name": "Disk", "preset": "grafana"})
    github = changed(ALERT, owned, alert, preset="github")
    assert (github.icon, github.title_template) == (presets.BY_ID["github"].icon, presets.BY_ID["github"].title)
    changed(ALERT, owned, alert, icon="server")
    assert changed(ALERT, owned, alert, preset="grafana").icon == "server"


@each("nothing", [None, ""])
def test_null_and_an_empty_text_take_a_template_away(owned, nothing):
    alert, _ = put(ALERT, owned, FULL[ALERT])
    cleared = ALERT.fields_of(changed(ALERT, owned, alert, **dict.fromkeys(ALERT.optional, nothing)))
    assert {cleared[field] for field in ALERT.optional} == {None}
    assert cleared["name"] == ALERT.fields_of(changed(ALERT, owned, alert, name=None, icon=None))["name"] == "Disk"


def test_an_account_has_a_limit_of_alerts(owned, monkeypatch):
    monkeypatch.setattr(alerts, "MAX_ALERTS", 1)
    put(ALERT, owned, {"name": "One"})
    with pytest.raises(Refused, match="at most 1 alerts"):
        put(ALERT, owned, {"name": "Two"})
