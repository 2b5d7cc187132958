"""The pages of metrics: by project, one with its chart and table, its values as CSV."""

import csv
import io
import random
from statistics import fmean
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

import dashboard.metrics
import store.rows
from core import firing, plans
from core.local_time import day_bounds, local_day
from store import database
from store.custom_metrics import (
    BUCKETS,
    LATEST,
    MAX_LISTED_SERIES,
    NEWEST,
    SAMPLES,
    SERIES_SEQS,
    MetricValue,
    list_series,
)
from tests.support.accounts import account_set
from tests.support.hostile import SHORT
from tests.support.pages import drawing, joined
from tests.support.postgresql import sqlite_only
from tests.support.rows import each
from tests.support.rules import Ruled
from tests.support.times import DAY_MS, MINUTE_MS, NOW, at_little_cost

HOUR_MS = 3_600_000
RANGES = {  # by name: how long each is, and each of its parts
    "24 h": (DAY_MS, 5 * MINUTE_MS),
    "7 d": (7 * DAY_MS, 30 * MINUTE_MS),
    "30 d": (30 * DAY_MS, 2 * HOUR_MS),
    "90 d": (90 * DAY_MS, 6 * HOUR_MS),
    "1 y": (365 * DAY_MS, DAY_MS),
}
LAST = 253_402_300_799_999


def send(service, value, at=NOW, project="home", metric="temperature", name="Temperature", unit="°C"):
    """Send values through the webhook: a list of `(value, ms)`, or one value at `at`."""
    pairs = value if isinstance(value, list) else [(value, at)]
    if not hasattr(service, "sender"):
        service.sender = service.caller()
    for start in range(0, len(pairs), 50):
        part = [
            {"metricId": metric, "metricName": name, "value": one, "unit": unit, "timestamp": at}
            for one, at in pairs[start : start + 50]
        ]
        answer = service.sender.request("POST", "/api/webhooks/custom", json={"projectId": project, "metrics": part})
        assert answer.status_code == 200, answer.text


def add(*rows, project="home", metric="m"):
    """Put values `(value, ms)` into the database."""
    account = database.run("SELECT min(seq) FROM account").fetchone()[0]
    values = [MetricValue(metric, "M", value, None, at, None) for value, at in rows]
    for start in range(0, len(values), 500):
        firing.store_values(account, project, values[start : start + 500])


def one(owner, project="home", metric="m", chosen="24 h"):
    return owner.page(f"/app/metrics/one?{urlencode({'project': project, 'metric': metric, 'range': chosen})}")


def table(page):
    """The rows of the table, the oldest first: values, mean, least, most."""
    cells = page.texts_of("td")
    return [tuple(cells[n + 1 : n + 5]) for n in range(0, len(cells), 5)][::-1]


def lines(page, class_="chart-line"):
    """The points of each line of the server's pictures of this class."""
    found = []
    for drawn in page.elements:
        if drawn.tag in ("circle", "polyline") and drawn.parent.attributes.get("class") == class_:
            pairs = drawn.attributes.get("points") or "{cx},{cy}".format_map(drawn.attributes)
            found.append([(float(x), float(y)) for x, y in (pair.split(",") for pair in pairs.split())])
    return found


def points(page, class_="chart-line"):
    return [point for line in lines(page, class_) for point in line]


def rows(owner, **query):
    answer = owner.get(f"/app/metrics/one.csv?{urlencode({'project': 'home', 'metric': 'm', **query})}")
    assert answer.status_code == 200 and answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["Content-Disposition"]
    return list(csv.reader(io.StringIO(answer.text, newline="")))


# --- the list -----------------------------------------------------------------------------------------------


