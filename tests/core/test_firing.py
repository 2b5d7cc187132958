"""The states of a rule on a metric by the values that arrive, and what its owner is told, once."""

from itertools import pairwise

import pytest

from core import backoff, firing
from models import Account
from process import clock
from store import database, metric_rules, people
from store.database import transaction
from store.metric_rules import KEPT_FIRINGS
from tests.support.accounts import account_set
from tests.support.heartbeats import EMAIL, told
from tests.support.holding import QUIET
from tests.support.rows import each
from tests.support.rules import Ruled, send
from tests.support.tables import alter, query
from tests.support.times import HOUR_S, MINUTE_S

FIRES = ("CPU is 95 %", "Rule: > 90. Project: web.")


@pytest.fixture
def ago(moved_clock):
    """The timestamp of so many seconds ago; negative: in the future."""
    return lambda seconds: moved_clock.ms - seconds * 1000


# --- values -------------------------------------------------------------------------------------------------


@each(
    "condition, fires, is_ok",
    [
        ("> 90", [90.1, 91, 1e300], [90, 89, -1e300]),
        (">= 90", [90, 91], [89.9]),
        ("< 10", [9, 9.99, -5], [10, 11]),
        ("<= 10", [10, 9], [10.1]),
        ("= 0", [0, -0.0], [0.1, -1]),
        ("!= 0", [1, -1, 1e-300], [0]),
        (">-1.5e2", [-149], [-150]),
    ],
)
def test_a_value_makes_a_rule_fire_or_resolve(service, owner, condition, fires, is_ok):
    rule = Ruled(service, owner, condition)
    for bad in fires:
        for good in is_ok:
            rule.sends(bad)
            assert rule.state == "firing"
            rule.sends(good)
            assert rule.state == "ok"


def test_a_rule_fires_once_and_names_the_value_the_rule_and_the_project(owner, rule, passes, moved_clock):
    rule.sends(95)
    since = moved_clock.ms
    passes(MINUTE_S)
    rule.sends(96)
    rule.sends(99)
    passes(HOUR_S)
    assert (rule.state, rule.listed["firingSince"], told(owner)) == ("firing", since, [FIRES])
    assert owner.listed()[0]["priority"] == 4


def test_a_resolved_rule_replaces_its_notification(owner, browser, rule, passes):
    rule.sends(95)
    passes(3 * HOUR_S + 5 * MINUTE_S)
    rule.sends(40.25)
    rule.sends(41)
    passes(1)
    assert told(owner) == [FIRES, ("CPU is ok: 40.25 %", "Rule: > 90. Project: web. It fired for 3h 5m.")]
    ok, fired = owner.listed()
    assert (ok["priority"], ok["tag"]) == (2, fired["tag"])
    assert owner.get(f"/notifications/{fired['id']}").json["notification"]["replacedBy"] == ok["id"]
    assert (len(browser.messages), rule.state) == (2, "ok")


def test_a_notification_shows_a_value_as_it_was_sent(service, owner):
    rule = Ruled(service, owner, "!= 0")
    for value, unit, says in (
        (0.1 + 0.2, None, "0.3"),
        (1e6, " ", "1000000"),
        (1e300, " €", "1e+300 €"),
        (-1, "°C", "-1 °C"),
    ):
        rule.sends(value, unit=unit)
        assert told(owner)[-1][0] == f"CPU is {says}"
        rule.sends(0)


@each(
    "batches",  # each with its values and how many seconds ago they were measured, and the state after it
    [
        [([(95, 60), (50, 10), (96, 30)], "ok"), ([(95, 1), (50, 20)], "firing")],
        [([(50, 10), (95, 10)], "firing"), ([(50, 10)], "ok")],
        [([(50, 10)], "ok"), ([(95, 20)], "ok"), ([(95, 5)], "firing"), ([(50, 8)], "firing")],
    ],
)
def test_the_value_with_the_newest_time_decides_and_of_one_time_the_last(service, owner, ago, batches):
    rule = Ruled(service, owner, "> 90", metric=f"m{len(told(owner))}")
    before = len(told(owner))
    for values, state in batches:
        rule.sends(*((value, ago(seconds)) for value, seconds in values))
        assert rule.state == state
    assert len(told(owner)) - before == sum(one[1] != other[1] for one, other in pairwise([([], "ok"), *batches]))


