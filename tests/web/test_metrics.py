"""Metrics over the API: the list with the newest values, and the course of one as points."""

from urllib.parse import quote

import pytest

from core import firing
from store import custom_metrics
from tests.support.answers import error
from tests.support.rows import each
from tests.support.times import DAY_MS, MINUTE_MS, NOW
from web import metrics, rate_limits


@pytest.fixture
def owner(owner, moved_clock):
    return owner


def store(ids, *values, account=1, unit="%"):
    """Store these (value, time) pairs."""
    project, metric = ids
    rows = [(metric, "Load", float(n), unit, at, None) for n, at in values]
    for begin in range(0, len(rows), rate_limits.MAX_METRICS):
        firing.store_values(account, project, rows[begin : begin + rate_limits.MAX_METRICS])


def course(caller, ids, **asked):
    """The points, each as (at, mean, min, max)."""
    project, metric = (quote(part, safe="") for part in ids)
    answer = caller.get(f"/metrics/{project}/{metric}?{'&'.join(f'{name}={value}' for name, value in asked.items())}")
    assert answer.status_code == 200, answer.json
    return [(one["at"], one["mean"], one["min"], one["max"]) for one in answer.json["points"]]


def test_without_values_the_list_is_empty(owner):
    page = owner.get("/metrics").json
    assert (page["metrics"], page["pagination"]["isDone"]) == ([], True)
    assert owner.get(f"/metrics?cursor={page['pagination']['nextCursor']}").json == page


def test_the_list_has_each_metric_with_its_newest_value(owner, pro):
    store(("shop", "revenue"), (2, NOW - 5), (1, NOW - 9), unit=None)
    store(("nas", "cpu"), (3, NOW))
    store(("nas", "secret"), (3, NOW), account=2)
    store(("nas", "older than the history"), (3, NOW - 31 * DAY_MS))
    assert owner.get("/metrics").json["metrics"] == [
        {"project": "nas", "metric": "cpu", "name": "Load", "unit": "%", "value": 3.0, "at": NOW},
        {"project": "shop", "metric": "revenue", "name": "Load", "unit": None, "value": 2.0, "at": NOW - 5},
    ]


def test_the_list_continues_at_its_cursor(owner, monkeypatch):
    monkeypatch.setattr(metrics, "MAX_LISTED_SERIES", 2)
    names = [("a", "x/y"), ("a", "ü ?&="), ("b/c", "z")]
    for ids in names:
        store(ids, (1, NOW))
    found, cursor = [], ""
    while True:
        page = owner.get(f"/metrics?cursor={cursor}").json
        found += [(one["project"], one["metric"]) for one in page["metrics"]]
        cursor = page["pagination"]["nextCursor"]
        if page["pagination"]["isDone"]:
            break
        assert len(page["metrics"]) == 2
    assert found == names


@each("cursor", ["x", "shop", "c2hvcA==", "%00", "gA=="])
def test_a_cursor_that_was_not_given_is_refused(owner, cursor):
    answer = owner.get(f"/metrics?cursor={cursor}")
    assert (answer.status_code, answer.json) == (400, error(400))


def test_few_values_are_points_of_their_own(owner):
    store(("nas", "cpu"), (3, NOW), (1, NOW - 1), (2, NOW - DAY_MS), (9, NOW - DAY_MS - 1), (9, NOW + 1))
    expected = [(NOW - DAY_MS, 2, 2, 2), (NOW - 1, 1, 1, 1), (NOW, 3, 3, 3)]
    assert course(owner, ("nas", "cpu")) == expected
    assert course(owner, ("nas", "cpu"), **{"from": "", "to": ""}) == expected


def test_both_ends_belong_to_the_time_that_is_asked_for(owner):
    store(("nas", "cpu"), *((n, NOW - 10 + n) for n in range(10)))
    assert [point[1] for point in course(owner, ("nas", "cpu"), **{"from": NOW - 8, "to": NOW - 6})] == [2, 3, 4]
    assert [point[1] for point in course(owner, ("nas", "cpu"), to=NOW - 9)] == [0, 1]
    assert [point[1] for point in course(owner, ("nas", "cpu"), **{"from": NOW - 1})] == [9]
    assert course(owner, ("nas", "cpu"), to=0) == []


