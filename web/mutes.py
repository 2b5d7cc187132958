"""The handlers of the REST API for mutes."""

from core import mutes
from process import clock
from store.mutes import ListedMute
from web import shapes
from web.context import Payload, current
from web.definitions import own_account
from web.request_body import read_object
from wire.validation import only_known


def create_mute() -> tuple[Payload, int]:
    """POST /api/v1/mutes."""
    return mute(read_object(lambda sent: only_known(sent, *mutes.FIELDS))), 201


def mute(fields: Payload) -> Payload:
    """Mute what the fields name: an assistant's tool, too."""
    return _answer(mutes.create_mute(own_account(), fields, clock.now_ms()))


def list_mutes() -> Payload:
    """GET /api/v1/mutes."""
    now = clock.now_ms()
    found = mutes.of_account(current().caller.account_seq, now)
    return {"ok": True, "mutes": [shapes.mute(one, now) for one in found]}


def show_mute(mute_id: str) -> Payload:
    """GET /api/v1/mutes/{id}."""
    return _answer(mutes.find_mute(current().caller.account_seq, mute_id, clock.now_ms()))


def end_mute(mute_id: str) -> Payload:
    """DELETE /api/v1/mutes/{id}."""
    mutes.end_mute(current().caller.account_seq, mute_id, clock.now_ms())
    return {"ok": True}


def _answer(one: ListedMute) -> Payload:
    return {"ok": True, "mute": shapes.mute(one, clock.now_ms())}
