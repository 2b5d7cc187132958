"""Alerts, heartbeats, rules and an account's settings in the fields of the REST API, and back again."""

import pytest

from core import accounts, alerts, heartbeats, metric_rules, presets
from core.definitions import ALERT, HEARTBEAT, KINDS, RULE, account_change, account_fields, checked_account
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
    return kind.changed(account.seq, one.id, kind.checked(sent), clock.now_ms())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("fields", [FULL, LEAST], ids=["full", "least"])
def test_the_fields_of_a_definition_make_the_same_one_in_another_account(service, owned, kind, fields):
    made, is_new = put(kind, owned, fields[kind])
    assert is_new and kind.fields_of(made).items() >= fields[kind].items()
    other = accounts.find_account(service.account("other@example.org"))
    copied, _ = put(kind, other, kind.fields_of(made))
    assert kind.fields_of(copied) == kind.fields_of(made)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_to_put_a_definition_again_changes_the_one_that_is_there(owned, kind):
    first, _ = put(kind, owned, LEAST[kind])
    again, is_new = put(kind, owned, kind.fields_of(first))
    assert (again.id, is_new, kind.fields_of(again)) == (first.id, False, kind.fields_of(first))
    assert len(kind.of_account(owned.seq)) == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_of_several_that_are_called_the_same_none_is_changed(owned, kind):
    fields = kind.checked(LEAST[kind])
    for _ in range(2):
        kind.created(owned, fields, clock.now_ms())
    with pytest.raises(Refused, match=f"2 {kind.name}s have this {kind.known_by[0]}") as refused:
        kind.put(owned, fields, clock.now_ms())
    assert refused.value.status == 409


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


def test_a_preset_gives_an_alert_its_templates_and_the_fields_beside_it_win(owned):
    grafana = presets.BY_ID["grafana"]
    alert, _ = put(ALERT, owned, {"name": "Disk", "preset": "grafana", "title": "Mine", "tag": None})
    assert (alert.title_template, alert.body_template, alert.tag_template) == ("Mine", grafana.body, None)
    assert (alert.icon, alert.color, alert.preset) == (grafana.icon, grafana.color, "grafana")


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


def test_a_rotated_heartbeat_has_another_address(owned):
    beat, _ = put(HEARTBEAT, owned, LEAST[HEARTBEAT])
    rotated = heartbeats.rotate_address(owned.seq, beat.id)
    assert rotated == beat._replace(ping_id=rotated.ping_id) and rotated.ping_id != beat.ping_id


def test_the_settings_of_an_account_change_together(owned):
    wanted = {"timeZone": "Europe/Berlin", "quietHours": "mo-fr 22:00-07:00; sa,su 23:00-09:00"}
    changed = account_change(owned, checked_account(wanted), clock.now_ms())()
    assert account_fields(changed) == wanted
    off = account_change(changed, checked_account({"quietHours": "off", "timeZone": None}), clock.now_ms())()
    assert account_fields(off) == {**wanted, "quietHours": "off"} and off.quiet_hours is None
