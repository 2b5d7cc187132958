"""Every route that takes an API key: who has none is 401, then the limit is 429, then a large body 413; it counts."""

import re

import pytest

from app import COMPATIBLE_ROUTES, ROUTES
from core.plans import PLANS
from models import ApiKey
from tests.support.rows import each
from web import guards, rate_limits

KEYED = (guards.api_key, guards.ntfy_key, guards.gotify_key)
DOORS = [
    (route.method, re.sub(r"<(?:\w+:)?\w+>", "x", route.rule), route)
    for route in ROUTES + COMPATIBLE_ROUTES
    if route.guard in KEYED
]
BESIDE = [("GET", "/api/v1/unknown", None), ("PUT", "/api/v1/stats", None), ("HEAD", "/api/v1/stats", None)]
LARGE = b" " * 2_049


def asked(caller, method, path):
    return caller.request(method, path, data=LARGE)


@pytest.fixture
def revoked(small):
    (own,) = small.get("/api-keys").json["apiKeys"]
    small.delete(f"/api-keys/{own['id']}")
    return small


@each("method, path, route", DOORS)
def test_a_revoked_key_is_401_before_all_else(revoked, method, path, route):
    answer = asked(revoked, method, path)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert "X-RateLimit-Limit" not in answer.headers


@pytest.fixture
def used_up(small):
    """A caller whose account has no request left."""
    for quota, count in ((rate_limits.REST, 100), (rate_limits.CUSTOM_METRICS, PLANS["starter"].metrics_per_hour)):
        assert rate_limits.limiter.limiter.hit(quota["starter"], "1", cost=count)
    return small


@each("method, path, route", [*DOORS, *BESIDE])
def test_beyond_the_limit_it_is_429_before_anything_else_is_looked_at_but_it_uses_the_key(
    used_up, moved_clock, method, path, route
):
    moved_clock.advance(0.001)
    answer = asked(used_up, method, path)
    assert (answer.status_code, answer.headers["X-RateLimit-Remaining"]) == (429, "0")
    assert answer.headers["Retry-After"] == ("3600" if path.endswith("/custom") else "60")
    assert [key.last_used_at for key in ApiKey.of_account(1)] == [moved_clock.ms]


TAKING_FILES = [door for door in DOORS if door[1] in ("/x", "/x/x") and door[2].takes_files]


@each("method, path, route", [*(door for door in DOORS if door not in TAKING_FILES), *BESIDE])
def test_a_large_body_is_413_before_404_and_also_where_none_is_wanted(small, moved_clock, method, path, route):
    moved_clock.advance(61)
    assert asked(small, method, path).status_code == 413


@each("method, path, route", [*(door for door in DOORS if not door[1].endswith("/custom")), *BESIDE])
def test_each_request_counts_once_against_the_limit_of_its_key(small, moved_clock, method, path, route):
    moved_clock.advance(61)
    headers = asked(small, method, path).headers
    assert (headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]) == ("100", "99")
    assert small.get("/stats").headers["X-RateLimit-Remaining"] == "98"
