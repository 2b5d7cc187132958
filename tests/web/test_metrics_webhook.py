"""The custom-metrics webhook: batches, what is refused, the hourly quota."""

import json

from tests.support.accounts import account_set
from tests.support.rows import each
from tests.support.tables import alter, query
from tests.support.times import HOUR_S
from web import rate_limits

PATH = "/api/webhooks/custom"
LEFT_OUT = object()


def metric(**fields):
    """A valid metric with these fields replaced."""
    whole = {"metricId": "daily_revenue", "metricName": "Daily revenue", "value": 12.5} | fields
    return {name: value for name, value in whole.items() if value is not LEFT_OUT}


def batch(*metrics, **fields):
    whole = {"projectId": "shop", "metrics": list(metrics) or [metric()]} | fields
    return {name: value for name, value in whole.items() if value is not LEFT_OUT}


def post(caller, json=None, data=None):
    return caller.request("POST", PATH, json=batch() if json is data is None else json, data=data)


def statuses(caller, count, data=b"{}"):
    """The statuses of `count` requests, which by default store nothing."""
    return [post(caller, data=data).status_code for _ in range(count)]


def stored(service):
    """Every stored metric, oldest first."""
    columns = "account_seq, project_id, metric_id, metric_name, value, unit, timestamp, metadata"
    values = "metric JOIN metric_series ON metric_series.seq = metric.series_seq"
    return query(service, f"SELECT {columns} FROM {values} ORDER BY metric.seq")


def assert_stored(answer, count):
    assert (answer.status_code, answer.json) == (200, {"success": True, "metricsStored": count})
    assert answer.content_type == "application/json"


def refusal(answer, status=400):
    """The sentence of a refused request."""
    assert answer.status_code == status, answer.data
    assert answer.content_type == "application/json"
    assert list(answer.json) == ["error"] and type(answer.json["error"]) is str and answer.json["error"]
    return answer.json["error"]


# What is stored


def test_a_batch_is_stored_and_the_answer_says_how_many(service, owner, moved_clock):
    first = metric(unit="EUR", timestamp=1_795_000_000_000, metadata={"shop": "Wien", "n": [1, None]})
    assert_stored(post(owner, batch(first, metric(metricId="orders", metricName="Orders", value=7, unit="count"))), 2)
    revenue, orders = stored(service)
    assert revenue[:7] == (1, "shop", "daily_revenue", "Daily revenue", 12.5, "EUR", 1_795_000_000_000)
    assert json.loads(revenue[7]) == {"shop": "Wien", "n": [1, None]}
    assert orders == (1, "shop", "orders", "Orders", 7.0, "count", moved_clock.ms, None)


def test_a_metric_needs_only_its_id_its_name_and_a_value_and_null_counts_as_absent(service, owner, moved_clock):
    for nulls in ({}, dict.fromkeys(("unit", "timestamp", "metadata"))):
        assert_stored(post(owner, batch(metric(**nulls))), 1)
    assert stored(service) == [(1, "shop", "daily_revenue", "Daily revenue", 12.5, None, moved_clock.ms, None)] * 2


def test_the_same_metric_and_timestamp_twice_are_both_stored(service, owner):
    same = batch(metric(timestamp=5), metric(timestamp=5))
    assert_stored(post(owner, same), 2)
    assert_stored(post(owner, same), 2)
    assert len(stored(service)) == 4


@each("sign", ["", "-"])
def test_any_number_is_a_value(service, owner, sign):
    literals = ["0.0", "1", "0.25", "12.50", "1e308", "5e-324", "9007199254740993", "1" + "0" * 99]
    for literal in literals:
        data = json.dumps(batch(metric(value="#"))).replace('"#"', sign + literal).encode()
        assert_stored(post(owner, data=data), 1)
    assert [str(row[4]) for row in stored(service)[-len(literals) :]] == [
        str(0.0 + float(sign + one)) for one in literals
    ]


# What is refused

NO_TEXTS, NO_NAMES = (1, 0, 1.5, True, False, [], ["x"], {}), (LEFT_OUT, None, "", " ", " \t\n", "x" * 100_000)
NO_TIMES = ("1795000000000", "2026-11-21T10:00:00Z", "", True, False, [], {}, -1, -1.5, -1e15)
WRONG_FIELDS = {
    "metricId": (*NO_TEXTS, *NO_NAMES, "x" * 101),
    "metricName": (*NO_TEXTS, *NO_NAMES, "x" * 201),
    "value": (LEFT_OUT, None, "12.5", "", True, False, [], [1], {}, {"value": 1}),
    "unit": (*NO_TEXTS, "x" * 33),
    "timestamp": (*NO_TIMES, 10_000_000, 1_795_255_200, 10**12 - 1, 2**63, 10**19, 10**99, 1e300),
    "metadata": ("text", "", 1, 0, True, False, [], [{}], {"text": "x" * 4_086}, {"bytes": "é" * 2_100}),
}
WRONG = {
    "projectId": [batch(projectId=wrong) for wrong in (*NO_TEXTS, *NO_NAMES, "x" * 101)],
    "metrics": [batch(metrics=wrong) for wrong in (LEFT_OUT, None, 1, True, "x", {}, metric(), [], [metric()] * 101)],
    "metrics[1]": [batch(metric(), wrong) for wrong in (1, None, "text", True, [], [metric()])],
    **{
        f"metrics[1].{name}": [batch(metric(), metric(**{name: value})) for value in wrong]
        for name, wrong in WRONG_FIELDS.items()
    },
}