def test_a_value_of_the_future_counts_when_its_time_has_come(owner, rule, passes, ago):
    rule.sends((95, ago(-60)), (50, ago(0)))
    passes(59)
    assert (rule.state, told(owner)) == ("ok", [])
    passes(1)
    assert (rule.state, told(owner)) == ("firing", [FIRES])


def test_future_values_count_in_order_and_not_after_a_newer_value_has_come(rule, passes, ago):
    rule.sends((95, ago(-10)), (50, ago(-20)), (95, ago(-30)), (50, ago(-7_000_000_000)))
    states = []
    for _ in range(4):
        passes(10)
        states.append(rule.state)
    assert states == ["firing", "ok", "firing", "firing"]
    rule.sends((50, ago(0)))
    assert rule.state == "ok"


def test_a_new_rule_is_judged_by_the_value_that_is_there(service, owner, passes):
    send(owner, 95)
    rule = Ruled(service, owner, "> 90")
    passes(1)
    assert (rule.state, told(owner)) == ("firing", [FIRES])


def test_each_rule_is_judged_separately_and_only_by_its_own_metric(service, owner):
    rules = [Ruled(service, owner, condition) for condition in ("> 90", "> 95", "< 10", "= 92", "!= 92", "silent 1h")]
    others = [Ruled(service, owner, "> 90", metric="ram"), Ruled(service, owner, "> 90", project="db")]
    rules[0].sends(92)
    assert [rule.state for rule in rules] == ["firing", "ok", "ok", "firing", "ok", "ok"]
    rules[0].sends(96)
    assert [rule.state for rule in rules] == ["firing", "firing", "ok", "ok", "firing", "ok"]
    rules[0].sends(92)
    assert [rule.state for rule in rules] == ["firing", "ok", "ok", "firing", "ok", "ok"]
    rules[0].sends(5)
    assert [rule.state for rule in rules] == ["ok", "ok", "firing", "ok", "firing", "ok"]
    assert [rule.state for rule in others] == ["ok", "ok"]


def test_a_value_that_comes_while_its_account_is_deleted_is_judged_by_no_rule(owner, rule, caplog):
    for value in (95, 96):  # from the second on the process knows the rule as it is now
        rule.sends(value)
    account = Account.find(EMAIL)
    with transaction(account.seq):
        people.end_access(account.seq)
    firing.store_values(account.seq, "web", [("cpu", "CPU", 50.0, None, clock.now_ms(), None)])
    assert caplog.text == ""


def test_values_of_another_account_change_no_rule(service, owner, rule):
    service.account("other@example.org")
    send(service.caller("other@example.org"), 95)
    assert rule.state == "ok"


def test_a_rule_keeps_its_state_when_its_values_are_deleted(service, owner, rule, passes):
    rule.sends(95)
    assert service.flask("metric", "delete", EMAIL, "web").exit_code == 0
    passes(HOUR_S)
    assert (rule.state, told(owner)) == ("firing", [FIRES])
    rule.sends(50)
    assert rule.state == "ok"


# --- quiet hours --------------------------------------------------------------------------------------------


def test_quiet_hours_hold_a_rule_and_its_resolve_and_release_one_notification(owner, browser, rule, passes, until):
    account_set("--quiet-hours", QUIET)
    until("2026-11-21T23:00")
    rule.sends(95)
    passes(MINUTE_S)
    assert ([one["status"] for one in owner.listed()], browser.pushes) == (["held"], [])
    rule.sends(50)
    until("2026-11-22T07:00")
    passes(0)
    assert [one["notification"]["title"] for one in browser.messages] == ["MCP - CPU is ok: 50 %"]


# --- exactly once -------------------------------------------------------------------------------------------


