"""The forms for channels on the page Devices & channels: mail addresses, chats and other services."""

from typing import Any

from core import channels, devices, mail_addresses
from dashboard import page
from dashboard.devices import DEVICES, devices_page
from dashboard.page import Page, Problem
from process import clock
from web import guards
from web.context import current, request
from wire.errors import Refused

ADDED = "Channel added. Send it a test."
LINK_SENT = "A link is on its way to the address. It gets notifications once somebody has followed it."


def add_channel() -> Page:
    """POST /app/devices/channel: a mail address, or a webhook, whose secret the page shows that comes next."""
    names = ("kind", "address", "url", "preset", "name", "when")
    typed = {name: request.form.get(name, "").strip() for name in names}
    try:
        registration = {name: typed[name] or None for name in names[:5]} | _role(typed["when"])
        account_seq, token, now = current().account.seq, guards.session_token(), clock.now_ms()
        device = devices.add_device_to_show(account_seq, registration, token, now, guards.origin())
    except Refused as refused:
        problem = Problem.of(refused)
        form = "mail" if "address" in request.form else "chat"
        field = problem.field if problem.field in ("address", "url", "preset") else "name"
        del typed["kind"]  # that of the form for tokens
        return devices_page(problem._replace(field=f"{form}-{field}"), None, **typed), 422
    if device.secret:
        return page.back_to(f"{DEVICES}?made={device.id}", ADDED)
    return page.back_to(DEVICES, ADDED if device.confirm_by is None else LINK_SENT)


def _role(when: str) -> dict[str, Any]:
    """What the seconds of the form, after which a channel is used, say; nothing says nothing."""
    if not when:
        return {}
    after_s = int(when) if when.isascii() and when.isdigit() and len(when) < 6 else -1
    return {"role": channels.ALWAYS} if after_s == 0 else {"role": channels.FALLBACK, "afterS": after_s}


def set_role(device_id: str) -> Page:
    """POST /app/devices/{id}/role."""
    try:
        device = devices.change_device(current().account.seq, device_id, _role(request.form.get("when", "")))
    except Refused as refused:
        return devices_page(Problem.of(refused, f"role-{device_id}")), 422
    return page.back_to(DEVICES, f"This channel now gets {channels.in_words(device.after_s or 0)}.")


def ask_again(device_id: str) -> Page:
    """POST /app/devices/{id}/confirm: mails another link that confirms the address."""
    mail_addresses.ask_again(current().account, device_id, clock.now_ms())
    return page.back_to(DEVICES, LINK_SENT)


OPERATIONS = (
    ("POST", "/devices/channel", add_channel),
    ("POST", "/devices/<device_id>/role", set_role),
    ("POST", "/devices/<device_id>/confirm", ask_again),
)
