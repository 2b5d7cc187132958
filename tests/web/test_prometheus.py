"""GET /metrics: figures for Prometheus, for those who have the setting METRICS_TOKEN."""

import base64
import random
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from config import VERSION
from core import scheduler
from store import deliveries
from store.engine import SCHEMA_VERSION, WriteFailed
from tests.support.accounts import OTHER, OWNER, account_set
from tests.support.devices import subscribe
from tests.support.pages import Visitor, use_up_tries
from tests.support.rows import each
from tests.support.server import ROOT
from tests.support.service import METRICS_TOKEN


@pytest.fixture
def watched(make_service, push_service, moved_clock):
    service = make_service(METRICS_TOKEN=METRICS_TOKEN, WEBPUSH_HOSTS=push_service.origin)
    service.account(OWNER)
    return service


def test_metrics_answer_without_a_database(watched, monkeypatch):
    def away():
        raise WriteFailed("there is no connection to PostgreSQL")

    assert "pocketbell_database_up 1.0" in ask(watched).text
    monkeypatch.setattr(deliveries, "next_due_at", away)
    answer = ask(watched)
    assert answer.status_code == 200 and "pocketbell_notifications_held" not in answer.text
    assert all(name in answer.text for name in ("database_up 0.0", "build_info", "worker_lag_seconds", "responses"))


def ask(service, token=METRICS_TOKEN):
    return service.client.get("/metrics", headers={"Authorization": f"Bearer {token}"})


def figures(service):
    """By name, each value with its labels' values."""
    found = {}
    for family in text_string_to_metric_families(ask(service).text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_without_the_setting_the_address_is_not_there(service):
    assert (ask(service).status_code, ask(service).data) == (404, service.client.get("/metricss").data)


@each(
    "header",
    [None, "", "Bearer", f"Basic {METRICS_TOKEN}", METRICS_TOKEN, f"Bearer {METRICS_TOKEN}x", "Bearer ünlike"],
)
def test_without_the_token_there_is_nothing_to_see(watched, header):
    answer = watched.client.get("/metrics", headers={"Authorization": header} if header is not None else {})
    assert (answer.status_code, answer.json["code"]) == (401, "UNAUTHORIZED")
    assert answer.headers["WWW-Authenticate"] == "Bearer" and METRICS_TOKEN not in answer.text


def test_an_api_key_is_not_the_token(watched):
    assert watched.caller(OWNER).get("/../../metrics").status_code in (401, 404)
    assert ask(watched, watched.caller(OWNER).key).status_code == 401


def test_metrics_name_the_version_and_schema(watched):
    assert f'pocketbell_build_info{{schema="{SCHEMA_VERSION}",version="{VERSION}"}} 1.0' in ask(watched).text


def test_metrics_are_prometheus_text_and_include_the_process(watched):
    answer = ask(watched)
    assert answer.status_code == 200 and answer.content_type.startswith("text/plain; version=0.0.4")
    assert figures(watched)["process_resident_memory_bytes"][()] > 10_000_000


def test_sends_events_and_refusals_are_counted(watched):
    caller, alert = watched.caller(OWNER), watched.alert(email=OWNER)
    caller.send()
    alert.post({"message": "x"})
    alert.post(data="{not JSON")
    watched.client.post("/p/Unknown", json={})
    found = figures(watched)
    assert found["pocketbell_notifications_total"] == {("send", "delivered"): 1, ("alert", "delivered"): 1}
    responses = found["pocketbell_responses_total"]
    assert responses["POST", "/api/v1/notifications/send", "200"] == 1
    short_code = {key[2]: number for key, number in responses.items() if key[1] == "/p/<path:short_code>"}
    assert short_code == {"200": 1, "400": 1, "404": 1}


def test_no_short_code_or_foreign_input_becomes_a_label(watched):
    alert = watched.alert(email=OWNER)
    alert.post({"message": "x"})
    watched.client.open("/no/such/secret-place", method="PROPFINDSECRET")
    text = ask(watched).text
    assert alert.code not in text and "secret-place" not in text and "PROPFINDSECRET" not in text
    assert 'pocketbell_responses_total{method="-",route="-",status="404"} 1.0' in text


def test_pushes_are_counted_by_provider_and_outcome_beside_the_backlog(watched, push_service, moved_clock):
    caller = watched.caller(OWNER)
    browser = subscribe(caller, push_service)
    browser.then(201).then(503)
    caller.send()
    caller.send()
    moved_clock.advance(90)
    found = figures(watched)
    assert found["pocketbell_pushes_total"] == {("delivered", "webpush"): 1, ("transient", "webpush"): 1}
    assert (found["pocketbell_pushes_pending"], found["pocketbell_push_overdue_seconds"]) == ({(): 1}, {(): 60})
    assert found["pocketbell_notifications_total"] == {("send", "delivered"): 1, ("send", "pending"): 1}


def test_the_delay_of_a_push_counts_from_when_it_was_due_and_only_if_it_was_taken(watched, push_service, moved_clock):
    caller = watched.caller(OWNER)
    subscribe(caller, push_service).then(503).then(201)
    caller.send()
    assert "pocketbell_push_delay_seconds_count" not in figures(watched)
    moved_clock.advance(40)
    watched.work()
    found = figures(watched)
    assert found["pocketbell_push_delay_seconds_count"] == {("webpush",): 1}
    assert found["pocketbell_push_delay_seconds_sum"] == {("webpush",): 40}


def test_sign_ins_that_fail_are_counted_by_reason(watched):
    visitor = Visitor(watched)
    assert use_up_tries(visitor, count=12) == [422] * 10 + [429] * 2
    visitor.sign_in(OTHER)
    assert figures(watched)["pocketbell_sign_in_failures_total"] == {("wrong",): 11, ("limited",): 2}


def test_the_size_of_the_database_is_told(watched):
    before = figures(watched)["pocketbell_database_bytes"][()]
    chance = random.Random(1)  # what repeats itself, PostgreSQL compresses
    for _ in range(13):
        watched.caller(OWNER).send(body=base64.b64encode(chance.randbytes(7_400)).decode())
    assert before + 120_000 < figures(watched)["pocketbell_database_bytes"][()] < before + 1_600_000


def test_held_notifications_are_counted(watched):
    account_set("--quiet-hours", "00:00-23:59")
    watched.alert(email=OWNER).post({"message": "x"})
    assert figures(watched)["pocketbell_notifications_held"] == {(): 1}


def test_the_page_on_deployment_names_every_figure_and_no_other(watched):
    watched.caller(OWNER).send()
    page = (ROOT / "docs/deployment.md").read_text()
    unseen = ["pushes", "redis_up", "sign_in_failures", "request_seconds", "push_delay_seconds"]
    ours = {name.removesuffix("_total") for name in figures(watched) if name.startswith("pocketbell_")} | {
        f"pocketbell_{name}" for name in unseen
    }
    assert {name.removesuffix("_total") for name in re.findall(r"`(pocketbell_\w+)`", page)} == ours


def test_how_long_the_worker_has_not_finished_a_round_is_told(watched, moved_clock, monkeypatch):
    worker = scheduler.Scheduler()
    monkeypatch.setattr(scheduler, "background", worker)
    assert figures(watched)["pocketbell_worker_lag_seconds"] == {(): 0}
    for lane in worker.lanes:
        lane.last_beat_s = moved_clock.monotonic
    moved_clock.advance(12)
    worker.lanes[0].last_beat_s = moved_clock.monotonic
    assert figures(watched)["pocketbell_worker_lag_seconds"] == {(): 12}
