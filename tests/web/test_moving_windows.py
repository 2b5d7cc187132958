"""Counting in windows: the same numbers in this process's memory and in Redis."""

from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.plans import PLANS
from process.redis_client import RedisClient
from tests.support.rows import each
from web import shared_windows
from web.moving_windows import Counted, MovingWindows
from web.shared_windows import SharedWindows


class Claim(NamedTuple):
    key: str
    limit: int
    length_s: int
    amount: int = 1


class MovedWindows(SharedWindows):
    """Windows in a Redis whose clock is the test's."""

    def __init__(self, redis, client, moved_clock):
        super().__init__(client, "a secret")
        self.redis, self.moved_clock = redis, moved_clock

    def count(self, *groups):
        now_us = round(self.moved_clock.monotonic * 1e6)
        self.redis.ask("MSET", "seconds", now_us // 10**6, "microseconds", now_us % 10**6)
        return super().count(groups)


@pytest.fixture
def client(redis):
    client = RedisClient(redis.url, "test")
    yield client
    client.close()


@pytest.fixture
def in_redis(redis, client, moved_clock, monkeypatch):
    text = shared_windows.COUNT.replace("'TIME'", "'MGET', 'seconds', 'microseconds'")
    monkeypatch.setattr(shared_windows, "COUNT", text)
    return MovedWindows(redis, client, moved_clock)


@pytest.fixture
def in_memory(moved_clock):
    return MovingWindows()


def alike(counted):
    """Without the last digits of the times."""
    return [one._replace(reset_in_s=round(one.reset_in_s, 4)) for one in counted]


def used(windows, *claims):
    return [one.used for one in windows.count(*((claim._replace(amount=0),) for claim in claims))]


A, B = Claim("a", 2, 60), Claim("b", 3, 900)


def test_a_window_takes_so_many_hits_and_says_when_the_next_one_fits(in_memory, moved_clock):
    assert alike(in_memory.count((A,))) == [Counted(None, 1, 1, 60)]
    moved_clock.advance(20)
    assert alike(in_memory.count((A,))) == [Counted(None, 2, 0, 40)]
    moved_clock.advance(10)
    assert alike(in_memory.count((A,))) == [Counted(0, 2, 0, 30)]
    moved_clock.advance(30)
    assert alike(in_memory.count((A,))) == [Counted(None, 2, 0, 20)]


def test_claims_that_are_counted_together_count_all_or_not_at_all(in_memory):
    in_memory.count((A,), (A,))
    assert alike(in_memory.count((B, A))) == [Counted(1, 2, 0, 60)]
    assert used(in_memory, A, B) == [2, 0]
    assert alike(in_memory.count((A, B))) == [Counted(0, 2, 0, 60)]
    assert used(in_memory, A, B) == [2, 0]


def test_the_headers_show_the_window_with_the_least_left(in_memory, moved_clock):
    in_memory.count((B,), (B,))
    moved_clock.advance(20)
    assert alike(in_memory.count((A, B))) == [Counted(None, 3, 0, 880)]
    moved_clock.advance(880)
    assert alike(in_memory.count((B._replace(amount=0), A))) == [Counted(None, 1, 1, 60)]


def test_a_group_that_is_refused_keeps_no_other_from_being_counted(in_memory):
    in_memory.count((A,), (A,))
    assert [one.refused for one in in_memory.count((A,), (B,), (B, A))] == [0, None, 1]
    assert used(in_memory, A, B) == [2, 1]


def test_a_peek_is_refused_but_not_counted(in_memory):
    look = A._replace(amount=0)
    assert alike(in_memory.count((look,))) == [Counted(None, 0, 2, 60)]
    in_memory.count((A,), (A,))
    assert [one.refused for one in in_memory.count((look,), (B, look))] == [0, 1]
    assert used(in_memory, A, B) == [2, 0]


def test_a_hit_can_be_taken_back(in_memory, moved_clock):
    in_memory.count((A,))
    moved_clock.advance(10)
    in_memory.count((A,), (A._replace(amount=-1),))
    assert alike(in_memory.count((A._replace(amount=0),))) == [Counted(None, 1, 1, 50)]
    assert alike(in_memory.count((A._replace(amount=-1),), (A._replace(amount=-1),)))[1].used == 0


def test_a_limit_that_became_smaller_refuses_until_there_is_room_again(in_memory, moved_clock):
    for _ in range(5):
        in_memory.count((A._replace(limit=5),))
        moved_clock.advance(1)
    assert alike(in_memory.count((A,))) == [Counted(0, 5, 0, 58)]


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 0.5, 1, 29, 59.9999, 60, 61, 900]),
        st.lists(
            st.lists(
                st.builds(
                    lambda key, limit, amount: Claim(key, limit, {"a": 60, "b": 60, "c": 900}[key], amount),
                    st.sampled_from("abc"),
                    st.integers(1, 5),
                    st.sampled_from([1, 1, 1, 0, -1, 3]),
                ),
                min_size=1,
                max_size=3,
                unique_by=lambda claim: claim.key,
            ).map(tuple),
            min_size=1,
            max_size=3,
        ),
    ),
    max_size=12,
)


@settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS)
def test_redis_and_memory_give_the_same_answers(redis, in_redis, in_memory, moved_clock, steps):
    redis.ask("FLUSHALL")
    in_memory.reset()
    for seconds, groups in steps:
        moved_clock.advance(seconds)
        assert alike(in_redis.count(*groups)) == alike(in_memory.count(*groups))


def test_many_hits_that_end_at_once_are_forgotten(in_redis, redis, moved_clock):
    busy = Claim("busy", 1_000, 60)
    in_redis.count((busy._replace(amount=777),))
    moved_clock.advance(30)
    in_redis.count((busy,))
    moved_clock.advance(30)
    assert used(in_redis, busy) == [1]
    moved_clock.advance(30)
    assert used(in_redis, busy) == [0] and keys_in(redis) == []


def keys_in(redis):
    return [line for line in redis.ask("KEYS", "*").split("\r\n") if "hits" in line]


@each("by_s", [-3_600, -2])
def test_setting_back_the_clock_of_redis_locks_out_no_client(in_redis, moved_clock, by_s):
    assert [one.refused for one in in_redis.count((A,), (A,), (A,))] == [None, None, 0]
    moved_clock.advance(by_s)
    assert [one.refused for one in in_redis.count((A,), (A,), (A,))] == [None, None, 0]
    moved_clock.advance(10_000)


def test_a_replica_whose_clock_is_a_little_behind_goes_on_counting(in_redis, moved_clock):
    in_redis.count((A,))
    moved_clock.advance(-0.5)
    assert alike(in_redis.count((A,), (A,))) == [Counted(None, 2, 0, 60), Counted(0, 2, 0, 60)]


def test_keys_are_on_one_node_end_by_themselves_and_tell_nobody(in_redis, redis):
    in_redis.count((Claim("sign-in 203.0.113.7 password", 2, 900), A))
    keys = keys_in(redis)
    assert len(keys) == 2 and all(key.startswith("{pocketbell:test}:hits:") for key in keys)
    assert not any("203" in key or "sign" in key or "password" in key for key in keys)
    assert sorted(int(redis.ask("TTL", key)[1:]) for key in keys) == [60, 900]


def test_databases_that_share_a_redis_do_not_share_their_counts(redis):
    clients = [RedisClient(redis.url, name) for name in ("first", "second")]
    first, second = (SharedWindows(client, "a secret") for client in clients)
    assert [one.count(((A,), (A,), (A,)))[2].refused for one in (first, second)] == [0, 0]
    for client in clients:
        client.close()


def test_a_full_window_of_the_largest_quota_takes_little_memory(client, redis):
    largest = max(plan.metrics_per_hour for plan in PLANS.values())
    SharedWindows(client, "a secret").count(((Claim("metrics/1", largest, 3600, largest),),))
    (key,) = keys_in(redis)
    assert int(redis.ask("MEMORY", "USAGE", key)[1:]) < 16 * largest


# In memory: what it keeps


def test_idle_keys_are_dropped(in_memory, moved_clock):
    for number in range(1_000):
        in_memory.acquire_entry(f"idle {number}", 100, 60)
    moved_clock.advance(24 * 3_600)
    for number in range(1_000):
        in_memory.acquire_entry("busy", 10_000, 60)
        in_memory.acquire_entry(f"new {number}", 100, 60)
    assert len(in_memory.hits[60]) == 1_001


def test_a_key_in_its_window_is_not_dropped_as_idle(in_memory, moved_clock):
    for number in range(100):
        in_memory.acquire_entry(f"idle {number}", 1, 60)
    moved_clock.advance(24 * 3_600)
    assert in_memory.acquire_entry("full", 1, 900)
    moved_clock.advance(899)
    for number in range(1_000):
        in_memory.acquire_entry(f"busy {number}", 1, 60)
    assert not in_memory.acquire_entry("full", 1, 900)