def test_metrics_are_listed_by_project_in_order_with_their_latest_values(service, owner):
    send(service, 1, project="b", metric="z", name="Z")
    send(service, 2, project="b", metric="a", name="A", unit="kWh")
    send(service, [(9, NOW - 1000), (1234.5, NOW), (8, NOW - 2000)], project="a", metric="m", name="Of a")
    page = owner.page("/app/metrics")
    assert page.texts_of("h2") == ["a", "b"] and page.texts_of("strong") == ["Of a", "A", "Z"]
    assert page.texts_of("span", **{"class": "value"}) == [
        "1,234.50 °Cmin 8 · max 1,234.50",
        "2 kWhmin 2 · max 2",
        "1 °Cmin 1 · max 1",
    ]


@each(
    "hours_ago, before, now, said",
    [
        (25, 450, 438, "−12 °C in 24 h"),
        (1, 450, 438, None),  # only today
        (49, 450, 438, None),  # only before that day
        (25, -1e308, 1e308, None),  # too large for a number
    ],
)
def test_the_page_says_by_how_much_the_value_changed_in_a_day(service, owner, hours_ago, before, now, said):
    metric = f"{hours_ago} {before}"
    send(service, [(before, NOW - hours_ago * HOUR_MS), (now, NOW)], metric=metric)
    page = one(owner, metric=metric)
    assert said in page.main if said else "in 24 h" not in page.main


def test_a_metric_is_listed_with_the_rule_that_fires_or_how_many_do_not(service, owner):
    rule = Ruled(service, service.caller(), "> 20", project="home", metric="temperature")
    Ruled(service, service.caller(), "silent 1d", project="home", metric="temperature")
    rule.sends(10)
    assert "2 rules, fine" in owner.page("/app/metrics").main
    rule.sends(21)
    assert "above 20 % since today 10:00" in owner.page("/app/metrics").main


def test_of_two_values_at_one_time_the_later_sent_is_the_latest(service, owner):
    send(service, 1)
    send(service, 2)
    assert owner.page("/app/metrics").texts_of("span", **{"class": "value"}) == ["2 °Cmin 1 · max 2"]


def test_the_range_of_the_list_is_that_of_a_metrics_page_and_a_long_one_has_no_minimum_and_maximum(owner):
    add((1, NOW - 20 * DAY_MS))
    page = owner.page("/app/metrics?range=30+d")
    (row,) = page.row_links()
    assert page.texts_of("span", **{"class": "value"}) == ["1"]
    assert table(owner.page(row.attributes["href"]))[0][0] == "1"


def test_without_metrics_the_page_says_how_to_send_one(owner):
    assert "/api/webhooks/custom" in owner.page("/app/metrics").texts_of("code", id="metric-curl")[0]


@each("query", ["", "project=home", "metric=m", "project=m&metric=home", "project=home&metric=M"])
@each("page", ["one", "one.csv"])
def test_an_unknown_metric_is_404(owner, query, page):
    add((1, NOW))
    assert owner.get(f"/app/metrics/{page}?{query}").status_code == 404


@each("chosen", ["", "7 d ", "1 y"])  # the plan keeps no year
def test_an_unknown_range_is_a_day(owner, chosen):
    add((1, NOW - 2 * DAY_MS))
    assert "No values in the last 24 h." in one(owner, chosen=chosen).text


@each("plan, names", [("starter", list(RANGES)[:3]), ("pro", list(RANGES))])
def test_the_ranges_are_those_that_the_plan_keeps(owner, plan, names):
    account_set("--plan", plan)
    add((1, NOW))
    page = one(owner)
    for shown in (page, owner.page("/app/metrics")):
        assert [text for text in shown.texts_of("a") if text in RANGES] == names
    assert f"kept for {plans.PLANS[plan].history_days:,} days" in page.main


# --- the chart and its table --------------------------------------------------------------------------------