def test_a_thousand_values_are_points_of_their_own_and_more_are_summed_up(owner):
    store(("nas", "cpu"), *((n, NOW - n) for n in range(1_000)))
    assert len(course(owner, ("nas", "cpu"))) == 1_000
    store(("nas", "cpu"), (1_000, NOW - 1_000))
    assert course(owner, ("nas", "cpu")) == [(NOW - 500, 500, 0, 1_000)]


def test_the_parts_have_all_values_of_the_time(owner):
    store(("nas", "cpu"), *((n, NOW - n * MINUTE_MS // 2) for n in range(2_400)))
    points = course(owner, ("nas", "cpu"))
    assert 800 <= len(points) <= 1_000
    times = [point[0] for point in points]
    assert times == sorted(times) and times[0] >= NOW - DAY_MS and times[-1] <= NOW
    assert (points[-1][2], points[0][3]) == (0, 2_399)
    assert all(least <= mean <= most for _, mean, least, most in points)


def test_values_before_the_history_that_the_plan_keeps_are_not_given(owner):
    store(("nas", "cpu"), (1, NOW - 30 * DAY_MS - 1), (2, NOW - 30 * DAY_MS), (3, NOW))
    assert [point[1] for point in course(owner, ("nas", "cpu"), **{"from": 0})] == [2, 3]


ODD = [
    *("a/b", "/", "//", "a/", "/a", "?", "#", "%2F", "%", "a b", "+", "&=", "..", "ü", "🔔", "a\nb", '"', "\\", ";"),
    *("send",),
]


@each("odd", ODD)
def test_any_id_can_be_asked_for_percent_encoded(owner, odd):
    store((odd, "x"), (1, NOW))
    store(("x", odd), (2, NOW))
    assert course(owner, (odd, "x")) == [(NOW, 1, 1, 1)]
    assert course(owner, ("x", odd)) == [(NOW, 2, 2, 2)]


def test_an_encoded_slash_tells_which_id_it_belongs_to(owner):
    store(("a/b", "c"), (1, NOW))
    store(("a", "b/c"), (2, NOW))
    assert course(owner, ("a/b", "c")) == [(NOW, 1, 1, 1)]
    assert course(owner, ("a", "b/c")) == [(NOW, 2, 2, 2)]
    assert owner.get("/metrics/a/b/c").status_code == 404


@each(
    "path",
    [
        *("nas/ram", "NAS/cpu", "cpu/nas", "nas%2Fcpu/x", "nas/%00", "%FF/cpu", "nas/", "/nas/cpu", "nas/cpu/"),
        *("secret/cpu",),
    ],
)
def test_an_unknown_metric_is_not_found(owner, pro, path):
    store(("nas", "cpu"), (1, NOW))
    store(("secret", "cpu"), (1, NOW), account=2)
    answer = owner.get(f"/metrics/{path}")
    assert (answer.status_code, answer.json) == (404, error(404, "NOT_FOUND"))


@each("name", ["from", "to"])
@each("sent", ["x", "-1", "1.5", "1e3", "٣", "253402300800000", "9" * 400, f"{NOW // 1000}", " 1"])
def test_a_wrong_time_is_refused_by_name(owner, name, sent):
    store(("nas", "cpu"), (1, NOW))
    answer = owner.get(f"/metrics/nas/cpu?{name}={sent}")
    assert answer.status_code == 400 and answer.json["error"].startswith(f"{name} ")


def test_a_begin_after_the_end_is_refused(owner):
    store(("nas", "cpu"), (1, NOW))
    for asked in (f"from={NOW + 1}", f"from={NOW}&to={NOW - 1}"):
        answer = owner.get(f"/metrics/nas/cpu?{asked}")
        assert (answer.status_code, answer.json["error"]) == (400, "from must not be after to.")


def test_only_the_newest_of_very_many_values_are_summed_up(owner, monkeypatch):
    monkeypatch.setattr(metrics, "MAX_CHARTED", 10)
    store(("nas", "cpu"), *((n, NOW - n) for n in range(1_001)))
    assert course(owner, ("nas", "cpu")) == [(NOW - 5, 4.5, 0, 9)]
    assert custom_metrics.MAX_CHARTED == 600_000
