"""The pages that the links in pushes and mails lead to: a button of a notification, an address that gets mails.

They need no signed-in owner: the token in the address permits the press. Opening one changes nothing, since programs
look at links, too.
"""

from flask import render_template

from core import answers, mail_addresses
from dashboard import page
from dashboard.page import Page
from process import clock
from web.context import request

STOP = "/stop"  # ends the address of the page that ends the mails


def show_button(token: str) -> Page:
    """GET /a/{token}: a page with the button or an undo."""
    return render_template("button.html", question=answers.find(token))


def press_button(token: str) -> Page | dict[str, bool]:
    """POST /a/{token}: a press, by a button on a device (answered with JSON) or in the page of the button.

    With `undo` in the query, a mute by this button ends.
    """
    undoes = "undo" in request.args
    answers.press(token, undoes)
    if page.is_wanted():
        return render_template("button.html", question=answers.find(token), is_pressed=not undoes)
    return {"ok": True}


def show_address(token: str) -> Page:
    """GET /e/{token}: the page that confirms the address or, with /stop, ends its mails."""
    device = mail_addresses.find(token.removesuffix(STOP))
    return render_template("mail_link.html", device=device, stops=token.endswith(STOP))


def press_address(token: str) -> Page:
    """POST /e/{token}: confirms the address; with /stop, or as a mail program ends mails (RFC 8058), removes it."""
    if token.endswith(STOP) or request.form.get("List-Unsubscribe") == "One-Click":
        mail_addresses.stop(token.removesuffix(STOP), clock.now_ms())
        return render_template("mail_link.html")
    return render_template("mail_link.html", device=mail_addresses.confirm(token, clock.now_ms()))
