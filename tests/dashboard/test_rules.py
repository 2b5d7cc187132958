"""The pages of rules on metrics: made, listed, marked in the chart, deleted."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

import dashboard.metrics
from core import metric_rules
from core.definitions import RULE
from models import Account
from store import custom_metrics, database
from store import metric_rules as stored_metric_rules
from store.custom_metrics import MetricValue
from tests.support.accounts import OTHER, OWNER
from tests.support.hostile import SHORT
from tests.support.pages import drawing, joined
from tests.support.rows import each
from tests.support.rules import send
from tests.support.times import HOUR_S, MINUTE_MS, utc

NOW = utc("2026-11-21T10:00")  # of the clock that stands still
HOUR_MS = 60 * MINUTE_MS
FORM = {"operator": ">", "value": "90", "for": "5m"}


def put(*values, project="home", metric="cpu", name="CPU", unit="%", email=OWNER):
    """Put values into the database, each an hour older than the one before."""
    rows = [MetricValue(metric, name, value, unit, NOW - n * HOUR_MS, None) for n, value in enumerate(values)]
    account_seq = Account.find(email).seq
    with database.transaction(account_seq):
        custom_metrics.add_all(account_seq, project, rows)


def make(condition="> 90", lasting=None, project="home", metric="cpu", email=OWNER):
    return metric_rules.create_rule(Account.find(email), project, metric, condition, lasting, NOW)


def fire(rule, *hours):
    """The rule fired from `begin` to `end`, each so many hours ago; `end` None: it still does."""
    with database.transaction(rule.account_seq):
        for begin, end in hours:
            ended_at = None if end is None else NOW - int(end * HOUR_MS)
            row = (rule.seq, NOW - int(begin * HOUR_MS), ended_at)
            database.run("INSERT INTO firing (rule_seq, began_at, ended_at) VALUES (?, ?, ?)", row)
            state = ("ok", ended_at) if ended_at else ("firing", row[1])
            database.run("UPDATE metric_rule SET state = ?, changed_at = ? WHERE seq = ?", (*state, rule.seq))


def address(project="home", metric="cpu", **more):
    return f"/app/metrics/one?{urlencode({'project': project, 'metric': metric, **more})}"


def rules_of(email=OWNER):
    """The texts of the account's rules, the oldest first, each with its metric."""
    found = stored_metric_rules.of_account(Account.find(email).seq)
    return [(rule.project_id, rule.metric_id, metric_rules.rule_text(rule)) for rule in reversed(found)]


def marks(page):
    """Begin and end of each time that the chart marks, in hundredths of its length."""
    drawn = drawing(page)
    length = drawn["until"] - drawn["since"]
    return [tuple((at - drawn["since"]) * 100 / length for at in mark) for mark in drawn["firings"]]


def hours(page):
    """The same in whole hours before now."""
    drawn = drawing(page)
    return [tuple(round((drawn["until"] - at) / HOUR_MS) for at in mark) for mark in drawn["firings"]]


# --- making one ---------------------------------------------------------------------------------------------


def test_the_form_begins_with_the_newest_value(owner):
    put(1_234_567.0, 20)
    page = owner.page(address())
    assert (page.value("value"), page.value("for"), page.chosen("operator")) == ("1234567", "", ">")
    exact = {-1.7976931348623157e308: "-1.7976931348623157e+308", 3.0: "3", 0.1 + 0.2: "0.30000000000000004"}
    assert {number: dashboard.metrics._exact(number) for number in exact} == exact


@pytest.fixture
def opened(owner):
    """The owner, who has opened the page of a metric."""
    put(1)
    owner.get(address())
    return owner


@each(
    "form, text",
    [
        (FORM, "> 90 for 5m"),
        ({"operator": "<", "value": "-0.5", "for": ""}, "< -0.5"),
        ({"operator": "=", "value": "0", "for": " "}, "= 0"),
        ({"operator": "!=", "value": " 1e3 "}, "!= 1000"),
        ({"operator": ">=", "value": "1"}, ">= 1"),
        ({"operator": "<=", "value": "1"}, "<= 1"),
        ({"silent": "24h"}, "silent 1d"),
    ],
)
def test_the_forms_make_a_rule_and_lead_back_to_the_metric_in_the_same_range(opened, form, text):
    page = opened.done(address(range="7 d"), form, leads_to=address(range="7 d"))
    assert page.said("status") == [f"Rule added: {text}."]
    assert rules_of()[-1] == ("home", "cpu", text)
    assert "Fine" in page.section("Rules")


