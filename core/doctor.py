"""`pocketbell doctor`: what is or will soon be wrong, and advice, a line for each check. Must not know commands."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import push
from config import SHORT_SECRET, Settings
from core import health_ping, proxies, sharing
from models import Account, Device
from process import clock
from providers import PROVIDERS, transport
from providers.base import Message, Outcome, Provider, Push, Unavailable
from providers.webpush import WebPush
from store import database, notifications, server_notes
from wire.notification import Content

CLOCK_TOLERANCE_S = 60
SHARED_CLOCK_TOLERANCE_S = 5  # between the machines that share a database
MIN_FREE_BYTES = 200_000_000
TIMEOUT_S = 5.0
LOOKED_AT_TOKEN = (Outcome.DEAD, Outcome.REFUSED, Outcome.DELIVERED)  # so the provider took our credentials
Check = Callable[[Settings], tuple[str, str]]  # returns the level and the words of its finding


class Finding(NamedTuple):
    """A check's name, a level and a sentence. The level `look` is for a state that may be intended."""

    check: str
    level: str
    words: str


def examine(settings: Settings) -> Iterator[Finding]:
    """Run every check, even if another one raises an error."""
    for name, check in checks().items():
        try:
            level, words = check(settings)
        except Exception as error:
            level, words = "bad", f"this check failed: {type(error).__name__}"
        yield Finding(name, level, words)


def _settings(settings: Settings) -> tuple[str, str]:
    if settings.wipes_disk:
        return "bad", "this platform (DYNO is set) wipes the disk at each restart, and all data with it."
    if settings.file and settings.file.is_file() and settings.file.stat().st_mode & 0o007:
        return (
            "look",
            f"everybody on this machine can read {settings.file}, secrets included: chmod 600 {settings.file}",
        )
    return "ok", "every setting is valid."


def _host(settings: Settings) -> tuple[str, str]:
    if settings.host in ("0.0.0.0", "::"):  # noqa: S104
        return "look", f"it listens on every address ({settings.host}): let only a proxy with https reach it."
    return "ok", f"it listens on {settings.host} alone."


def _secret_key(settings: Settings) -> tuple[str, str]:
    if settings.has_short_secret:
        return "look", SHORT_SECRET
    return "ok", "it is long enough." if settings.secret_key else "not set: Pocketbell made its own."


def _disk(settings: Settings) -> tuple[str, str]:
    if not isinstance(settings.database, Path):
        return "ok", "nothing is kept on it: everything is in PostgreSQL."
    place = settings.database.parent.resolve()
    mode, free = place.stat().st_mode & 0o777, shutil.disk_usage(place).free
    if mode & 0o077:
        return "bad", f"other users can read {place} (mode {mode:04o}): chmod 700 {place}"
    if not os.access(place, os.W_OK):
        return "bad", f"this user cannot write to {place}: run the command as the user that owns it."
    if free < MIN_FREE_BYTES:
        return "bad", f"only {free // 1_000_000} MB are free on the disk of {place}: free up some space."
    return "ok", f"{free // 1_000_000} MB are free on the disk of {place}."


def _database(settings: Settings) -> tuple[str, str]:
    if fault := database.fault():
        return "bad", f"{settings.database} is damaged ({fault}): restore a backup (docs/backup.md)."
    server_notes.try_writing()
    if not isinstance(settings.database, Path):
        return _database_server(settings, settings.database)
    file = settings.database.resolve()
    return "ok", f"{file} is intact ({file.stat().st_size // 1000:,} KB) and writable."


def _database_server(settings: Settings, url: database.ServerUrl) -> tuple[str, str]:
    most, each = database.most_connections() or 0, url.connections + (settings.redis_url is None)
    if settings.workers * each > most:
        processes = f"{settings.workers} processes" if settings.workers > 1 else "the process"
        return "bad", (
            f"{url} takes {most} connections, and {processes} of this machine may open {settings.workers * each}:"
            " lower DATABASE_CONNECTIONS, or raise the server's max_connections."
        )
    return "ok", f"{url} answers and can be written."


def _account(settings: Settings) -> tuple[str, str]:
    owners = Account.all()
    if not owners:
        return "look", "there is none yet: ./pocketbell account create you@example.org"
    without = [one.email for one in owners if not one.password_hash]
    if without:
        return "look", f"{without[0]} has no password: ./pocketbell account set {without[0]} --password-link"
    return "ok", f"{len(owners)} with a password."


def _clock(settings: Settings) -> tuple[str, str]:
    newest = notifications.newest_at()
    if newest is not None and newest > clock.now_ms() + CLOCK_TOLERANCE_S * 1000:
        return "bad", "it is behind the newest notification: set the machine's clock (timedatectl set-ntp true)."
    servers = database.clock_ms()
    off_s = 0 if servers is None else round((clock.now_ms() - servers) / 1000)
    if abs(off_s) > SHARED_CLOCK_TOLERANCE_S:
        return "bad", f"by PostgreSQL's it is {_ahead(off_s)}: set both (timedatectl set-ntp true)."
    return _clock_of_others(settings)


