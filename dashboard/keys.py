"""API keys: list, create and revoke. A new key is shown once."""

from collections import defaultdict
from itertools import count

from flask import redirect, render_template

from core import accounts, api_keys, shown_once
from dashboard import page
from dashboard.page import Page, Problem
from models import ApiKey, Device
from process import clock
from process.clock import DAY_MS
from store.key_limits import FULL, READ, SEND
from web import guards
from web.context import current, request
from wire.errors import Refused

NAME = "Script"  # of a new key, unless its owner types another one
SCOPES = {SEND: "Send", READ: "Read", FULL: "Everything"}  # what a key may do, for scripts first
LIVES = {"": (0, "Never"), "30d": (30, "In 30 days"), "90d": (90, "In 90 days"), "1y": (365, "In a year")}  # days


def show_keys(problem: Problem | None = None) -> str:
    """GET /app/keys?made: the list; the key `made` is shown in full if this browser has just created it."""
    made_id, added = request.args.get("made", ""), defaultdict[int, list[str]](list)
    keys = ApiKey.of_account(current().account.seq)
    made = next((key for key in keys if key.id == made_id and key.revoked_at is None), None)
    for device in Device.of_account(current().account.seq):
        if device.api_key_seq:
            added[device.api_key_seq].append(device.name)
    names = (f"{NAME} {number}" if number > 1 else NAME for number in count(1))
    taken = {key.name for key in keys if key.revoked_at is None}
    return render_template(
        "keys.html",
        keys=[key for key in keys if key.revoked_at is None],
        revoked=[key for key in keys if key.revoked_at is not None],
        added=added,
        made=made,
        full_key=made and shown_once.take(made.id, guards.session_token()),
        scopes=SCOPES,
        lives=LIVES,
        typed={"name": next(name for name in names if name not in taken), "scope": SEND, **request.form.to_dict()},
        problem=problem,
    )


def create_key() -> Page:
    """POST /app/keys: creates a key and redirects to the page that shows it, so that a reload makes no second key."""
    sent, account_seq, now = request.form, current().account.seq, clock.now_ms()
    scope, life = sent.get("scope", FULL), sent.get("life", "")
    try:
        if life not in LIVES:
            raise Refused(400, "Choose one of these times.", field="life")
        limits = api_keys.limits(scope, now + LIVES[life][0] * DAY_MS if life else None, now, "life")
        with shown_once.with_secret(account_seq):
            key, full_key = accounts.create_key(account_seq, sent.get("name", ""), now, limits)
            shown_once.keep(full_key, guards.session_token(), now, key.id)
    except Refused as refused:
        return show_keys(Problem.of(refused)), 422
    return redirect(f"/app/keys?made={key.id}", 303)


def revoke_key(key_id: str) -> Page:
    """POST /app/keys/{id}/revoke."""
    accounts.revoke_key(current().account.seq, key_id, clock.now_ms())
    return page.back_to("/app/keys", "Key revoked. It no longer works.")
