"""What all keys of an account may do together: requests a minute, new keys an hour."""

import pytest

from store import database
from tests.support.accounts import OWNER
from tests.support.pages import Visitor, make_account
from web import rate_limits

EVERYTHING = "Too many requests: all API keys of an account together may make 500 a minute."
TOO_MANY_KEYS = (
    "Too many new API keys: keys of an account can make 100 an hour. Pages and command line have no such limit."
)


def callers(service, count, email=OWNER):
    with database.transaction(database.EVERYBODY):
        return [service.caller(email, name=f"key {number}") for number in range(count)]


def taken(asking):
    """How many are answered of one request of each of these callers; all others are refused."""
    statuses = [caller.get("/stats").status_code for caller in asking]
    assert set(statuses) <= {200, 429}
    return statuses.count(200)


@pytest.fixture
def keys(service):
    """Six keys of a starter, of which five have made all their requests but one."""
    service.account()
    keys = callers(service, 6)
    for number in range(1, 6):
        use_up(number, 99)
    return keys


def use_up(key_seq, requests):
    """Count requests of a starter's key, the service's first account."""
    of_key, of_all = rate_limits.REST["starter"], rate_limits.ALL_KEYS["starter"]
    claims = (of_key.claim(key_seq, requests), of_all.claim(1, requests))
    assert rate_limits.limiter.limiter.storage.count(claims)[0].refused is None


def left(answer):
    return int(answer.headers["X-RateLimit-Remaining"])


def test_five_keys_have_their_full_limits_and_a_sixth_waits_for_one_of_their_requests_to_end(keys, moved_clock):
    moved_clock.advance(20)
    assert taken(keys[:5]) == 5
    refused = keys[5].get("/stats")
    assert refused.status_code == 429 and refused.headers["Retry-After"] == "60"
    assert refused.json == {"ok": False, "error": EVERYTHING, "code": "RATE_LIMIT_EXCEEDED", "statusCode": 429}
    assert (refused.headers["X-RateLimit-Limit"], left(refused)) == ("100", 0)
    assert 39 <= int(refused.headers["X-RateLimit-Reset"]) - moved_clock.ms / 1000 <= 41
    for _ in range(13):  # what is refused does not extend the wait
        moved_clock.advance(3)
        assert taken(keys[5:]) == 0
    moved_clock.advance(1.1)
    assert taken(keys[5:]) == 1


def test_requests_refused_for_one_key_do_not_count_for_another(keys):
    use_up(1, 1)
    assert taken([keys[0]] * 50) == 0 and left(keys[5].get("/stats")) == 3


def test_the_headers_and_ntfys_account_show_the_smaller_rest_of_key_and_account(keys):
    assert [left(keys[5].get("/stats")) for _ in range(2)] == [4, 3]
    assert keys[5].request("GET", "/v1/account").json["stats"]["messages_remaining"] == 2
    assert left(keys[0].get("/stats")) == 0
    assert [left(keys[5].get("/v1/account")), left(keys[5].get("/stats"))] == [0, 0]


def test_accounts_do_not_count_against_each_other(service, keys):
    service.account("other@example.org")
    assert taken(keys[:5]) == 5
    assert taken([*callers(service, 2, "other@example.org"), keys[5]]) == 2


# --- new keys -----------------------------------------------------------------------------------------------


def test_keys_make_at_most_100_keys_an_hour_and_the_owner_as_many_as_he_likes(service, moved_clock):
    make_account(service)
    first, second = callers(service, 2)
    assert [first.post("/api-keys/generate", {"name": ""}).status_code for _ in range(3)] == [400] * 3
    assert rate_limits.limiter.limiter.hit(rate_limits.NEW_KEYS, "1", cost=96)
    for _ in range(2):
        assert first.post("/api-keys/generate", {"name": "n"}).status_code == 201
        assert second.post("/api-keys/generate", {"name": "n"}).status_code == 201
    moved_clock.advance(120)
    refused = second.post("/api-keys/generate", {"name": "n"})
    assert (refused.status_code, refused.json["error"]) == (429, TOO_MANY_KEYS)
    assert refused.headers["Retry-After"] == "3480"
    assert service.flask("key", "create", OWNER, "by command").exit_code == 0
    owner = Visitor(service)
    owner.sign_in()
    owner.get("/app/keys")
    assert owner.post("/app/keys", {"name": "by page"}).status_code == 303
    moved_clock.advance(3_480.1)
    assert first.post("/api-keys/generate", {"name": "n"}).status_code == 201