def test_an_account_with_as_many_rules_as_it_may_have_is_told_so(owner, monkeypatch):
    put(1)
    make()
    monkeypatch.setattr(metric_rules, "MAX_RULES", 1)
    owner.get(address())
    assert owner.refused(address(), FORM).said("alert") == ["An account can have at most 1 rules. Delete one first."]


def test_a_rule_never_refers_to_a_metric_of_another_account(owner, stranger):
    put(1)
    stranger.get("/app/watches")
    stranger.post(address(), FORM)
    assert rules_of() == [] and rules_of(OTHER) == [("home", "cpu", "> 90 for 5m")]
    page = stranger.page(address())
    assert "No values" in page.main and page.value("value") == ""


def test_a_metric_whose_name_is_too_long_for_one_is_not_there(owner):
    owner.get("/app/watches")
    assert owner.post(address(metric="x" * 101), FORM).status_code == 404


# --- a metric's page ----------------------------------------------------------------------------------------


def test_rules_are_listed_with_their_state_those_that_are_firing_first(owner):
    put(95)
    fire(make("> 90", "5m"), (2, None))
    fire(make("< 10"), (5, 4))
    make("silent 24h")
    text = owner.page(address()).section("Rules")
    in_order = (
        "above 90 % for 5 minFiring since today 08:00",
        "nothing for 1 dayFine",
        "below 10 %Fine since today 06:00",
    )
    places = [text.index(one) for one in in_order]
    assert places == sorted(places)


def test_the_page_shows_how_values_change_a_rules_state(service, owner, moved_clock):
    caller = service.caller()
    send(caller, 80, project="home")
    owner.get(address())
    assert "above 90 %Fine" in owner.done(address(), {"operator": ">", "value": "90"}).section("Rules")
    moved_clock.advance(HOUR_S)
    send(caller, 95, project="home")
    assert "above 90 %Firing since today 11:00" in owner.page(address()).section("Rules")
    home = owner.page("/app/")
    assert "CPU is 95 % Rule “above 90 %” firing since today 11:00" in home.main
    (link,) = {one["href"] for one in home.all("a") if "/metrics/one" in one["href"]}
    assert "above 90 %" in owner.page(link).main
    moved_clock.advance(6 * HOUR_S)
    send(caller, 80, project="home")
    page = owner.page(address())
    assert "above 90 %Fine since today 17:00" in page.section("Rules") and marks(page) == [(75, 100)]
    assert "firing" not in owner.page("/app/").main


def test_home_and_the_metrics_page_say_the_same_of_a_rule_that_must_last(service, owner, moved_clock):
    caller = service.caller()
    send(caller, 80, project="home")
    owner.done(address(), FORM)
    for _ in range(3):
        moved_clock.advance(5 * 60)
        send(caller, 95, project="home")
    since = "since today 10:10"  # five minutes after the first value above 90
    assert (
        f"Firing {since}" in owner.page(address()).section("Rules") and f"firing {since}" in owner.page("/app/").main
    )


def test_the_chart_and_a_table_say_when_a_rule_was_firing_the_newest_first(owner):
    put(95, 80)
    page = owner.page(address())
    assert marks(page) == [] and drawing(page)["rules"] == [] and "fired" not in page.main
    fire(make("> 90", "5m"), (18, 12), (6, None))
    page = owner.page(address())
    assert marks(page) == [(25, 50), (75, 100)]
    (label,) = [one["aria-label"] for one in page.all("div") if one.get("role") == "img"]
    assert label == "Chart of CPU, last 24 h: min 80, max 95 %; a rule fired 2 times"
    assert page.texts_of("span", **{"class": "fired"}) == ["rule fired"]
    assert page.texts_of("td")[:6] == [  # those behind are the values'
        "2026-11-21 04:00", "now", "above 90 % for 5 min",
        "2026-11-20 16:00", "2026-11-20 22:00", "above 90 % for 5 min",
    ]  # fmt: skip


