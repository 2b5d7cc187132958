"""A service that counts in Redis, seen from outside: limits, figures."""

import json

import pytest

from core import doctor, scheduler, sharing
from models import Alert
from process import clock, counters, redis_client
from tests.support.accounts import OWNER
from tests.support.server import free_port, wait_until
from tests.support.service import METRICS_TOKEN
from web import rate_limits


@pytest.fixture
def service(sharing_service):
    """Every service of this file counts in Redis."""
    return sharing_service


def answers(caller, count):
    """Of so many requests: statuses, remaining."""
    got = [caller.get("/stats") for _ in range(count)]
    return [one.status_code for one in got], [int(one.headers["X-RateLimit-Remaining"]) for one in got]


def restart(service):
    """Another process on the same database: all that is in memory is forgotten."""
    scheduler.run_due(clock.now_ms())
    service.sharing(service.settings.redis_url)


def in_memory():
    """How many windows are in this process's memory."""
    return sum(map(len, rate_limits.limiter.limiter.storage.hits.values()))


@pytest.fixture
def ten(monkeypatch):
    """Ten requests of a key a minute: where the number is not the rule, a hundred would take long."""
    monkeypatch.setattr(rate_limits.REST["starter"], "amount", 10)


def test_a_plan_allows_exactly_its_requests_over_a_restart_and_the_headers_count_down(
    service, owner, moved_clock, ten
):
    assert answers(owner, 6) == ([200] * 6, [9, 8, 7, 6, 5, 4])
    restart(service)
    assert answers(owner, 6) == ([200] * 4 + [429] * 2, [3, 2, 1, 0, 0, 0])
    refused = owner.get("/stats")
    assert refused.headers["Retry-After"] == "60"
    assert 0 <= int(refused.headers["X-RateLimit-Reset"]) - moved_clock.ms / 1000 <= 61
    assert in_memory() == 0


def test_an_alert_takes_so_many_events_a_minute_and_is_paused_by_a_flood(service, hook, low):
    assert [hook.post(data=b"{").status_code for _ in range(7)] == [400] * 6 + [429]
    assert Alert.get().is_active
    hook.post(data=b"{")
    assert not Alert.get().is_active and in_memory() == 0


def test_an_event_is_one_question_to_redis(service, hook, redis):
    hook.post({"message": "x"})
    redis.ask("CONFIG", "RESETSTAT")
    hook.post({"message": "x"})
    assert "cmdstat_eval:calls=1," in redis.ask("INFO", "commandstats")


def test_unknown_codes_topics_buttons_and_pings_are_counted_there(service, beat, few):
    ping = beat.url.removeprefix("http://127.0.0.1:8000")
    for path in ("/p/Unknown", "/a/unknown", "/unknown/json", ping):
        ask = service.client.get if "json" in path else service.client.post
        assert 429 not in {ask(path).status_code for _ in range(6)} and ask(path).status_code == 429
    assert in_memory() == 0


def test_the_storage_used_is_on_settings_and_in_ntfys_account(service, owner):
    answers(owner, 7)
    assert rate_limits.used(rate_limits.REST["starter"], 1) == 7
    assert owner.request("GET", "/v1/account").json["stats"]["messages_remaining"] == 92


# --- without Redis for a while ------------------------------------------------------------------------------


def test_while_redis_is_away_each_process_counts_by_itself_with_the_full_limit(service, owner, redis, ten):
    assert answers(owner, 8)[0] == [200] * 8
    service.sharing(f"redis://127.0.0.1:{free_port()}")
    statuses, remaining = answers(owner, 12)
    assert (statuses, remaining) == ([200] * 10 + [429] * 2, [*range(9, -1, -1), 0, 0])
    service.sharing(redis.url)
    assert answers(owner, 4)[0] == [200] * 2 + [429] * 2


def test_doctor_says_whether_redis_can_be_used(service):
    assert doctor.checks()["Redis"](service.settings)[0] == "ok"
    service.sharing(f"redis://:hunter2pw@127.0.0.1:{free_port()}")
    level, words = doctor.checks()["Redis"](service.settings)
    assert level == "bad" and "Connection refused" in words and "hunter2pw" not in words
    service.sharing(None)
    assert doctor.checks()["Redis"](service.settings)[0] == "ok"


# --- figures ------------------------------------------------------------------------------------------------


def figures(service):
    text = service.client.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}).text
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}


@pytest.fixture
def watched(service, redis):
    return service.sharing(redis.url, metrics_token=METRICS_TOKEN)


STATS = 'pocketbell_responses_total{method="GET",route="/api/v1/stats",status="200"}'


def of_another_process(redis_url, *counts):
    """Add counts to Redis as another process would."""
    other = redis_client.RedisClient(redis_url, sharing._secret[:12])
    added = [part for labels, number in counts for part in (json.dumps(labels), number, number)]
    other.run(counters.ADD, [other.key("counts")], [counters.LIFE_S, *added])
    other.close()


def test_a_figure_never_goes_back_while_redis_is_away_nor_after(watched, redis, monkeypatch):
    monkeypatch.setattr(redis_client, "TRIED_EVERY_S", 0.02)
    watched.account()
    answers(watched.caller(), 3)
    scheduler.run_due(clock.now_ms())
    of_another_process(redis.url, (("responses", "GET", "/api/v1/stats", "200"), 4))
    assert (figures(watched)[STATS], figures(watched)["pocketbell_redis_up"]) == (7, 1)
    redis.ask("REPLICAOF", "127.0.0.1", "1")
    answers(watched.caller(), 2)
    assert (figures(watched)[STATS], figures(watched)["pocketbell_redis_up"]) == (9, 0)
    redis.ask("REPLICAOF", "NO", "ONE")
    wait_until(lambda: not sharing.is_away())
    assert (figures(watched)[STATS], figures(watched)["pocketbell_redis_up"]) == (9, 1)
    counters.reset(sharing.redis()[0])
    assert figures(watched)[STATS] == 9


def test_counts_that_nobody_adds_to_end_after_a_month(watched, redis):
    watched.account()
    answers(watched.caller(), 1)
    scheduler.run_due(clock.now_ms())
    assert 29 * 86_400 < int(redis.ask("TTL", sharing.redis()[0].key("counts"))[1:]) <= 30 * 86_400


def test_nothing_of_a_payload_or_a_credential_is_in_redis(service, owner, hook, redis):
    owner.send("Zebra", "crossing")
    hook.post({"message": "zebra", "secret": "hunter2pw"})
    hook.post(data=b'{"zebra": hunter2pw')
    hook.post(data=b"zebra" * 10, headers={"Content-Type": "application/zebra"})
    scheduler.run_due(clock.now_ms())
    held = redis.ask("KEYS", "*")
    for key in [line for line in held.split("\r\n") if line.startswith("{")]:
        held += redis.ask("DUMP", key) if "probe" not in key else ""
    for secret in ("zebra", "Zebra", "hunter2pw", owner.key, hook.code, OWNER, "203.0.113.7"):
        assert secret not in held
    assert "receive" in held or "responses" in held