@each("chosen", RANGES)
def test_the_chart_and_its_table_have_counts_means_least_and_most_of_each_part(owner, chosen):
    account_set("--plan", "scale")
    span, width = RANGES[chosen]
    since = NOW // width * width - span  # parts begin with the day
    dice = random.Random(chosen)
    values = [(dice.randrange(-1000, 1000), NOW - dice.randrange(1, span)) for _ in range(100)]
    values += [(5, since), (7, since - 1), (9, NOW + 1)]  # the last two are outside
    add(*values, metric=chosen)
    parts = dict[int, list[tuple[int, int]]]()
    for value, at in values:
        if since <= at <= NOW:
            parts.setdefault((at - since) // width, []).append((at, value))
    page, ordered = one(owner, metric=chosen, chosen=chosen), [part for _, part in sorted(parts.items())]
    shown = [[float(cell.replace(",", "")) for cell in row] for row in table(page)]
    drawn = drawing(page)
    columns = (drawn[name] for name in ("counts", "means", "least", "most", "times"))
    charted = [row for row in zip(*columns, strict=True) if row[0] is not None]
    for row, point, part in zip(shown, charted, ordered, strict=True):
        numbers, times = [value for _, value in part], [at for at, _ in part]
        assert row == [len(part), pytest.approx(fmean(numbers), rel=1e-3, abs=0.01), min(numbers), max(numbers)]
        expected = (len(part), pytest.approx(fmean(numbers), rel=1e-5), min(numbers), max(numbers))
        assert point == (*expected, (min(times) + max(times)) // 2 - since)
    assert (drawn["since"], drawn["until"], drawn["width"], drawn["zone"]) == (since, NOW, width, "UTC")


@each("zone", ["America/St_Johns", "Asia/Kathmandu"])
def test_a_day_of_a_year_is_the_owners_day(owner, zone):
    account_set("--plan", "scale", "--timezone", zone)
    midnight, _ = day_bounds(local_day(NOW - 3 * DAY_MS, zone), zone)
    add((1, midnight), (2, midnight + DAY_MS - 1), (3, midnight + DAY_MS), metric=zone)
    assert [row[0] for row in table(one(owner, metric=zone, chosen="1 y"))] == ["2", "1"]


def test_parts_stay_the_same_while_time_passes(owner, moved_clock):
    add(*((n, NOW - 40 * MINUTE_MS + n * 17_000) for n in range(60)))
    before = drawing(one(owner))
    moved_clock.advance(4 * 60)
    after = drawing(one(owner))
    assert (after["since"], after["means"]) == (before["since"], before["means"])


def test_a_time_without_values_is_a_gap_and_not_zero(owner):
    away = range(100, 120)
    add(*((n, NOW - n * 5 * MINUTE_MS) for n in range(280) if n not in away))
    page = one(owner)
    means = drawing(page)["means"]
    assert (means.count(None), means.index(None), len(means)) == (1, 280 - 120, 280 - 20 + 1)
    assert [len(line) for line in lines(page)] == [160, 100]
    (label,) = [it["aria-label"] for it in page.all("div") if it.get("role") == "img"]
    assert label == "Chart of M, last 24 h: min 0, max 279, with 1 gap"


def test_values_that_come_seldom_are_one_line_unless_some_are_missing(owner):
    def drawn(hours):
        add(*((n, NOW - n * HOUR_MS - n % 5 * MINUTE_MS) for n in hours), metric=str(hours))
        return [len(line) for line in lines(one(owner, metric=str(hours)))]

    assert drawn(range(24)) == [24]
    assert drawn([*range(10), *range(12, 24)]) == [12, 10]
    assert drawn([1, 20]) == [2]


def test_a_value_of_now_is_in_the_chart_and_no_part_ends_later(owner):
    add(*((n, NOW - n * DAY_MS // 48) for n in range(49)))
    page = one(owner)
    assert sum(int(row[0]) for row in table(page)) == 49
    assert all(0 <= x <= 600 and 0 <= y <= 160 for x, y in points(page))


def test_a_chart_has_the_newest_values_and_says_so_if_there_are_more(owner, monkeypatch):
    add(*((n, NOW - n * MINUTE_MS) for n in range(50)))
    assert "The chart has" not in one(owner).main
    monkeypatch.setattr(dashboard.metrics, "MAX_CHARTED", 20)
    page = one(owner)
    assert "The chart has the newest 20 values." in page.main
    assert sum(int(row[0]) for row in table(page)) == 20 and max(drawing(page)["most"]) == 19


def test_all_that_the_chart_and_its_table_show_is_one_query(owner, monkeypatch):
    add(*((n, NOW - n * MINUTE_MS) for n in range(500)))
    asked, run = [], store.rows.run
    monkeypatch.setattr(store.rows, "run", lambda query, *values: (asked.append(query), run(query, *values))[1])
    assert drawing(one(owner)) and asked.count(BUCKETS.statement) == 1
    assert {one for one in asked if "FROM metric " in one} == {LATEST.statement, BUCKETS.statement}


def test_a_unit_reaches_the_chart_as_it_is(service, owner):
    unit = "'\"<b></div>&quot;\u2028%"
    send(service, 1, metric="m", unit=unit)
    (plot,) = [it for it in one(owner).all("div") if it.get("class") == "plot"]
    assert plot["data-unit"] == unit


def test_one_value_is_a_point(owner):
    add((42, NOW - 1))
    page = one(owner)
    drawn = drawing(page)
    assert len(points(page)) == 1 and page.all("circle")
    assert (drawn["means"], drawn["counts"], drawn["since"] + drawn["times"][0]) == ([42], [1], NOW - 1)
    assert owner.page("/app/metrics").all("circle")


def test_a_greater_value_is_higher_and_equal_ones_are_a_level_line(owner):
    add((1, NOW - 9 * HOUR_MS), (2, NOW - 5 * HOUR_MS), (3, NOW - HOUR_MS))
    add(*((42, NOW - n * HOUR_MS) for n in range(1, 9)), metric="level")
    (_, first), (_, second), (_, third) = points(one(owner))
    assert 160 > first > second > third > 0 and second == pytest.approx(80, abs=0.2)
    assert {y for _, y in points(one(owner, metric="level"))} == {80}


EXTREMES = [
    [1e308, -1e308],
    [1e308, 1e308, 1e308],
    [1.7976931348623157e308, -1.7976931348623157e308, 0],
    [5e-324, 0, -5e-324],
    [1e-310, 2e-310],
    [1e-307, -1e-307],
    [1e308, 1e-308],
    [1, 1 + 2**-52],
    [2**53, 2**53 + 2],
    [-0.0, 0.0],
]
DRAWN = [[-0.0, 0.0]]


def test_extreme_values_are_drawn_within_the_picture(owner):
    cases = [(values, HOUR_MS) for values in EXTREMES] + [(values, 1) for values in EXTREMES[:4]]
    for values, apart in cases:
        add(*((value, NOW - 1 - n * apart) for n, value in enumerate(values)), metric=f"{values} {apart}")
    sparks = lines(owner.page("/app/metrics"), "spark")
    assert len(sparks) == len(cases) and all(0 <= y <= 160 for spark in sparks for _, y in spark)
    for values, apart in cases:
        page = one(owner, metric=f"{values} {apart}")
        assert all(0 <= x <= 600 and 0 <= y <= 160 for x, y in points(page)), values
        assert (drawing(page) is None) == (values not in DRAWN), values  # what is not, has its picture and its table
        assert "nan" not in page.main.lower() and "inf" not in page.main.lower(), values


@each("values, mean", [([1e308] * 3 + [0], 7.5e307), ([1e308] * 4, 1e308), ([1e308] * 4 + [-1e308] * 4, 0)])
def test_the_mean_is_right_even_if_the_sum_overflows(owner, values, mean):
    add(*((value, NOW - 1) for value in values), metric=str(values))
    ((count, shown, least, most),) = table(one(owner, metric=str(values)))
    assert float(shown) == pytest.approx(mean, rel=1e-3)
    assert (count, float(least), float(most)) == (str(len(values)), min(values), max(values))


@each(
    "at, zone",
    [
        (NOW - 29 * DAY_MS, "UTC"),
        (NOW + 1, "Asia/Tokyo"),
        (NOW + DAY_MS, "America/Los_Angeles"),
        *((at, zone) for at in (LAST - DAY_MS, LAST) for zone in ("America/Los_Angeles", "Pacific/Kiritimati")),
    ],
)
def test_a_value_with_any_timestamp_breaks_no_page(service, owner, at, zone):
    account_set("--timezone", zone)
    metric = f"{at} {zone}"
    send(service, 21.5, at, metric=metric)
    assert set(owner.page("/app/metrics").texts_of("span", **{"class": "value"})) == {"21.5 °C"}
    page = one(owner, metric=metric)
    assert "21.5" in page.main and "No values in the last 24 h." in page.main
    assert rows(owner, metric=metric) == [["time", "value", "unit"]]


# --- links and hostile texts --------------------------------------------------------------------------------

ODD_IDS = ["a/b?a&b=c;#%2F100%+", '🔥 ü\\x"\u202e', "..", "x" * 100]


def test_links_to_a_metric_work_for_any_name(service, owner):
    names = ["plain", *SHORT, *ODD_IDS]
    for name in names:
        values = [(2, NOW - HOUR_MS), (3, NOW)]
        send(service, values, project=name, metric=name, name=name, unit=name[:32].strip())
    rows_of_list = [row.attributes["href"] for row in owner.page("/app/metrics").row_links()]
    links = {dict(parse_qsl(urlsplit(href).query))["project"]: href for href in rows_of_list}
    assert set(links) == {name.strip() for name in names}
    plain = owner.page(links["plain"])
    for name in names:
        check_page_of_metric(owner, name, owner.page(links[name.strip()]), plain)


def check_page_of_metric(owner, name, page, plain):
    assert page.texts_of("h1") == [joined([name, " ", name])]
    unit = name[:32].strip()
    assert unit.split()[-1] in page.main, name
    assert {one.tag for one in page.elements} == {one.tag for one in plain.elements}, name
    own = [a["href"] for a in page.all("a") if "project=" in a["href"] and "csv" not in a["href"]]
    meant = [{one: text for one, text in parse_qsl(urlsplit(href).query) if one != "range"} for href in own]
    assert own and meant == [{"project": name.strip(), "metric": name.strip()}] * len(own), name
    assert owner.page(own[-1]).texts_of("h1") == page.texts_of("h1"), name
    (download,) = [a["href"] for a in page.all("a") if "csv" in a["href"]]
    got = list(csv.reader(io.StringIO(owner.get(download).text, newline="")))
    assert [row[1] for row in got[1:]] == ["2.0", "3.0"], name
    assert all(row[2] in (unit, f"'{unit}") for row in got[1:]), name


# --- CSV ----------------------------------------------------------------------------------------------------


def test_a_download_has_the_values_of_the_range_oldest_first(service, owner):
    send(service, [(3, NOW), (1.25, NOW - HOUR_MS), (0.1, NOW - 3 * DAY_MS), (9, NOW + 1)], metric="m")
    day = [
        ["time", "value", "unit"],
        ["2026-11-21T09:00:00.000Z", "1.25", "°C"],
        ["2026-11-21T10:00:00.000Z", "3.0", "°C"],
    ]
    assert rows(owner) == day
    assert rows(owner, range="7 d") == [day[0], ["2026-11-18T10:00:00.000Z", "0.1", "°C"], *day[1:]]


UNITS = ["a;=1+1", "a\t=1+1", 'a"b', "a,b", "a\nb", "a\r\nb", "'", '"', ",,,", None]
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "=cmd|'/c calc'!A0"]


def test_a_unit_stays_one_cell_of_a_download_and_is_no_formula(owner):
    units = UNITS + FORMULAS
    values = [MetricValue("m", "M", -1, unit, NOW - n, None) for n, unit in enumerate(units)]
    firing.store_values(1, "home", values)
    cells = [unit or "" for unit in UNITS] + [f"'{unit}" for unit in FORMULAS]
    assert [row[1:] for row in rows(owner)[:0:-1]] == [["-1.0", cell] for cell in cells]
    written = owner.get("/app/metrics/one.csv?project=home&metric=m").text
    assert all(',"' + cell.replace('"', '""') + '"\r\n' in written for cell in cells)


def test_a_download_is_read_in_pieces_and_has_the_newest_values(service, owner, monkeypatch):
    monkeypatch.setattr(dashboard.metrics, "MAX_VALUES", 7)
    monkeypatch.setattr(dashboard.metrics, "VALUES_AT_ONCE", 2)
    add(*((number, NOW - at) for number, at in enumerate((9, 8, 7, 5, 5, 5, 5, 4, 3))))
    assert [float(row[1]) for row in rows(owner)[1:]] == [2, 3, 4, 5, 6, 7, 8]


def test_a_download_is_made_while_it_is_taken(service, owner, monkeypatch):
    monkeypatch.setattr(dashboard.metrics, "VALUES_AT_ONCE", 1)
    add((1, NOW - 2), (2, NOW - 1))
    answer = owner.get("/app/metrics/one.csv?project=home&metric=m", buffered=False)
    parts = iter(answer.response)
    assert b"time" in next(parts) and b"1.0" in next(parts)
    add((3, NOW))
    assert b"2.0" in next(parts) and b"3.0" in next(parts)


# --- many ---------------------------------------------------------------------------------------------------


def following(page):
    """The links to the metrics after those of the page."""
    return [link["href"] for link in page.all("a") if link["href"].startswith("/app/metrics?project=")]


def test_many_metrics_with_many_values_are_shown_quickly(owner):
    for series in range(MAX_LISTED_SERIES + 1):
        add(*((n, NOW - n * 60_000) for n in range(100)), project=f"p{series // 50}", metric=f"m{series:03}")
    with at_little_cost(1):
        page = owner.page("/app/metrics")
    assert len(page.all("polyline")) == MAX_LISTED_SERIES and len(following(page)) == 1


def test_every_metric_is_reached_page_by_page(owner, monkeypatch):
    monkeypatch.setattr(dashboard.metrics, "MAX_LISTED_SERIES", 3)
    sent = [(f"p{n // 4}", f"m{n}") for n in range(9)]
    for project, metric in sent:
        add((1.0, NOW), project=project, metric=metric)
    listed, paths = [], ["/app/metrics?range=7+d"]
    while paths:
        page = owner.page(*paths)
        links = [link["href"] for link in page.all("a") if "/metrics/one?" in link["href"]]
        asked = [dict(parse_qsl(urlsplit(link).query)) for link in links]
        listed += [(one["project"], one["metric"]) for one in asked]
        paths = following(page)
    assert listed == sent


GIVEN = {"account": 1, "project": "p", "metric": "m", "since": 0, "until": 1, "width": 1, "limit": 1, "places": "[0]"}


@each(
    "statement, given",
    [
        *((statement, GIVEN) for statement in (LATEST.statement, BUCKETS.statement, SAMPLES, NEWEST.statement)),
        (SERIES_SEQS, (1, "p", '["m"]')),
        (list_series.__self__.statement, (1, "p", "m")),
    ],
)
@sqlite_only
def test_the_queries_of_a_metric_use_its_index(owner, statement, given):
    plan = [row[3] for row in database.run(f"EXPLAIN QUERY PLAN {statement}", given)]
    assert plan and not [step for step in plan if step.startswith("SCAN metric")], plan


def test_a_time_in_a_far_future_is_said_as_it_is(owner):
    add((1.0, 221_845_392_000_000))  # 9000-01-01
    assert [time["datetime"] for time in owner.page("/app/metrics").all("time")] == ["9000-01-01T00:00:00+0000"]
