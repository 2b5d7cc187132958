"""Counts and times: histograms, and counts that never fall, whatever becomes of Redis."""

import json

import pytest

from process import counters
from process.redis_client import RedisClient


@pytest.fixture(autouse=True)
def counting():
    counters.reset()
    yield
    counters.reset()


@pytest.fixture
def shared(redis):
    client = RedisClient(redis.url, "test")
    counters.reset(client)
    yield client
    client.close()


def test_a_time_is_counted_in_its_bucket_and_in_all_larger_ones():
    for took_s in (0.004, 0.005, 0.02, 3, 1_000):
        counters.observe("took", took_s, "/p")
    counters.observe("took", 0.3, "/q")
    buckets, sum_s = counters.histograms("took")["/p"]
    assert dict(buckets) == {
        **{"0.005": 2, "0.025": 3, "0.1": 3, "0.25": 3, "0.5": 3, "1.0": 3, "2.5": 3},
        **{"5.0": 4, "10.0": 4, "60.0": 4, "600.0": 4, "+Inf": 5},
    }
    assert sum_s == pytest.approx(1003.029) and set(counters.histograms("took")) == {"/p", "/q"}


def test_no_count_falls_when_redis_is_emptied(shared, redis):
    for _ in range(3):
        counters.count("sends", "a")
    counters.observe("took", 0.3, "/p")
    counters.share()
    redis.ask("FLUSHALL")
    counters.count("sends", "a")
    counters.count("sends", "b")
    counters.share()
    assert counters.counted("sends") == {("a",): 4, ("b",): 1}
    assert counters.histograms("took")["/p"][1] == pytest.approx(0.3)
    counters.share()  # nothing is added twice
    assert counters.counted("sends") == {("a",): 4, ("b",): 1}


def test_two_processes_put_what_redis_forgot_there_once(shared, redis):
    """The other process, whose share is written here by hand, put its counts there first."""
    for _ in range(5):
        counters.count("sends", "a")
    counters.share()
    redis.ask("FLUSHALL")
    key = json.dumps(["sends", "a"])
    assert shared.run(counters.ADD, [shared.key("counts")], [60, key, 2, 7]) is not None
    counters.count("sends", "a")
    counters.share()
    assert counters.counted("sends") == {("a",): 8}


def test_while_redis_is_away_a_process_goes_on_from_what_it_knew(shared, redis):
    counters.count("sends", "a")
    counters.share()
    shared.close()
    counters.count("sends", "a")
    counters.share()
    assert counters.counted("sends") == {("a",): 2}
