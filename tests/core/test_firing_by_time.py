"""Rules on metrics for which the time decides, too: `silent`, `--for`, downtime, a clock that is set."""

import pytest

from core import heartbeat_checks
from process import clock
from tests.support.heartbeats import EMAIL, told
from tests.support.rows import each
from tests.support.rules import Ruled, send
from tests.support.times import DAY_S, HOUR_S, MINUTE_S

SILENT = ("CPU is silent", "Rule: silent 1d. Project: web.")
FIRES = ("CPU is 95 %", "Rule: > 90 for 5m. Project: web.")


@pytest.fixture
def silent(service, owner):
    """A rule of the owner that a value is to arrive each day."""
    return Ruled(service, owner, "silent 24h")


@pytest.fixture
def lasting(service, owner):
    """A rule of the owner that the CPU is to have more than 90 % for at most five minutes."""
    return Ruled(service, owner, "> 90", "--for", "5m")


# --- silent -------------------------------------------------------------------------------------------------


def test_a_silence_rule_fires_when_no_value_arrived_for_its_duration(owner, silent, passes):
    passes(HOUR_S)
    silent.sends(0)
    passes(DAY_S - 1)
    assert (silent.state, told(owner)) == ("ok", [])
    passes(1)
    passes(DAY_S)
    assert (silent.state, told(owner)) == ("firing", [SILENT])
    assert owner.listed()[0]["priority"] == 4


def test_without_values_the_silence_counts_from_the_rules_creation(owner, silent, passes):
    passes(DAY_S - 1)
    assert silent.state == "ok"
    passes(1)
    assert told(owner) == [("cpu is silent", SILENT[1])]


@pytest.mark.parametrize("away_s", [-40 * DAY_S, 3 * DAY_S])
def test_silence_counts_by_arrival_and_not_by_timestamp(owner, silent, passes, moved_clock, away_s):
    passes(DAY_S - 1)
    silent.sends((0, moved_clock.ms + away_s * 1000))
    passes(DAY_S - 1)
    assert silent.state == "ok"
    passes(1)
    assert silent.state == "firing"


def test_a_value_resolves_a_silence_rule_and_replaces_its_notification(owner, silent, passes):
    silent.sends(0)
    passes(DAY_S)
    passes(HOUR_S)
    silent.sends(0)
    silent.sends(0)
    sent = ("CPU is sent again", "Rule: silent 1d. Project: web. It fired for 1h.")
    assert (silent.state, told(owner)) == ("ok", [SILENT, sent])
    ok, fired = owner.listed()
    assert (ok["priority"], ok["tag"]) == (2, fired["tag"])
    passes(DAY_S)
    assert silent.state == "firing"
    silent.sends(0)
    passes(DAY_S - 1)
    assert silent.state == "ok"


def test_a_value_that_arrives_before_the_worker_looks_prevents_firing(owner, silent, passes, moved_clock):
    silent.sends(0)
    moved_clock.advance(2 * DAY_S)
    silent.sends(0)
    passes(0)
    assert (silent.state, told(owner)) == ("ok", [])


def test_arrivals_count_for_each_metric_whatever_batches_they_came_in(service, owner, passes):
    rules = {metric: Ruled(service, owner, "silent 1h", metric=metric) for metric in "abc"}
    for batch in ("abc", "ba", "b", "ab"):
        passes(MINUTE_S)
        metrics = [{"metricId": metric, "metricName": metric.upper(), "value": 1} for metric in batch]
        owner.request("POST", "/api/webhooks/custom", json={"projectId": "web", "metrics": metrics})
    send(owner, 1, metric="c", project="db")
    passes(57 * MINUTE_S - 1)
    assert {rule.state for rule in rules.values()} == {"ok"}
    passes(1)
    assert [rule.state for rule in rules.values()] == ["ok", "ok", "firing"]
    passes(3 * MINUTE_S - 1)
    assert [rule.state for rule in rules.values()] == ["ok", "ok", "firing"]
    passes(1)
    assert {rule.state for rule in rules.values()} == {"firing"}


