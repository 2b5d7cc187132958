"""The rules for heartbeats, whose states core/heartbeat_checks.py changes. Must not know requests."""

import re
import unicodedata
import uuid
from typing import Any

from core import heartbeat_checks
from core.durations import in_words, seconds_of, short
from core.local_time import checked_cron, cron_words
from models import Account
from store import heartbeats as stored
from store.database import transaction
from store.heartbeats import Beat
from wire.errors import Refused, existing
from wire.notification import HIGH_PRIORITY, checked_priority
from wire.validation import checked_name

MAX_HEARTBEATS = 100  # of an account
MIN_S, MAX_PERIOD_S, MAX_GRACE_S = 60, 366 * 86_400, 31 * 86_400
DEFAULT_GRACE = "10m"
MADE_BY_PING = {"period": "1d", "grace": "1h"}
ONE_UNIT = {"1 day": "day", "1 h": "hour", "1 min": "minute"}
NOT_IN_SLUGS, BETWEEN_WORDS = re.compile(r"[^\w\s-]", re.ASCII), re.compile(r"[-\s]+", re.ASCII)


def create_heartbeat(account: Account, settings: dict[str, Any], now: int, ping_id: str | None = None) -> Beat:
    """A new heartbeat with the `settings` given, as for `change_heartbeat`: a name, and either a period or a cron.

    `ping_id` is the UUID in its address, if it has one already. `Refused` (400) when a value is wrong, the account
    has as many as it may have, or another account has that UUID.
    """
    values = _columns({"period": "", "grace": DEFAULT_GRACE, "priority": HIGH_PRIORITY, **settings}, now)
    with transaction(account.seq):
        if stored.count(account.seq) >= MAX_HEARTBEATS:
            raise Refused(400, f"You already have {MAX_HEARTBEATS} heartbeats. Delete one first.")
        if ping_id and stored.is_taken(ping_id):
            raise Refused(400, f"There is a heartbeat with the UUID {ping_id} already.")
        made = stored.add(account.seq, {**values, "ping_id": ping_id or str(uuid.uuid4()), "state": "new"}, now)
        return find_heartbeat(account.seq, made)


def change_heartbeat(account_seq: int, id_: str, settings: dict[str, Any], now: int) -> Beat:
    """Change these settings, texts as the owner writes them, and return the heartbeat.

    They are name, period or cron, grace and priority. If period, cron or grace changes, the next ping is expected
    counting from now, once there was a ping. `Refused` (404) without such a heartbeat, (400) for a wrong value.
    """
    checked = _columns(settings, now)
    with transaction(account_seq):
        beat = find_heartbeat(account_seq, id_)
        values = {column: value for column, value in checked.items() if value != getattr(beat, column)}
        stored.change(beat.seq, **values)
        changed = find_heartbeat(account_seq, id_)
        if beat.deadline_at is not None and values.keys() & {"period_s", "cron", "grace_s"}:
            heartbeat_checks.expect(changed, now)
        return find_heartbeat(account_seq, id_)


def find_heartbeat(account_seq: int, id_: str) -> Beat:
    """The account's heartbeat with that id, or with that UUID in its address; `Refused` (404) when it has none."""
    return existing(stored.find(account_seq, id_))


def slug(name: str) -> str:
    """The name as a part of an address, as Healthchecks makes it: `nightly-backup` for Nightly Backup."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return BETWEEN_WORDS.sub("-", NOT_IN_SLUGS.sub("", ascii_name.lower())).strip("-_")


def with_slug(account_seq: int, wanted: str) -> list[Beat]:
    """The account's heartbeats whose names have that slug."""
    return [beat for beat in stored.of_account(account_seq) if wanted and slug(beat.name) == wanted]


def check_slug(wanted: str, found: list[Beat]) -> None:
    """`Refused`: (409) when several were found with the slug, (400) for a text that is no slug."""
    if len(found) > 1:
        raise Refused(409, f"Ambiguous slug: {len(found)} heartbeats have this slug. Rename one.")
    if not wanted or slug(wanted) != wanted:
        raise Refused(400, "A slug has lower-case letters, digits, hyphens and underscores, such as nightly-backup.")


def make_with_slug(account: Account, wanted: str, now: int) -> tuple[Beat, bool]:
    """The account's heartbeat with that slug, made with that name if there is none, and whether it was made."""
    with transaction(account.seq):
        if found := with_slug(account.seq, wanted):
            return found[0], False
        return create_heartbeat(account, {"name": wanted, **MADE_BY_PING}, now), True


def pause_heartbeat(account_seq: int, id_: str, now: int) -> Beat:
    """Expect no pings until it is resumed; pings are kept and change nothing."""
    with transaction(account_seq):
        beat = find_heartbeat(account_seq, id_)
        stored.change_state(beat, "paused", None, now, beat.down_since)
        return find_heartbeat(account_seq, id_)


def resume_heartbeat(account_seq: int, id_: str, now: int) -> Beat:
    """Expect pings again, from now on.

    Without any ping yet, it waits for the first one; if it was down, it stays down until a success.
    """
    with transaction(account_seq):
        beat = find_heartbeat(account_seq, id_)
        if beat.state == "paused":
            if beat.down_since is not None:
                stored.change_state(beat, "down", None, now, beat.down_since)
            elif beat.last_ping_at is None:
                stored.change_state(beat, "new", None, now)
            else:
                heartbeat_checks.expect(beat, now)
        return find_heartbeat(account_seq, id_)


def rotate_address(account_seq: int, id_: str) -> Beat:
    """Give it a new address; the old one stops working at once."""
    with transaction(account_seq):
        beat = find_heartbeat(account_seq, id_)
        stored.change(beat.seq, ping_id=str(uuid.uuid4()))
        return find_heartbeat(account_seq, beat.id)


def schedule(beat: Beat) -> str:
    """When it is expected, as its owner wrote it: `1h` or `0 3 * * *`."""
    return beat.cron if beat.cron is not None else short(beat.period_s or 0)


def schedule_words(beat: Beat) -> str:
    """When it is expected, in words: "every 30 min", "Mondays at 02:30"."""
    if beat.cron is not None:
        return cron_words(beat.cron)
    words = in_words(beat.period_s or 0)
    return f"every {ONE_UNIT.get(words, words)}"


def _columns(settings: dict[str, Any], now: int) -> dict[str, Any]:
    values = dict[str, Any]()
    if settings.get("period") and settings.get("cron"):
        raise Refused(400, "Set either a period or a cron expression, not both.", field="period")
    if settings.keys() & {"period", "cron"} and not (settings.get("period") or settings.get("cron")):
        raise Refused(400, "Set a period or a cron expression.", field="period")
    if settings.get("period"):
        values |= {"period_s": seconds_of(settings["period"], "period", MIN_S, MAX_PERIOD_S), "cron": None}
    if settings.get("cron"):
        values |= {"period_s": None, "cron": checked_cron(settings["cron"], now)}
    if "name" in settings:
        values["name"] = checked_name(settings["name"])
    if "grace" in settings:
        values["grace_s"] = seconds_of(settings["grace"], "grace", MIN_S, MAX_GRACE_S)
    if "priority" in settings:
        values["priority"] = checked_priority(settings["priority"], "priority")
    return values
