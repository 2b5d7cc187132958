"""REST requests per minute and key: the plans' limits, the moving window."""

from tests.support.accounts import account_set
from tests.support.rows import each
from web import rate_limits


def allowed(caller, count, path="/stats"):
    """How many of `count` requests are not refused."""
    return sum(caller.get(path).status_code != 429 for _ in range(count))


# The plans' limits


def use_up(count, plan, key_seq="1"):
    """Count requests of a key, as those count that are made: many are made faster so."""
    assert rate_limits.limiter.limiter.hit(rate_limits.REST[plan], key_seq, cost=count)


@each("key_seq, name, limit", [("1", "starter", 100), ("2", "pro", 1_000), ("3", "scale", 1_000)])
def test_a_plan_allows_exactly_its_requests_a_minute(new_owner, key_seq, name, limit):
    _, caller = new_owner(name)
    use_up(limit - 10, name, key_seq)
    assert allowed(caller, 20) == 10
    headers = caller.get("/stats").headers
    assert (headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]) == (str(limit), "0")


# The moving window


def test_a_request_without_a_valid_key_is_never_counted(service, owner):
    for _ in range(5):
        assert service.client.get("/api/v1/stats").status_code == 401
        headers = {"Authorization": f"Bearer {owner.key}0"}
        assert service.client.get("/api/v1/stats", headers=headers).status_code == 401
    assert owner.get("/stats").headers["X-RateLimit-Remaining"] == "99"


def test_a_smaller_plan_takes_effect_at_once(pro, moved_clock):
    use_up(150, "pro")
    moved_clock.advance(30)
    use_up(90, "pro")
    account_set("--plan", "starter", email="pro@example.org")
    answer = pro.get("/stats")
    assert (answer.status_code, answer.headers["X-RateLimit-Limit"]) == (429, "100")
    assert answer.headers["X-RateLimit-Remaining"] == "0"
    moved_clock.advance(30.1)
    assert allowed(pro, 12) == 10


@each("by_s", [-10 * 365 * 86_400, -61, 61, 10 * 365 * 86_400])
def test_a_wall_clock_that_is_set_neither_frees_nor_locks(owner, moved_clock, by_s):
    moved_clock.advance(61)
    use_up(70, "starter")
    moved_clock.advance(30)
    moved_clock.set_wall(moved_clock.ms + by_s * 1_000)
    use_up(25, "starter")
    assert allowed(owner, 7) == 5
    moved_clock.advance(30.1)
    use_up(65, "starter")
    assert allowed(owner, 7) == 5