def test_the_chart_has_the_value_of_each_rule(owner):
    put(95, 80)
    make("> 90", "5m"), make("silent 24h"), make("!= -1.5"), make("> 1", metric="other")
    page = owner.page(address())
    assert drawing(page)["rules"] == [[-1.5, "not -1.5 %"], [90, "above 90 % for 5 min"]]
    assert page.texts_of("span", **{"class": "limit"}) == ["rule"]


def test_a_firing_that_began_before_the_chart_is_cut_at_its_start(owner):
    put(95)
    fire(make(), (60, 50), (30, 12))
    page = owner.page(address())
    assert marks(page) == [(0, 50)] and "a rule fired 1 time" in page.html
    assert hours(owner.page(address(range="7 d"))) == [(60, 50), (30, 12)]


def test_a_very_short_firing_is_visible_even_at_the_charts_end(owner):
    put(95)
    fire(make(), (12, 12), (0, None))
    assert [round(end - begin, 1) for begin, end in marks(owner.page(address(range="30 d")))] == [0.7, 0.7]
    assert marks(owner.page(address()))[-1][1] == 100


def test_adjacent_firing_marks_are_merged(owner):
    put(95)
    fire(make(), (12, 6))
    fire(make("> 80"), (18, 3), (2, 1))
    assert hours(owner.page(address())) == [(18, 3), (2, 1)]


def test_the_page_of_rules_that_fired_very_often_stays_small(owner):
    put(95)
    for n in range(5):
        fire(make(f"> {n}"), *((23 - one / 5, 22.9 - one / 5) for one in range(100)))
    answer = owner.page(address())
    assert len(marks(answer)) <= 150 and len(answer.html) < 60_000
    assert "a rule fired 500 times" in answer.html and "The newest 100 are listed." in answer.main


def test_a_rule_stays_on_its_metrics_page_when_the_values_are_gone(owner):
    fire(make("silent 24h"), (6, None))
    page = owner.page(address())
    assert "No values" in page.main and "nothing for 1 dayFiring since today 04:00" in page.main
    assert page.texts_of("h1") == ["cpu home"]
    assert page.texts_of("td") == ["2026-11-21 04:00", "now", "nothing for 1 day"]
    assert owner.get(address(metric="other")).status_code == 404
    assert owner.get(address().replace("one?", "one.csv?")).status_code == 404


# --- changing one -------------------------------------------------------------------------------------------


@each(
    "before, form, text",
    [
        (("> 90", None), FORM, "> 90 for 5m"),
        (("> 90", "5m"), {**FORM, "value": "80"}, "> 80 for 5m"),
        (("> 90", None), {"operator": "<", "value": "90"}, "< 90"),
        (("> 90", None), {"silent": "24h"}, "silent 1d"),
        (("silent 1h", None), {"operator": "=", "value": "0"}, "= 0"),
    ],
)
def test_a_rule_with_another_condition_begins_anew(opened, moved_clock, before, form, text):
    rule = make(*before)
    fire(rule, (2, None))
    page = opened.done(f"/app/metrics/rules/{rule.id}?range=7+d", form, leads_to=address(range="7 d"))
    assert page.said("status") == [f"Rule saved: {text}."]
    changed, new = metric_rules.find_rule(rule.account_seq, rule.id), make(*condition_of(text))
    assert metric_rules.rule_text(changed) == text
    assert (changed.changes, changed.changed_at) == (new.changes, None)
    assert stored_metric_rules.firings_within([rule.seq], 0, NOW) == []


def test_a_rule_leads_to_the_form_that_changes_it(owner):
    put(0.1 + 0.2)
    rule, silent, others = make("<= 0.30000000000000004", "5m"), make("silent 24h"), make("> 1", metric="other")
    links = [one.attributes["href"] for one in owner.page(address()).row_links()]
    assert [link.rpartition("rule=")[2] for link in links] == [f"{silent.id}#rule", f"{rule.id}#rule"]
    page = owner.page(address(rule=rule.id))
    assert (page.chosen("operator"), page.value("value"), page.value("for")) == ("<=", "0.30000000000000004", "5m")
    assert page.forms(f"/app/metrics/rules/{rule.id}?range=24+h") and page.forms("/app/metrics/one") == []
    assert owner.page(address(rule=silent.id)).value("silent") == "1d"
    assert "Add a rule" in owner.page(address(rule=others.id)).main