def _clock_of_others(settings: Settings) -> tuple[str, str]:
    host = next((one for one in settings.providers[WebPush.kind] if "*" not in one), None)
    if host is None:
        return "look", "there is nothing to compare it with: every host in WEBPUSH_HOSTS has a wildcard."
    url = host if "://" in host else f"https://{host}"
    reply = transport.get(url, TIMEOUT_S)
    if reply.failure:
        return "look", f"{url} could not be asked for the time: {reply.failure}."
    date = reply.headers.get("date")
    if not date:
        return "look", f"{url} did not say what time it is."
    off_s = round(clock.now_ms() / 1000 - parsedate_to_datetime(date).timestamp())
    if abs(off_s) > CLOCK_TOLERANCE_S:
        return "bad", f"it is {_ahead(off_s)}: timedatectl set-ntp true"
    return "ok", "it is right to within a minute."


def _ahead(off_s: int) -> str:
    return f"{abs(off_s)} s {'ahead' if off_s > 0 else 'behind'}"


def _service(settings: Settings) -> tuple[str, str]:
    return _health(f"{settings.local_url}/healthz", "start it, or set HOST and PORT to what it uses")


def _address(settings: Settings) -> tuple[str, str]:
    if settings.base_url is None:
        return "look", "BASE_URL is not set: phones need an https address, and links lead to this machine only."
    if not settings.base_url.startswith("https://"):
        return "bad", f"{settings.base_url} is not https: browsers allow notifications over https only."
    return _health(f"{settings.base_url}/healthz", "check the domain name, the certificate and the proxy")


def _health(url: str, advice: str) -> tuple[str, str]:
    reply = transport.get(url, TIMEOUT_S)
    if reply.failure:
        return "bad", f"{url} does not answer: {reply.failure}; {advice}."
    try:
        is_ours = json.loads(reply.body).get("status") in ("ok", "unavailable")
    except (ValueError, AttributeError):
        is_ours = False
    if not is_ours:
        return "bad", f"{url} is answered by something else (status {reply.status}); {advice}."
    return ("ok", f"{url} answers.") if reply.status == 200 else ("bad", f"{url} reports a fault: see the log.")


def _proxies(settings: Settings) -> tuple[str, str]:
    if warning := proxies.warning(clock.now_ms()):
        return "look", warning
    return "ok", "no request came through a proxy that FORWARDED_ALLOW_IPS does not list."


def _watched(settings: Settings) -> tuple[str, str]:
    if settings.heartbeat_url is None:
        return "look", "nothing notices when this service is down: set HEARTBEAT_URL (docs/watches.md)."
    if failure := health_ping.last_failure():
        return "bad", f"The last call of HEARTBEAT_URL failed: {failure}."
    return "ok", "HEARTBEAT_URL is called each minute while the service is healthy."


def _redis(settings: Settings) -> tuple[str, str]:
    if settings.redis_url is None:
        return "ok", "not used: one process serves, and counts the rate limits by itself."
    if fault := sharing.fault():
        return "bad", f"it cannot be used ({fault}): each process counts the rate limits by itself until it can."
    return "ok", "it counts the rate limits for all processes together."


def _provider(kind: str, settings: Settings) -> tuple[str, str]:
    provider = push.provider_of(kind)
    if kind not in push.configured():
        waiting = Device.count_all(kind)
        if not waiting:
            return "ok", f"not configured: {provider.needed}"
        need = f"{waiting} of the devices need it: what is sent to them stays pending."
        return "bad", f"not configured, and {need}"
    warnings = [warning for one in Account.all() if (warning := provider.warning(one.email))]
    if warnings:
        return "look", warnings[0]
    try:
        return _probe(provider, provider.nobody) if provider.nobody else ("ok", provider.ready())
    except Unavailable as refusal:
        return "bad", str(refusal.answer.error)


def _probe(provider: Provider[Any], nobody: str) -> tuple[str, str]:
    """Push to a device that does not exist: a provider that refuses only its token accepts our credentials."""
    message = Message("doctor", Content("Doctor", "Nobody gets this."), "/app/")
    (answer,) = push.send([Push(provider.kind, nobody, message, "")], TIMEOUT_S)
    if answer.outcome in LOOKED_AT_TOKEN:
        return "ok", f"{provider.service} accepts the credentials."
    return "bad", str(answer.error)


CHECKS: dict[str, Check] = {
    "settings": _settings,
    "HOST": _host,
    "SECRET_KEY": _secret_key,
    "disk": _disk,
    "database": _database,
    "accounts": _account,
    "clock": _clock,
    "service": _service,
    "public address": _address,
    "proxies": _proxies,
    "watched": _watched,
    "Redis": _redis,
}


def checks() -> dict[str, Check]:
    """Every check by its name: first of the installation, then of each provider."""
    return CHECKS | {provider.name: partial(_provider, kind) for kind, provider in PROVIDERS.items()}
