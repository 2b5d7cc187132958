"""One-time links, signing in and signing out, and the page for a forgotten password."""

from flask import redirect, render_template

from core import accounts, local_time, mails, new_passwords
from core.plans import PLANS
from dashboard import page
from dashboard.page import Page, Problem
from dashboard.phone import READY_PAGE
from models import Account
from process import clock
from process.counters import count
from web import guards, rate_limits
from web.context import request
from wire.errors import Refused


def show_setup(token: str, problem: Problem | None = None) -> str:
    """GET /app/setup/{token}: the form that creates the owner's account, or sets a password."""
    account = accounts.find_link(token, clock.now_ms()).account
    asks_zone = account is None or accounts.is_unused(account)
    zones, form = local_time.time_zone_names(), request.form
    return render_template(
        "setup.html", account=account, form=form, asks_zone=asks_zone, zones=zones, plans=PLANS, problem=problem
    )


def finish_setup(token: str) -> Page:
    """POST /app/setup/{token}."""
    link = accounts.find_link(token, clock.now_ms())
    form = {name: request.form.get(name, "") for name in ("email", "password", "time_zone", "plan")}
    is_new = link.account is None or link.account.invited_until is not None
    try:
        account = accounts.use_link(token, form, clock.now_ms())
    except Refused as refused:
        return show_setup(token, Problem.of(refused)), 422
    guards.begin_session(account)
    return redirect(READY_PAGE if is_new else guards.HOME, 303)


def show_sign_in(problem: Problem | None = None) -> str:
    """GET /app/login."""
    return render_template("login.html", is_new=not Account.exists(), can_mail=mails.can_mail(), problem=problem)


def sign_in() -> Page:
    """POST /app/login: signs in and redirects to the page that was asked for."""
    account = with_password(request.form.get("email", ""), request.form.get("password", ""))
    if account is None:
        return show_sign_in(Problem("Wrong e-mail or password.", "password")), 422
    guards.begin_session(account)
    return redirect(page.asked_for("next", guards.HOME), 303)


def with_password(email: str, password: str) -> Account | None:
    """The account, if e-mail address and password are right; `Refused` (429) after too many tries."""
    mark = accounts.password_mark(email)
    visitor = rate_limits.Visitor(mark, guards.sender(), guards.known_browser(mark))
    _check(visitor)
    queue = accounts.KNOWN_BROWSER if visitor.known_browser else accounts.NEW_BROWSER
    with accounts.hashing(queue, mark if visitor.known_browser else visitor.sender):
        _check(visitor, 1)  # again: others may have tried while this request waited
        is_right = None
        try:
            account = accounts.with_password(email, password)
            is_right = account is not None
        finally:
            rate_limits.end_sign_in(visitor, is_right)
    if account is None:
        count("sign_in_failures", "wrong")
    return account


def _check(visitor: rate_limits.Visitor, running: int = 0) -> None:
    """Refuse a visitor who tried too often, and count that."""
    try:
        rate_limits.check_sign_in(visitor, running)
    except Refused:
        count("sign_in_failures", "limited")
        raise


def sign_out() -> Page:
    """POST /app/logout."""
    guards.end_session()
    return redirect("/app/login", 303)


def show_forgot() -> Page:
    """GET /app/forgot: asks for the e-mail address."""
    if not mails.can_mail():
        raise Refused(404)
    return render_template("forgot.html", is_sent=False)


def send_link() -> Page:
    """POST /app/forgot: mails a link, if there is such an account; the answer is the same if there is none."""
    if not mails.can_mail():
        raise Refused(404)
    email = request.form.get("email", "")
    rate_limits.count(rate_limits.NEW_PASSWORDS, guards.sender())
    rate_limits.count(rate_limits.NEW_PASSWORDS, accounts.password_mark(email))
    new_passwords.ask(email)
    return render_template("forgot.html", is_sent=True)
