"""Rules on metrics in GET /api/v1/watches, and what they cost a batch."""

import re

from store import database
from tests.support.rules import Ruled, send


def test_the_list_has_every_field_newest_first(service, owner, beat, moved_clock):
    silent = Ruled(service, owner, "silent 24h", project="db", metric="size")
    lasting = Ruled(service, owner, ">= 0.5", "--for", "90s")
    lasting.sends(1)
    moved_clock.advance(90)
    lasting.sends(1)
    common = {"createdAt": moved_clock.ms - 90_000}
    answer = owner.get("/watches").json
    assert [watch["id"] for watch in answer["watches"]] == [beat.id]
    assert answer["rules"] == [
        {
            "id": lasting.id,
            "projectId": "web",
            "metricId": "cpu",
            "rule": ">= 0.5 for 1m 30s",
            "state": "firing",
            "firingSince": moved_clock.ms,
            **common,
        },
        {
            "id": silent.id,
            "projectId": "db",
            "metricId": "size",
            "rule": "silent 1d",
            "state": "ok",
            "firingSince": None,
            **common,
        },
    ]


def statements(monkeypatch, work):
    """The statements about metrics and rules that `work` runs."""
    seen, run = [], database.run

    def note(statement, values=()):
        if re.search("metric|rule", statement):
            seen.append(statement)
        return run(statement, values)

    with monkeypatch.context() as patch:
        for name in ("store.custom_metrics", "store.metric_rules", "store.rows"):
            patch.setattr(f"{name}.run", note)
        work()
    return seen


def test_a_batch_of_values_that_change_no_rule_runs_as_many_statements_as_one_value(service, owner, monkeypatch):
    rules = [Ruled(service, owner, "> 90", metric=f"m{n}") for n in range(4)]
    silents = [Ruled(service, owner, "silent 1h", metric=f"m{n}") for n in range(4)]
    metrics = [{"metricId": f"m{n % 4}", "metricName": "M", "value": n % 90} for n in range(100)]

    def post(number):
        batch = {"projectId": "web", "metrics": metrics[:number]}
        assert owner.request("POST", "/api/webhooks/custom", json=batch).status_code == 200

    post(100)
    assert len(statements(monkeypatch, lambda: post(100))) == len(statements(monkeypatch, lambda: post(1))) == 4
    assert {rule.state for rule in rules + silents} == {"ok"}


def test_an_account_without_rules_is_asked_for_them_alone(service, owner, monkeypatch):
    send(owner, 1)
    assert len(statements(monkeypatch, lambda: send(owner, 1))) == 3