def condition_of(text):
    condition, _, lasting = text.partition(" for ")
    return condition, lasting or None


def test_a_rule_that_is_saved_as_it_was_goes_on_firing(owner):
    put(95)
    rule = make("> 90", "5m")
    fire(rule, (2, None))
    before = metric_rules.find_rule(rule.account_seq, rule.id)
    owner.get(address())
    owner.done(f"/app/metrics/rules/{rule.id}", {**FORM, "value": " 90.0", "for": "300s"})
    assert metric_rules.find_rule(rule.account_seq, rule.id) == before
    assert len(stored_metric_rules.firings_within([rule.seq], 0, NOW)) == 1


def test_a_changed_rule_judges_the_value_that_is_there(service, owner):
    put(85)
    rule = make("> 90")
    owner.get(address())
    owner.done(f"/app/metrics/rules/{rule.id}", {"operator": ">", "value": "80"})
    service.work()
    assert metric_rules.find_rule(rule.account_seq, rule.id).state == "firing"


# --- deleting one -------------------------------------------------------------------------------------------


def test_a_rule_is_deleted_with_a_confirmation_and_leads_back_to_its_metric(owner):
    put(1)
    rule, _ = make(), make("< 10")
    page = owner.page(address(range="7 d"))
    action = f"/app/metrics/rules/{rule.id}/delete?range=7+d"
    assert "Its notifications stay in History" in page.confirmation(action)
    page = owner.done(action, leads_to=address(range="7 d"))
    assert page.said("status") == ["Rule deleted: > 90. Its notifications stay in the history."]
    assert rules_of() == [("home", "cpu", "< 10")]


def test_deleting_the_last_rule_of_a_metric_without_values_leads_to_watches(owner):
    rule = make()
    owner.get("/app/watches")
    page = owner.done(f"/app/metrics/rules/{rule.id}/delete", leads_to="/app/watches")
    assert "Rule deleted: > 90" in page.said("status")[0]


# --- Watches and Home ---------------------------------------------------------------------------------------


def test_watches_list_rules_with_state_metric_and_text(owner):
    put(95)
    make("silent 24h", metric="never sent")
    fire(make("> 90", "5m"), (2, None))
    make("< 1")
    page = owner.page("/app/watches")
    rows = page.row_links()
    assert [row.text for row in rows] == [
        "CPUFiring since today 08:00 · above 90 % for 5 min · home95 %",
        "Fine: CPUbelow 1 % · home95 %",
        "Fine: never sentnothing for 1 day · home",
    ]
    for row in rows:
        assert owner.page(row.attributes["href"]).section("Rules")
    assert "#rules" in rows[0].attributes["href"]


def test_without_rules_watches_say_what_one_is(owner):
    page = owner.page("/app/watches")
    assert "stops arriving" in page.section("Metric rules")
    assert "A job pings an address" in page.section("Heartbeats")


def test_whatever_its_metric_is_called_a_rule_is_shown_as_it_is(owner):
    def pages(name):
        put(2, project=name, metric=name, name=name, unit=name[:32])
        rule = make("> 1", project=name, metric=name)
        fire(rule, (2, None))
        shown = [owner.page(path) for path in ("/app/", "/app/watches", address(name, name))]
        refused = owner.refused(address(name, name), {**FORM, "for": name})
        links = [row.attributes["href"] for row in shown[1].row_links()]
        assert dict(parse_qsl(urlsplit(links[0]).query)) == {"project": name, "metric": name}
        action = next(form["action"] for form in shown[2].all("form") if "/metrics/one" in form["action"])
        owner.done(action, {"silent": "1h"})
        assert (name, name, "silent 1h") in rules_of()
        for one in stored_metric_rules.of_account(rule.account_seq):
            RULE.delete(one.account_seq, one.id)
        return [*shown, refused]

    plain = pages("harmless")
    for text in SHORT:
        hostile = pages(text.strip())
        for before, after in zip(plain, hostile, strict=True):
            assert after.shape == before.shape, text
        assert all(joined([text]) in page.main for page in hostile[:3]), text
