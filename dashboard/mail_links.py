"""The pages that links in mails lead to: confirming an address, and ending its mails.

They need no signed-in owner: the token in the address permits the press. Opening one changes nothing, since programs
look at links, too.
"""

from flask import render_template

from core import mail_addresses
from dashboard.page import Page
from models import Device
from process import clock
from web.context import request

STOP = "/stop"  # ends the address of the page that ends the mails


def show_link(token: str) -> Page:
    """GET /e/{token}: the page with the button."""
    return _page(mail_addresses.find(token.removesuffix(STOP)), token)


def press(token: str) -> Page:
    """POST /e/{token}: confirms the address; with /stop, or as a mail program ends mails (RFC 8058), removes it."""
    if token.endswith(STOP) or request.form.get("List-Unsubscribe") == "One-Click":
        mail_addresses.stop(token.removesuffix(STOP), clock.now_ms())
        return render_template("mail_link.html", done="This address gets no more mails.")
    return _page(mail_addresses.confirm(token, clock.now_ms()), token)


def _page(device: Device, token: str) -> str:
    if token.endswith(STOP):
        return render_template("mail_link.html", label="Stop the mails to this address", address=device.token)
    if device.confirm_by is None:
        return render_template("mail_link.html", done="This address is confirmed.")
    return render_template("mail_link.html", label="Confirm this address", address=device.token)