def test_a_rules_state_and_its_value_are_not_stored_without_its_notification(service, owner, rule, monkeypatch):
    """As when the process dies between them: all is one transaction."""

    def die(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(firing.maintenance, "tell", die)
        with pytest.raises(SystemExit):
            rule.sends(95)
    assert (rule.state, told(owner), query(service, "SELECT * FROM metric")) == ("ok", [], [])
    rule.sends(95)
    assert (rule.state, told(owner)) == ("firing", [FIRES])


def test_an_always_failing_rule_is_retried_with_growing_delays_and_delays_no_other(
    service, owner, passes, moved_clock, monkeypatch, caplog
):
    rules = [Ruled(service, owner, "silent 1m", metric=metric) for metric in ("a", "b")]
    failing, judge = {"a"}, firing._judge

    def fail(rule, *more, **named):
        if rule.metric_id in failing:
            raise ValueError("no")
        judge(rule, *more, **named)

    monkeypatch.setattr(firing, "_judge", fail)
    monkeypatch.setattr(backoff, "ROWS_AT_ONCE", 1)
    passes(MINUTE_S)
    for _ in range(240):  # it is tried after 1, 2, 4, 8, 16, 32, 60 and 60 s
        moved_clock.advance(1)
        firing.look_at_due(moved_clock.ms)
    assert [rule.state for rule in rules] == ["ok", "firing"]
    assert caplog.text.count(firing.UNJUDGED) == 9
    failing.clear()
    passes(MINUTE_S)
    assert rules[0].state == "firing" and firing.backoff._waits == {}


def test_a_fault_in_judging_one_rule_refuses_no_value_and_the_worker_tries_again(service, owner, passes, monkeypatch):
    rules = [Ruled(service, owner, "> 90"), Ruled(service, owner, "> 80")]
    passes(1)
    judge = firing._judge

    def fail(rule, *more, **named):
        judge(rule, *more, **named)
        if rule.id == rules[0].id:
            raise ValueError("no")

    with monkeypatch.context() as patch:
        patch.setattr(firing, "_judge", fail)
        rules[0].sends(95)
    assert ([rule.state for rule in rules], query(service, "SELECT value FROM metric")) == (["ok", "firing"], [(95,)])
    passes(1)
    assert ([rule.state for rule in rules], len(told(owner))) == (["firing", "firing"], 2)


def test_values_that_cannot_be_stored_with_what_they_change_are_refused(service, owner, rule):
    alter(service, "CREATE TRIGGER full BEFORE INSERT ON firing BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    batch = {"projectId": "web", "metrics": [{"metricId": "cpu", "metricName": "CPU", "value": 95}]}
    assert owner.request("POST", "/api/webhooks/custom", json=batch).status_code == 500
    alter(service, "DROP TRIGGER full")
    assert (rule.state, told(owner), query(service, "SELECT * FROM metric")) == ("ok", [], [])


# --- bounds -------------------------------------------------------------------------------------------------


def test_a_rule_that_is_deleted_once_it_was_found_to_be_due_is_passed_over(service, owner, monkeypatch, caplog):
    monkeypatch.setattr(metric_rules, "due", lambda now, most: [(Account.find(EMAIL).seq, 10**9)])
    assert not firing.look_at_due(clock.now_ms())
    assert caplog.text == ""


def test_the_newest_firings_of_a_rule_are_kept(service, owner, rule, moved_clock):
    service.account("other@example.org")
    (seq,) = (rule.seq for rule in metric_rules.of_account(1))
    with database.transaction(1):
        for number in range(KEPT_FIRINGS + 5):
            metric_rules.begin_firing(seq, number * 10)
            metric_rules.end_firing(number * 10 + 5, seq)
    times = [tuple(firing) for _, firing in metric_rules.firings_within([seq], 0, 10**9)]
    assert times == [(number * 10, number * 10 + 5) for number in range(5, KEPT_FIRINGS + 5)]
    assert [tuple(firing) for _, firing in metric_rules.firings_within([seq], 75, 80)] == [(70, 75), (80, 85)]


def test_a_deleted_rule_is_not_judged_and_leaves_only_its_notifications(service, owner, rule):
    rule.sends(95)
    assert service.flask("rule", "delete", EMAIL, rule.id).exit_code == 0
    rule.sends(50)
    assert told(owner) == [FIRES]
    assert query(service, "SELECT (SELECT count(*) FROM firing) + (SELECT count(*) FROM metric_rule)") == [(0,)]
