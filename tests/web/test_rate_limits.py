"""REST requests per minute and key: the plans' limits, the moving window."""

from collections import deque
from unittest.mock import ANY

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.accounts import account_set
from web import rate_limits

REFUSED = {"ok": False, "error": ANY, "code": "RATE_LIMIT_EXCEEDED", "statusCode": 429}


def allowed(caller, count, path="/stats"):
    """How many of `count` requests are not refused."""
    return sum(caller.get(path).status_code != 429 for _ in range(count))


class Oracle:
    """A moving window of 60 s that remembers every hit."""

    def __init__(self, limit):
        self.limit = limit
        self.times = deque()

    def allowed(self, now, count):
        while self.times and self.times[0] <= now - 60:
            self.times.popleft()
        allowed = min(count, self.limit - len(self.times))
        self.times.extend([now] * allowed)
        return allowed


# The plans' limits


def use_up(count, plan):
    """Count requests of the first key, as those count that are made: many are made faster so."""
    assert rate_limits.limiter.limiter.hit(rate_limits.REST[plan], "1", cost=count)


@pytest.mark.parametrize("name, limit", [("starter", 100), ("pro", 1_000), ("scale", 1_000)])
def test_a_plan_allows_exactly_its_requests_a_minute(service, name, limit):
    service.account("any@example.org", name)
    caller = service.caller("any@example.org")
    use_up(limit - 10, name)
    assert allowed(caller, 20) == 10
    headers = caller.get("/stats").headers
    assert (headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]) == (str(limit), "0")


# The moving window


@pytest.mark.parametrize(
    "method, path, data, status",
    [
        ("GET", "/api/v1/stats", None, 200),
        ("HEAD", "/api/v1/stats", None, 200),
        ("POST", "/api/v1/api-keys/generate", b'{"name": "n"}', 201),
        ("POST", "/api/v1/notifications/send", b"{", 400),
        ("POST", "/api/v1/notifications/send", b" " * 1_100_000, 413),
        ("GET", "/api/v1/notifications?limit=x", None, 400),
        ("DELETE", "/api/v1/devices/unknown", None, 404),
        ("GET", "/api/v1/unknown", None, 404),
        ("PUT", "/api/v1/stats", None, 405),
    ],
)
def test_every_answer_counts_once_and_carries_the_headers(owner, moved_clock, method, path, data, status):
    use_up(90, "starter")
    remaining = []
    for _ in range(10):
        answer = owner.request(method, path, data=data)
        assert answer.status_code in (status, 200, 201)
        assert answer.headers["X-RateLimit-Limit"] == "100"
        assert answer.headers["X-RateLimit-Reset"].isdigit()
        remaining.append(int(answer.headers["X-RateLimit-Remaining"]))
    assert remaining == list(range(9, -1, -1))
    assert owner.request(method, path, data=data).status_code == 429
    assert owner.get("/stats").status_code == 429


def test_after_reset_a_refused_key_may_go_on(owner, moved_clock):
    for _ in range(100):
        owner.get("/stats")
        moved_clock.advance(0.1)
    refused = owner.get("/stats")
    assert refused.status_code == 429
    moved_clock.advance(int(refused.headers["X-RateLimit-Reset"]) - moved_clock.ms / 1000 + 0.1)
    assert owner.get("/stats").status_code == 200


def test_a_request_without_a_valid_key_is_never_counted(service, owner):
    for _ in range(150):
        assert service.client.get("/api/v1/stats").status_code == 401
        headers = {"Authorization": f"Bearer {owner.key}0"}
        assert service.client.get("/api/v1/stats", headers=headers).status_code == 401
    assert owner.get("/stats").headers["X-RateLimit-Remaining"] == "99"


def test_a_smaller_plan_takes_effect_at_once(service, pro, moved_clock):
    assert allowed(pro, 150) == 150
    moved_clock.advance(30)
    assert allowed(pro, 50) == 50
    account_set(service, "--plan", "starter", email="pro@example.org")
    answer = pro.get("/stats")
    assert (answer.status_code, answer.headers["X-RateLimit-Limit"]) == (429, "100")
    assert answer.headers["X-RateLimit-Remaining"] == "0"
    moved_clock.advance(30.1)
    assert allowed(pro, 110) == 50


@pytest.mark.parametrize("by_s", [-10 * 365 * 86_400, -61, 61, 10 * 365 * 86_400])
def test_a_wall_clock_that_is_set_neither_frees_nor_locks(owner, moved_clock, by_s):
    assert allowed(owner, 70) == 70
    moved_clock.advance(30)
    moved_clock.set_wall(moved_clock.ms + by_s * 1_000)
    assert allowed(owner, 50) == 30
    moved_clock.advance(30.1)
    assert allowed(owner, 100) == 70


@settings(
    max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(st.integers(0, 40) | st.sampled_from([0, 1, 29, 30, 59, 60, 61]), st.integers(0, 70)),
        min_size=2,
        max_size=12,
    )
)
def test_the_limiter_agrees_with_a_naive_count_at_any_pace(service, moved_clock, paces):
    rate_limits.reset(6_000)
    oracle, start = Oracle(100), moved_clock.monotonic
    for seconds, count in paces:
        moved_clock.advance(seconds + 0.001)  # never exactly 60 s apart
        hits = [rate_limits.limiter.limiter.hit(rate_limits.REST["starter"], "1") for _ in range(count)]
        assert sum(hits) == oracle.allowed(moved_clock.monotonic - start, count)
