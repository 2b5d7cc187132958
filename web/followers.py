"""The handlers of the REST API for followers: of what is the key's owner's, and what the owner follows."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from core import followers
from process import clock
from web import shapes
from web.context import Payload, current
from web.definitions import own_account
from web.request_body import read_object
from wire.validation import only_known, required_text

PATHS = {"alert": "alerts", "heartbeat": "heartbeats", "rule": "rules", "key": "api-keys"}


def list_followers(what: str, **ids: str) -> Payload:
    """GET /api/v1/KINDs/{id}/followers."""
    account_seq, (id_,) = current().caller.account_seq, ids.values()
    found = followers.of_subject(account_seq, what, id_, clock.now_ms())
    return {"ok": True, "followers": [shapes.follower(one) for one in found]}


def invite_follower(what: str, **ids: str) -> tuple[Payload, int]:
    """POST /api/v1/KINDs/{id}/followers; 200 if the address was invited before."""
    email = required_text(read_object(lambda sent: only_known(sent, "email")), "email")
    account_seq, (id_,) = current().caller.account_seq, ids.values()
    one, is_new = followers.invite(account_seq, what, id_, email, clock.now_ms())
    return {"ok": True, "follower": shapes.follower(one)}, 202 if is_new else 200


def remove_follower(what: str, follower_id: str, **ids: str) -> Payload:
    """DELETE /api/v1/KINDs/{id}/followers/{followerId}."""
    (id_,) = ids.values()
    followers.remove(current().caller.account_seq, what, id_, follower_id, clock.now_ms())
    return {"ok": True}


def list_followed() -> Payload:
    """GET /api/v1/following."""
    found = followers.followed(own_account(), clock.now_ms())
    return {"ok": True, "following": [shapes.followed(one) for one in found]}


def accept(followed_id: str) -> Payload:
    """POST /api/v1/following/{id}/accept."""
    return {"ok": True, "followed": shapes.followed(followers.accept(own_account(), followed_id, clock.now_ms()))}


def leave(followed_id: str) -> Payload:
    """DELETE /api/v1/following/{id}: declines an invitation, or leaves."""
    followers.leave(own_account(), followed_id, clock.now_ms())
    return {"ok": True}


def operations() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Method, address below `/api/v1` and handler of each request about followers."""
    for what, path in PATHS.items():
        rule = f"/{path}/<{what}_id>/followers"
        yield "GET", rule, partial(list_followers, what)
        yield "POST", rule, partial(invite_follower, what)
        yield "DELETE", f"{rule}/<follower_id>", partial(remove_follower, what)
    yield "GET", "/following", list_followed
    yield "POST", "/following/<followed_id>/accept", accept
    yield "DELETE", "/following/<followed_id>", leave