# --- for ----------------------------------------------------------------------------------------------------


def test_a_rule_with_for_fires_when_no_value_has_broken_it_since(owner, lasting, passes):
    lasting.sends(95)
    passes(5 * MINUTE_S - 1)
    assert lasting.state == "ok"
    passes(1)
    passes(HOUR_S)
    assert (lasting.state, told(owner)) == ("firing", [FIRES])


def test_an_older_value_that_comes_late_ends_no_firing(lasting, passes, moved_clock):
    lasting.sends(95)
    passes(5 * MINUTE_S)
    lasting.sends((50, moved_clock.ms - 6 * MINUTE_S * 1000))
    assert lasting.state == "firing"


def test_one_value_that_does_not_meet_a_rule_restarts_its_for(owner, lasting, passes):
    lasting.sends(95)
    passes(4 * MINUTE_S)
    lasting.sends(90)
    lasting.sends(95)
    passes(5 * MINUTE_S - 1)
    assert (lasting.state, told(owner)) == ("ok", [])
    passes(1)
    assert lasting.state == "firing"
    lasting.sends(90)
    assert lasting.state == "ok"


def test_the_values_of_a_batch_count_by_their_timestamps(owner, lasting, moved_clock):
    def minutes(*values):
        last = len(values) - 1
        lasting.sends(*((value, moved_clock.ms - (last - place) * 60_000) for place, value in enumerate(values)))

    minutes(95, 95, 95, 50, 95, 95)
    assert lasting.state == "ok"
    moved_clock.advance(HOUR_S)
    minutes(50, 95, 95, 95, 95, 95, 95)
    assert (lasting.state, told(owner)) == ("firing", [FIRES])


def test_a_late_value_that_does_not_meet_a_rule_restarts_its_for(lasting, passes, moved_clock):
    lasting.sends(95)
    passes(4 * MINUTE_S)
    lasting.sends(95)
    lasting.sends((50, moved_clock.ms - 2 * MINUTE_S * 1000))
    passes(2 * MINUTE_S)
    lasting.sends(95)
    assert lasting.state == "ok"
    passes(3 * MINUTE_S)
    assert lasting.state == "firing"


def test_more_values_than_are_read_do_not_restart_for(lasting, passes):
    lasting.sends(95)
    for _ in range(2):
        passes(2 * MINUTE_S)
        lasting.sends(*[96] * 100)
    assert lasting.state == "ok"
    passes(MINUTE_S)
    assert lasting.state == "firing"


def test_the_order_of_arrival_of_values_does_not_change_a_rules_state(service, owner, moved_clock):
    ago = [(95, moved_clock.ms - seconds * 1000) for seconds in (400, 200, 10)]
    for project, order in enumerate(([0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1])):
        rule = Ruled(service, owner, "> 90", "--for", "5m", project=f"p{project}")
        for place in order:
            rule.sends(ago[place])
        assert (project, rule.state) == (project, "firing")


def test_a_late_value_that_meets_a_rule_lengthens_its_for_without_counting_downtime(lasting, passes, restarted):
    lasting.sends(95)
    sent_at = clock.now_ms()
    passes(MINUTE_S)
    restarted(HOUR_S)
    lasting.sends((95, sent_at - MINUTE_S * 1000))
    passes(3 * MINUTE_S - 1)
    assert lasting.state == "ok"
    passes(1)
    assert lasting.state == "firing"


@each("metric", [["cpu"], []])
def test_deleted_values_no_longer_count_for_a_rule(service, owner, lasting, passes, metric):
    lasting.sends(95)
    passes(4 * MINUTE_S)
    assert service.flask("metric", "delete", EMAIL, "web", *metric).exit_code == 0
    lasting.sends(95)
    passes(5 * MINUTE_S - 1)
    assert lasting.state == "ok"
    passes(1)
    assert lasting.state == "firing"
    lasting.sends(50)


