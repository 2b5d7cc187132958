"""The page for a forgotten password, where the service sends e-mail."""

from collections.abc import Callable

from flask import render_template

from core import accounts, mails, new_passwords
from dashboard.page import Page
from web import guards, rate_limits
from web.context import request
from wire.errors import Refused


def operations() -> tuple[tuple[str, str, Callable[..., Page]], ...]:
    """The method, the rule and the handler of the page and its form."""
    return ("GET", "/forgot", show_forgot), ("POST", "/forgot", send_link)


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
