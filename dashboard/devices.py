"""The page Devices & channels: this browser, the other devices, the channels; the service worker."""

from typing import Any

from flask import Response, current_app, redirect, render_template

import push
from core import channels, delivery, devices, mail_addresses, shown_once
from core.attention import LAST_IS_GONE
from core.week_windows import OFF
from dashboard import page
from dashboard.page import Page, Problem
from models import Device
from process import clock
from process.clock import DAY_MS
from providers import PROVIDERS
from providers.base import Outcome, Provider
from providers.chat_forms import FORMS
from providers.webhook import GENERIC, Webhook
from store.deliveries import latest_on
from store.senders import find_receivers
from web import guards
from web.context import current, request
from web.request_body import read_fields
from wire.errors import Refused
from wire.notification import PRIORITIES
from wire.validation import optional_text

WAITS_S = (0, 60, 300, 600, 1_800, 3_600)  # that the page offers for a channel
SILENT_AFTER_MS = 30 * DAY_MS
DEVICES = "/app/devices"
REGISTRATION = ("kind", "token", "address", "url", "preset", "name")  # the fields of the forms for new ones
CHANGEABLE = ("name", "minPriority", "quietHours")  # the fields of the form for a device, with "when" of a channel
ADDED = "Added. Send it a test."
LINK_SENT = "A link is on its way to the address. It gets notifications once somebody has followed it."


def show_devices(problem: Problem | None = None) -> str:
    """GET /app/devices?made: the list; the topic or secret of the device `made` if this browser has just added it."""
    account, now = current().account, clock.now_ms()
    made = Device.find(account.seq, request.args.get("made", ""))
    shown = made and shown_once.take(made.id, guards.session_token())
    listed = Device.of_account(account.seq)
    silent = {one.id: days for one in listed if one.after_s is None and (days := _silent_days(one, now))}
    return render_template(
        "devices.html",
        devices=[device for device in listed if device.after_s is None],
        channels=[device for device in listed if device.after_s is not None],
        latest={device.id: latest_on(account.seq, device.seq) for device in listed if device.after_s is not None},
        forms=FORMS,
        times=WAITS_S,
        silent=silent,
        dots={device.id: _dot(device, device.id in silent) for device in listed},
        public_key=push.public_vapid_key(),
        warnings=push.warnings(account.email).values(),
        without=_without_device(account.seq),
        providers=PROVIDERS,
        configured=push.configured(),
        priorities=PRIORITIES,
        problem=problem,
        typed=request.form,
        fetching=_subscription(shown) if made and shown and not made.preset else None,
        secret=shown if made and made.preset else None,
    )


def _subscription(topic: str) -> dict[str, str]:
    """How an app subscribes to a new device's topic: by its parts, by a link, or by that link's QR code."""
    server = guards.origin()
    scheme, _, host = server.partition("://")
    link = f"ntfy://{host}/{topic}?display=Pocketbell" + ("" if scheme == "https" else "&secure=false")
    return {"server": server, "topic": topic, "link": link, "picture": page.qr_svg(link)}


def _without_device(account_seq: int) -> str:
    """What becomes of notifications while the list of devices is empty."""
    found = find_receivers(account_seq)
    if found.devices:
        return "Until one is added, only your channels get notifications."
    return LAST_IS_GONE if found.last_was_dead else "Until one is added, notifications are only saved to History."


def _dot(device: Device, is_silent: bool) -> str:
    """The class of the device's dot."""
    if device.kind not in push.configured() or device.last_error:
        return "bad"
    if device.confirm_by is not None or is_silent:
        return "soon"
    return "" if device.last_delivered_at else "off"


def _silent_days(device: Device, now: int) -> int:
    """For how many days the device has neither accepted a push nor been used; 0 if fewer than 30."""
    last = max(device.created_at, device.last_delivered_at or 0, device.last_seen_at or 0)
    return (now - last) // DAY_MS if now - last >= SILENT_AFTER_MS else 0


def sync_device() -> tuple[dict[str, Any], int]:
    """POST /app/devices: this browser's subscription, from the page's script.

    With `only_known`, for a mere visit, a removed device stays removed (404). The answer has the key for subscribing,
    and a token for the service worker unless the browser sent a valid one.
    """
    sent = read_fields("subscription", "token", "only_known")
    browser = devices.Browser(
        subscription=sent.get("subscription"),
        token=optional_text(sent, "token"),
        name=guards.browser_name(),
        origin=guards.origin(),
    )
    only_known = sent.get("only_known") is True
    device, token = devices.sync_browser(current().account.seq, browser, only_known, clock.now_ms())
    return {"ok": True, "id": device.id, "token": token, "publicKey": push.public_vapid_key()}, 201


