"""Signing in on a phone: the code on the computer, the question there whose phone it is, the phone's own pages.

A GET of the code's address changes nothing: programs that look at links must not spend it. The phone's button does.
"""

from flask import flash, redirect, render_template, session

import push
from core import phone_links
from dashboard import page
from dashboard.page import Page, Problem
from models import Device
from process import clock
from store import notifications
from store.sessions import PhoneLink
from web import guards, rate_limits
from web.context import current, request
from wire.errors import Refused

CODE_PAGE = "/app/devices/phone"
ASKING_PAGE = "/app/phone"
READY_PAGE = "/app/devices/this"
CODE, SECRET = "phone code", "phone secret"  # in the cookie: of the computer, of the phone
WAITING = {"shown", "asked", "confirmed"}  # states that change without this browser


# --- on the computer ----------------------------------------------------------------------------------------


def show_code() -> Page:
    """GET /app/devices/phone: the code, then the phone that asks with it, then the result."""
    link, now, code = PhoneLink.of_session(guards.session_token()), clock.now_ms(), session.get(CODE, "")
    state = phone_links.state(link, now)
    if link and state == "shown" and not phone_links.is_shown(link, code):
        state = "none"
    address = f"{guards.origin()}{ASKING_PAGE}/{code}"
    return render_template(
        "phone_code.html",
        state=state,
        link=link,
        waiting=state in WAITING and state,
        port=current().settings.port,
        address=address,
        code=" ".join(code[place : place + 4] for place in range(0, len(code), 4)),
        picture=page.qr_svg(address) if state == "shown" else "",
    )


def make_code() -> Page:
    """POST /app/devices/phone: a new code, which only this browser's cookie holds."""
    account = current().account
    rate_limits.count(rate_limits.NEW_PHONE_CODES, account.seq)
    session[CODE] = phone_links.make_code(guards.session_token(), account.seq, clock.now_ms())
    return redirect(CODE_PAGE, 303)


def answer_phone() -> Page:
    """POST /app/devices/phone/answer: `yes` signs in the phone that shows this number, all else refuses it."""
    number, is_mine = request.form.get("number", ""), request.form.get("answer") == "yes"
    try:
        phone_links.decide(guards.session_token(), current().account.seq, number, is_mine, clock.now_ms())
    except Refused as refused:
        flash(refused.message, "error")
    return redirect(CODE_PAGE, 303)


# --- on the phone -------------------------------------------------------------------------------------------


def show_link(code: str) -> Page:
    """GET /app/phone/{code}: an explanation of the code, and the button that sends it."""
    link, account = PhoneLink.of_phone(session.get(SECRET, "")), guards.session_account()
    if link and phone_links.is_shown(link, code):
        return redirect(ASKING_PAGE, 303)
    _, owner_seq = phone_links.find(code, clock.now_ms())
    is_same = account is not None and account.seq == owner_seq
    return render_template(
        "phone.html", state="link", account=account, is_same=is_same, is_apple="iPhone" in guards.browser_name()
    )


def send_code(code: str) -> Page:
    """POST /app/phone/{code}: asks the browser that shows the code."""
    address, name = guards.client_address(), guards.browser_name()
    session[SECRET] = phone_links.ask(code, name, address, clock.now_ms())
    return redirect(ASKING_PAGE, 303)


def send_typed_code() -> Page:
    """POST /app/phone: as `send_code`, with a typed code."""
    try:
        return send_code(phone_links.cleaned(request.form.get("code", "")))
    except Refused as refused:
        if refused.status not in (404, 409):
            raise
        return _asking_page("none", problem=Problem(refused.message, "code")), 422


def show_phone() -> Page:
    """GET /app/phone: the number to compare, until the computer has confirmed it; then it signs this browser in."""
    link, now = PhoneLink.of_phone(session.get(SECRET, "")), clock.now_ms()
    if link and (account := phone_links.take(link, now)):
        guards.begin_session(account)
        return redirect(READY_PAGE, 303)
    state = phone_links.state(link, now)
    if state in ("none", "used") and guards.session_account():
        return redirect(READY_PAGE, 303)
    return _asking_page(state, number=link.number if link else "")


def _asking_page(state: str, number: str = "", problem: Problem | None = None) -> str:
    waiting = state in WAITING and state
    return render_template("phone.html", state=state, number=number, problem=problem, waiting=waiting)


def show_this_device() -> Page:
    """GET /app/devices/this: turns on notifications in this browser; until something has rung, a step of set-up."""
    account_seq = current().account.seq
    step = None if notifications.newest_seq(account_seq) else 3 if Device.count(account_seq) else 2
    place = {"section": "set-up"} if step else {}  # which is in no part of the navigation
    return render_template("turn_on.html", public_key=push.public_vapid_key(), step=step, **place)
