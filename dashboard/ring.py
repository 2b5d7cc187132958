"""Ring: write a notification to one's own devices."""

from flask import redirect, render_template

from core import composing
from core.composing import Written
from dashboard import page
from dashboard.page import Page, Problem
from models import Device
from process import clock
from web.context import current, request
from wire.errors import Refused
from wire.notification import PRIORITIES
from wire.validation import MAX_BODY_CHARACTERS, MAX_TITLE_CHARACTERS

TEST = Written("Hello", "from my own server")  # as the key's page shows it


def show_ring() -> Page:
    """GET /app/ring?test: the form, empty or with a test."""
    ids = {device.id for device in Device.of_account(current().account.seq)}
    return _ring_page(TEST if "test" in request.args else Written(), ids)


def _ring_page(written: Written, chosen: set[str], problem: Problem | None = None) -> str:
    return render_template(
        "ring.html",
        written=written,
        chosen=chosen,
        devices=Device.of_account(current().account.seq),
        priorities=PRIORITIES,
        max_title=MAX_TITLE_CHARACTERS,
        max_text=MAX_BODY_CHARACTERS,
        problem=problem,
    )


def ring() -> Page:
    """POST /app/ring: sends it, and leads to its page."""
    account, chosen = current().account, set(request.form.getlist("device"))
    written = Written(*(request.form.get(name, default) for name, default in Written._field_defaults.items()))
    written = written._replace(link=written.link.strip(), later=written.later.strip())
    try:
        sent = composing.ring(account, written, chosen, clock.now_ms())
    except Refused as refused:
        return _ring_page(written, chosen, Problem.of(refused)), 422
    at, path = sent.notification.content.deliver_at, f"/app/notifications/{sent.notification.id}"
    return redirect(path, 303) if at is None else page.back_to(path, f"It will ring {page.near(at)}.")
