"""API keys: made, shown once, revoked."""

from collections import defaultdict

from flask import flash, g, redirect, render_template, request

import accounts
import auth
import clock
from dashboard.page import Page
from errors import Refused
from models import ApiKey, Device


def show_keys() -> Page:
    """GET /app/keys."""
    return _keys_page()


def create_key() -> Page:
    """POST /app/keys: the one answer that shows the key, so it is a page and no redirect."""
    try:
        _, full_key = accounts.create_key(g.account.seq, request.form.get("name", ""), clock.now_ms())
    except Refused as refused:
        return _keys_page(error=refused.message, name=request.form.get("name", "")), 422
    return _keys_page(full_key=full_key)


def revoke_key(key_id: str) -> Page:
    """POST /app/keys/{id}/revoke."""
    accounts.revoke_key(g.account.seq, key_id, clock.now_ms())
    flash("The key is revoked: it stopped working now.")
    return redirect("/app/keys", 303)


def _keys_page(**more: str) -> str:
    keys, added = ApiKey.of_account(g.account.seq), defaultdict[int, list[str]](list)
    for device in Device.of_account(g.account.seq):
        if device.api_key_seq:
            added[device.api_key_seq].append(device.name)
    return render_template(
        "keys.html",
        keys=[key for key in keys if key.revoked_at is None],
        revoked=[key for key in keys if key.revoked_at is not None],
        added=added,
        address=auth.origin(),
        **more,
    )
