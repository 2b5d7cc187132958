"""REST requests per minute and key: the plans' limits, the moving window."""

import pytest

from tests.support.accounts import account_set
from web import rate_limits


def allowed(caller, count, path="/stats"):
    """How many of `count` requests are not refused."""
    return sum(caller.get(path).status_code != 429 for _ in range(count))


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