def test_silence_goes_on_counting_when_the_values_are_deleted(service, owner, silent, passes):
    silent.sends(1)
    passes(HOUR_S)
    assert service.flask("metric", "delete", EMAIL, "web").exit_code == 0
    passes(23 * HOUR_S)
    assert silent.state == "firing"


def test_a_future_value_does_not_delay_a_rule_with_for(lasting, passes, moved_clock):
    lasting.sends(95, (95, moved_clock.ms + 600_000))
    passes(5 * MINUTE_S)
    assert lasting.state == "firing"


# --- the service's downtime, and the clock ------------------------------------------------------------------


def test_while_the_service_is_away_no_silence_counts(owner, silent, passes, restarted):
    silent.sends(0)
    passes(HOUR_S)
    restarted(5 * DAY_S)
    assert (silent.state, told(owner)) == ("ok", [])
    passes(23 * HOUR_S - 1)
    assert silent.state == "ok"
    passes(1)
    assert silent.state == "firing"


def test_a_value_that_arrives_before_the_first_look_after_the_downtime_is_not_moved(silent, passes, moved_clock):
    passes(HOUR_S)
    moved_clock.advance(2 * HOUR_S)
    heartbeat_checks._looked = heartbeat_checks._noted = None
    clock.begin()
    silent.sends(0)
    passes(20)
    passes(DAY_S - 21)
    assert silent.state == "ok"
    passes(1)
    assert silent.state == "firing"


def test_after_downtime_a_rule_waits_for_values_sent_meanwhile(owner, lasting, passes, restarted):
    lasting.sends(95)
    passes(MINUTE_S)
    restarted(HOUR_S)
    passes(4 * MINUTE_S - 1)
    assert (lasting.state, told(owner)) == ("ok", [])
    passes(1)
    assert lasting.state == "firing"


def test_values_before_and_after_the_downtime_count_by_their_timestamps(lasting, passes, restarted):
    lasting.sends(95)
    passes(MINUTE_S)
    restarted(HOUR_S)
    lasting.sends(95)
    assert lasting.state == "firing"


@pytest.mark.parametrize("step_s", [-2 * HOUR_S, 5 * DAY_S, 2 * DAY_S, -400 * DAY_S])
def test_a_step_of_the_wall_clock_causes_no_false_silence_and_delays_no_true_one(
    owner, silent, passes, moved_clock, step_s
):
    silent.sends(0)
    passes(HOUR_S)
    moved_clock.set_wall(moved_clock.ms + step_s * 1000)
    passes(0)
    passes(23 * HOUR_S - 1)
    assert (silent.state, told(owner)) == ("ok", [])
    passes(1)
    assert silent.state == "firing"


@pytest.mark.parametrize("step_s", [-MINUTE_S, HOUR_S])
def test_a_step_of_the_wall_clock_does_not_shorten_for(owner, lasting, passes, moved_clock, step_s):
    passes(HOUR_S)
    lasting.sends(50)
    passes(2 * MINUTE_S)
    lasting.sends((95, moved_clock.ms - MINUTE_S * 1000))
    passes(MINUTE_S)
    moved_clock.set_wall(moved_clock.ms + step_s * 1000)
    passes(0)
    passes(3 * MINUTE_S - 1)
    assert (lasting.state, told(owner)) == ("ok", [])
    passes(1)
    assert lasting.state == "firing"


def test_setting_the_clock_does_not_change_how_long_a_rule_fired(service, owner, passes, moved_clock):
    rule = Ruled(service, owner, "> 90")
    rule.sends(95)
    passes(MINUTE_S)
    moved_clock.set_wall(moved_clock.ms + 5 * HOUR_S * 1000)
    passes(0)
    assert rule.listed["firingSince"] == moved_clock.ms - MINUTE_S * 1000
    passes(MINUTE_S)
    rule.sends(50)
    assert told(owner)[1][1].endswith("It fired for 2m.")