@each("place, batches", WRONG.items())
def test_a_field_that_is_missing_or_wrong_is_refused_with_its_place_and_nothing_stored(service, pro, place, batches):
    for sent in batches:
        sentence = refusal(post(pro, sent))
        assert sentence.startswith(f"{place} ") and not sentence.endswith("."), sent
    assert stored(service) == []


def test_100_metrics_are_taken(service, owner):
    assert_stored(post(owner, batch(*[metric()] * 100)), 100)
    assert len(stored(service)) == 100


# `timestamp`


def test_a_timestamp_is_milliseconds_of_any_time_and_a_float_is_truncated(service, owner, moved_clock):
    now = moved_clock.ms
    later = now + 365 * 24 * HOUR_S * 1_000
    kept = {-0.5: 0, 0: 0, 0.9: 0, 9_999_999: 9_999_999, now: now, now + 0.25: now, now + 0.9: now, 1e12: 10**12}
    kept[later] = later
    assert_stored(post(owner, batch(*[metric(timestamp=timestamp) for timestamp in kept])), len(kept))
    assert [row[6] for row in stored(service)] == list(kept.values())


# Lengths


@each("column, name, limit", [(1, "projectId", 100), (2, "metricId", 100), (3, "metricName", 200)])
def test_an_id_or_a_name_may_have_1_to_so_many_characters_after_trimming(service, owner, column, name, limit):
    for text in ("x", "😀" * limit, " \t\n" + "é" * limit + " \r\n"):
        sent = batch(projectId=text) if name == "projectId" else batch(metric(**{name: text}))
        assert_stored(post(owner, sent), 1)
        assert stored(service)[-1][column] == text.strip()


def test_a_unit_has_at_most_32_characters(service, owner):
    assert_stored(post(owner, batch(metric(unit="%"), metric(unit="€" * 32))), 2)
    assert [row[5] for row in stored(service)] == ["%", "€" * 32]


def test_metadata_has_at_most_4096_bytes_as_compact_json(service, owner):
    for fits in ({"text": "x" * (4_096 - len('{"text":""}'))}, {}):
        assert_stored(post(owner, data=json.dumps(batch(metric(metadata=fits)), indent=8).encode()), 1)
        assert json.loads(stored(service)[-1][7]) == fits


# All or nothing


def test_a_write_that_cannot_be_made_is_500_and_nothing_of_the_batch_is_stored(service, owner):
    full = "BEFORE INSERT ON metric WHEN NEW.metric_name = 'last' BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    alter(service, f"CREATE TRIGGER full {full}")
    body = batch(metric(), metric(), metric(metricName="last"))
    refusal(post(owner, body), 500)
    assert stored(service) == []
    alter(service, "DROP TRIGGER full")
    assert_stored(post(owner, body), 3)


# Requests per hour and account


def use_up(count, plan="starter"):
    """Count requests of the first account, as those count that are made."""
    assert rate_limits.limiter.limiter.hit(rate_limits.CUSTOM_METRICS[plan], "1", cost=count)


def test_a_refused_request_is_told_how_many_seconds_to_wait(service, owner, moved_clock):
    use_up(1)
    moved_clock.advance(600)
    use_up(99)
    moved_clock.advance(100)
    answer = post(owner)
    refusal(answer, 429)
    wait_s = int(answer.headers["Retry-After"])
    assert 2_900 <= wait_s <= 2_901
    assert stored(service) == []
    moved_clock.advance(wait_s - 2)
    assert statuses(owner, 1) == [429]
    moved_clock.advance(2)
    assert statuses(owner, 2) == [400, 429]


@each(
    "method, data, status",
    [
        ("POST", b"{", 400),
        ("POST", b'{"projectId": "shop", "metrics": []}', 400),
        ("POST", b" " * 1_100_000, 413),
        ("GET", None, 405),
        ("POST", json.dumps(batch()).encode(), 200),
    ],
)
def test_every_authenticated_request_counts(owner, moved_clock, method, data, status):
    moved_clock.advance(3_601)
    use_up(99)
    assert owner.request(method, PATH, data=data).status_code == status
    refusal(post(owner), 429)


def test_neither_another_accounts_requests_nor_those_to_rest_are_counted_with_them(service, owner):
    service.account("other@example.org")
    other = service.caller("other@example.org")
    use_up(100)
    refusal(post(owner), 429)
    assert_stored(post(other), 1)
    assert [one.get("/stats").headers["X-RateLimit-Remaining"] for one in (owner, other)] == ["99", "99"]


def test_after_a_change_to_a_smaller_plan_retry_after_still_says_when_there_is_room(service, moved_clock):
    email = service.account("scale@example.org", "scale")
    caller = service.caller(email)
    for _ in range(15):
        use_up(10, "scale")
        moved_clock.advance(100)
    account_set("--plan", "starter", email=email)
    wait_s = int(post(caller).headers["Retry-After"])
    moved_clock.advance(wait_s - 1)
    assert post(caller).status_code == 429
    moved_clock.advance(1)
    assert post(caller).status_code == 200