def resync_device() -> dict[str, Any]:
    """POST /app/devices/resync: a browser's new subscription, from its service worker, signed in or not."""
    devices.resync(current().device, read_fields("subscription").get("subscription"))
    return {"ok": True, "id": current().device.id}


def add_device() -> Page:
    """POST /app/devices/new: a device that is no browser; the page that comes next shows its topic or secret once."""
    account_seq, now = current().account.seq, clock.now_ms()
    typed = {name: request.form.get(name, "").strip() for name in (*REGISTRATION, "when")}
    provider = PROVIDERS.get(typed["kind"])
    try:
        if provider and provider.kind not in push.configured():
            raise Refused(400, f"{provider.not_configured()} {provider.hint}", field="kind")
        registration = {name: typed[name] or None for name in REGISTRATION} | _role(typed["when"])
        with shown_once.with_secret(account_seq):
            device = devices.add_device(account_seq, registration, now, origin=guards.origin())
            if shown := device.topic or device.secret:
                shown_once.keep(shown, guards.session_token(), now, device.id)
    except Refused as refused:
        problem = Problem.of(refused)
        field = problem.field if problem.field in REGISTRATION else "name"
        return show_devices(problem._replace(field=f"{_form(provider)}-{field}")), 422
    if device.topic:
        return redirect(f"{DEVICES}?made={device.id}#subscribe", 303)
    made = f"?made={device.id}" if shown else ""
    return page.back_to(DEVICES + made, ADDED if device.confirm_by is None else LINK_SENT)


def _form(provider: type[Provider[Any]] | None) -> str:
    """The form for devices of this provider, with whose name the ids of its fields begin."""
    if provider is None or not (provider.is_fetched or provider.is_channel):
        return "token"
    return "fetching" if provider.is_fetched else "mail" if provider.is_mailed else "chat"


def test_device(device_id: str) -> Page:
    """POST /app/devices/{id}/test."""
    if mail_addresses.test(current().account, device_id, clock.now_ms()):
        return page.back_to(DEVICES, "The test is on its way. If it does not arrive, this page will say why.")
    device = Device.find(current().account.seq, device_id)
    preset = device.preset if device else None
    begun_s = clock.monotonic_s()
    answer = delivery.try_device(current().account, device_id)
    if answer.outcome is Outcome.DELIVERED and preset:
        name = Webhook.service if preset == GENERIC else FORMS[preset].name
        return page.back_to(DEVICES, f"{name} accepted the test.")
    if answer.outcome is Outcome.DELIVERED:
        took = f"The push service took the test in {clock.monotonic_s() - begun_s:.1f} s."
        return page.back_to(DEVICES, f"{took} If nothing appears, check the device’s own settings.")
    gone = f" The {'channel' if preset else 'device'} was removed." if answer.outcome is Outcome.DEAD else ""
    return page.back_to(DEVICES, f"The test could not be sent. {answer.error}{gone}", "error")


def change_device(device_id: str) -> Page:
    """POST /app/devices/{id}: its name, least priority and quiet hours, and a channel's role, as far as sent."""
    changes = {name: request.form[name].strip() for name in CHANGEABLE if name in request.form}
    if changes.get("quietHours") == "":
        changes["quietHours"] = OFF
    try:
        devices.change_device(current().account.seq, device_id, changes | _role(request.form.get("when", "")))
    except Refused as refused:
        return show_devices(Problem.of(refused, f"{refused.field or 'name'}-{device_id}")), 422
    return page.back_to(DEVICES, "Saved.")


def remove_device(device_id: str) -> Page:
    """POST /app/devices/{id}/remove."""
    devices.remove_device(current().account.seq, device_id, clock.now_ms())
    return page.back_to(DEVICES, "Device removed. It gets no more notifications.")


def service_worker() -> Response:
    """GET /app/sw.js: its address makes the whole web app its scope."""
    answer = current_app.send_static_file("sw.js")
    answer.headers["Cache-Control"] = "no-cache"
    return answer


def _role(when: str) -> dict[str, Any]:
    """The fields of a channel's role, from the seconds that the form has; none if it has no text."""
    if not when:
        return {}
    after_s = int(when) if when.isascii() and when.isdigit() and len(when) < 6 else -1
    return {"role": channels.ALWAYS} if after_s == 0 else {"role": channels.FALLBACK, "afterS": after_s}


def ask_again(device_id: str) -> Page:
    """POST /app/devices/{id}/confirm: mails another link that confirms the address."""
    mail_addresses.ask_again(current().account, device_id, clock.now_ms())
    return page.back_to(DEVICES, LINK_SENT)
