"""What is wrong with this installation, or soon will be, and what to do about it: `flask doctor`.

Each check looks at one thing and answers in one line. Must not know the command line.
"""

import json
import os
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import certifi

import push
from config import Settings
from core import delivery, proxies
from models import Account, Device
from process import clock
from providers.base import Message, Outcome, Push
from store import database
from store.notifications import Notification
from wire.notification import Content

ANSWERS_WITHIN_S = 5
CLOCK_TOLERANCE_S = 60
LEAST_FREE_BYTES = 200_000_000
Check = Callable[[Settings], tuple[str, str]]  # answers with the level and the words of its finding
NOBODY = {"apns": "00" * 32, "fcm": "nobody"}  # tokens that no device has


class Finding(NamedTuple):
    """What a check saw: its name, `ok`, `look` (may be meant so) or `bad`, and a sentence."""

    check: str
    level: str
    words: str


def examine(settings: Settings) -> Iterator[Finding]:
    """Run every check; one that fails itself does not keep the others from running."""
    for name, check in CHECKS.items():
        try:
            level, words = check(settings)
        except Exception as error:
            level, words = "bad", f"could not be looked at: {type(error).__name__}"
        yield Finding(name, level, words)


def _settings(settings: Settings) -> tuple[str, str]:
    if settings.wipes_disk:
        return "bad", "this platform (DYNO is set) wipes the disk at each restart, and all data with it."
    if settings.host in ("0.0.0.0", "::"):  # noqa: S104
        return "look", f"it listens on every address ({settings.host}): let only a proxy with https reach it."
    return "ok", "all are understood."


def _disk(settings: Settings) -> tuple[str, str]:
    place = settings.database.parent
    mode, free = place.stat().st_mode & 0o777, shutil.disk_usage(place).free
    if mode & 0o077:
        return "bad", f"others may look into {place} (mode {mode:04o}): chmod 700 {place}"
    if not os.access(place, os.W_OK):
        return "bad", f"{place} cannot be written by this user: run it as the user that owns it."
    if free < LEAST_FREE_BYTES:
        return "bad", f"only {free // 1_000_000} MB are free on the disk of {place}: make room."
    return "ok", f"{free // 1_000_000} MB are free on the disk of {place}."


def _database(settings: Settings) -> tuple[str, str]:
    fault = database.fault()
    if fault:
        return "bad", f"{settings.database} is damaged ({fault}): restore a backup (docs/backup.md)."
    database.try_writing()
    size = settings.database.stat().st_size
    return "ok", f"{settings.database} is whole, {size // 1000:,} KB, and can be written."


def _account(settings: Settings) -> tuple[str, str]:
    owners = Account.all()
    if not owners:
        return "look", "there is none: flask account create you@example.org"
    without = [one.email for one in owners if not one.password_hash]
    if without:
        return "look", f"{without[0]} has no password: flask account set {without[0]} --password-link"
    return "ok", f"{len(owners)} with a password."


def _clock(settings: Settings) -> tuple[str, str]:
    newest = Notification.newest_at()
    if newest is not None and newest > clock.now_ms() + CLOCK_TOLERANCE_S * 1000:
        return "bad", "it is behind the newest notification: set the machine's clock (timedatectl set-ntp true)."
    host = next((one for one in settings.webpush_hosts if "*" not in one), None)
    if host is None:
        return "look", "nobody to compare it with: no host in WEBPUSH_HOSTS has a whole name."
    url = host if "://" in host else f"https://{host}"
    try:
        _, date, _ = _ask(settings, url)
    except OSError as error:
        return "look", f"{url} could not be asked for the time: {_reason(error)}."
    if not date:
        return "look", f"{url} does not tell the time."
    off_s = round(clock.now_ms() / 1000 - parsedate_to_datetime(date).timestamp())
    if abs(off_s) > CLOCK_TOLERANCE_S:
        return "bad", f"it is {abs(off_s)} s {'ahead' if off_s > 0 else 'behind'}: timedatectl set-ntp true"
    return "ok", "it is right to the minute."


def _service(settings: Settings) -> tuple[str, str]:
    return _health(settings, f"{settings.local_url}/healthz", "start it, or set PORT as it has it")


def _address(settings: Settings) -> tuple[str, str]:
    if settings.base_url is None:
        return "look", "BASE_URL is not set: phones need an https address, and links say where this machine listens."
    if not settings.base_url.startswith("https://"):
        return "bad", f"{settings.base_url} is not https: browsers allow notifications over https only."
    return _health(settings, f"{settings.base_url}/healthz", "look at the name, the certificate and the proxy")


def _health(settings: Settings, url: str, advice: str) -> tuple[str, str]:
    try:
        status, _, body = _ask(settings, url)
    except OSError as error:
        return "bad", f"{url} does not answer: {_reason(error)}; {advice}."
    try:
        is_ours = json.loads(body).get("status") in ("ok", "unavailable")
    except (ValueError, AttributeError):
        is_ours = False
    if not is_ours:
        return "bad", f"{url} is answered by something else (status {status}); {advice}."
    return ("ok", f"{url} answers.") if status == 200 else ("bad", f"{url} says it is not well: see the log.")


def _proxies(settings: Settings) -> tuple[str, str]:
    warning = proxies.warning(clock.now_ms())
    if warning:
        return "look", warning
    return "ok", "no request came through a proxy that FORWARDED_ALLOW_IPS does not list."


def _web_push(settings: Settings) -> tuple[str, str]:
    delivery.vapid_key()
    warnings = [warning for one in Account.all() if (warning := push.contact_warning(one.email))]
    return ("look", warnings[0]) if warnings else ("ok", "its key is there.")


def _tokens(kind: str) -> Check:
    def check(settings: Settings) -> tuple[str, str]:
        if kind not in push.configured():
            waiting = Device.count_of_kind(kind)
            if waiting:
                return (
                    "bad",
                    f"not configured, and {waiting} of the devices need it: what is sent to them stays pending.",
                )
            return "ok", "not configured: only native apps need it."
        message = Message("doctor", Content("Doctor", "Nobody gets this."), "/app/")
        (answer,) = push.send([Push(kind, NOBODY[kind], message, "")], ANSWERS_WITHIN_S)
        if answer.outcome in (Outcome.DEAD, Outcome.REFUSED, Outcome.DELIVERED):  # it looked at the token
            return "ok", f"{push.SERVICES[kind]} takes the credentials."
        return "bad", str(answer.error)

    return check


CHECKS: dict[str, Check] = {
    "settings": _settings,
    "disk": _disk,
    "database": _database,
    "accounts": _account,
    "clock": _clock,
    "service": _service,
    "public address": _address,
    "proxies": _proxies,
    "Web Push": _web_push,
    "APNs": _tokens("apns"),
    "FCM": _tokens("fcm"),
}


def _ask(settings: Settings, url: str) -> tuple[int, str | None, bytes]:
    """What a GET of the address answers: status, Date, the beginning of the body; raises `OSError`."""
    context = ssl.create_default_context(cafile=settings.ca_file or certifi.where())
    https, no_proxy = urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({})
    try:
        with urllib.request.build_opener(https, no_proxy).open(url, timeout=ANSWERS_WITHIN_S) as answer:
            return answer.status, answer.headers["Date"], answer.read(1000)
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, answer.headers["Date"], b""
    except (ValueError, urllib.error.URLError) as error:
        raise OSError(_reason(error)) from None


def _reason(error: Exception) -> str:
    """In few words, without the address that was asked."""
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "verify_message", None) or getattr(reason, "strerror", None) or reason)
