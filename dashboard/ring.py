"""Ring: write a notification to one's own devices."""

from flask import redirect, render_template

from core import delivery, local_time
from dashboard import page
from dashboard.page import Page, Problem
from models import Device
from store.senders import Owner
from web.context import current, request
from wire.errors import Refused
from wire.notification import PRIORITIES, Content, checked_priority, checked_url
from wire.validation import MAX_BODY_CHARACTERS, MAX_TITLE_CHARACTERS, checked_text

NEW = {"title": "", "text": "", "priority": "normal", "link": "", "later": ""}
TEST = NEW | {"title": "Hello", "text": "from my own server"}  # as the key's page shows it


def show_ring(problem: Problem | None = None) -> str:
    """GET /app/ring?test: the form, empty or with a test."""
    devices = Device.of_account(current().account.seq)
    return render_template(
        "ring.html",
        typed={**(TEST if "test" in request.args else NEW), **request.form.to_dict()},
        chosen=request.form.getlist("device") if problem else [device.id for device in devices],
        devices=devices,
        priorities=PRIORITIES,
        max_title=MAX_TITLE_CHARACTERS,
        max_text=MAX_BODY_CHARACTERS,
        problem=problem,
    )


def ring() -> Page:
    """POST /app/ring: sends it, and leads to its page."""
    account, chosen = current().account, set(request.form.getlist("device"))
    typed = {name: request.form.get(name, default).strip() for name, default in NEW.items()}
    try:
        content = _content(typed, account.time_zone)
        sent = delivery.deliver(Owner.of(account), content, device_ids=_chosen(account.seq, chosen))
    except Refused as refused:
        problem = Problem.of(refused)  # of a time it names no field
        return show_ring(problem._replace(field=problem.field or "later")), 422
    at, path = sent.notification.content.deliver_at, f"/app/notifications/{sent.notification.id}"
    return redirect(path, 303) if at is None else page.back_to(path, f"It will ring {page.near(at)}.")


def _content(typed: dict[str, str], zone: str) -> Content:
    return Content(
        checked_text(typed["title"], "title", MAX_TITLE_CHARACTERS),
        checked_text(typed["text"], "text", MAX_BODY_CHARACTERS),
        priority=checked_priority(typed["priority"], "priority"),
        url=checked_url(typed["link"], "link") if typed["link"] else None,
        deliver_at=local_time.moment_ms(typed["later"], zone) if typed["later"] else None,
    )


def _chosen(account_seq: int, ids: set[str]) -> set[str] | None:
    """The account's devices (their ids) among these; None for all. `Refused` (400) if there are only others."""
    known = {device.id for device in Device.of_account(account_seq)}
    if known and not known & ids:
        raise Refused(400, "Choose at least one device.", field="devices")
    return None if known <= ids else known & ids
