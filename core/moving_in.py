"""Moving in from ntfy, Gotify or Healthchecks: the keys and heartbeats to make of what those have, and what is lost.

Users, tokens and applications become API keys, since senders need only another address and a key. Checks become
heartbeats that keep their UUIDs, so that jobs need only another host. Must not know files or the command line.
"""

import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

from core import accounts, api_keys, heartbeats
from core.local_time import checked_cron
from models import Account, ApiKey
from store import heartbeats as stored_heartbeats
from store.database import trial
from store.key_limits import READ, SEND
from wire.errors import Refused
from wire.validation import MAX_NAME_CHARACTERS

Row = dict[str, Any]
OF_NTFY: dict[str, dict[str, type]] = {  # tables and columns of its auth-file, from version 2.0 on
    "user": {"id": str, "user": str, "role": str},
    "user_access": {"user_id": str, "topic": str, "write": int},
    "user_token": {"user_id": str, "label": str, "expires": int},
}
OF_GOTIFY: dict[str, dict[str, type]] = {  # of its SQLite database, from version 2.4 on
    "users": {"id": int, "name": str},
    "applications": {"user_id": int, "name": str, "internal": int, "default_priority": int},
    "clients": {"name": str},
    "messages": {"id": int},
}
EVERYONE = "*"  # ntfy's name for those who have not signed in
FILTERS = ("filter_subject", "filter_body", "filter_http_body", "filter_default_fail")


class NewKey(NamedTuple):
    """A key to make: its name, scope, expiry, and whose place it takes."""

    name: str
    scope: str
    expires_at: int | None
    stands_for: str


class NewHeartbeat(NamedTuple):
    """A heartbeat to make: its settings as `core/heartbeats.py` takes them, its UUID, and whether it is paused."""

    settings: dict[str, str]
    ping_id: str | None
    is_paused: bool


class Plan(NamedTuple):
    """What to make, and a sentence for each thing that is not imported."""

    keys: list[NewKey]
    heartbeats: list[NewHeartbeat]
    left: list[str]


class Made(NamedTuple):
    """What was made: its kind, its name, the key or the path of its address, and a remark; "" if it was there."""

    kind: str
    name: str
    text: str
    remark: str


# --- plans --------------------------------------------------------------------------------------------------


def from_ntfy(tables: dict[str, list[Row]], now: int) -> Plan:
    """A key for each user, for senders that use the password, and one for each token."""
    keys, left = list[NewKey](), list[str]()
    for user in tables["user"]:
        if user["user"] == EVERYONE:
            continue
        access = _of(user, tables["user_access"])
        only_reads = user["role"] != "admin" and bool(access) and not any(row["write"] for row in access)
        scope, who = READ if only_reads else SEND, f"user {user['user']}"
        keys.append(NewKey(f"ntfy {user['user']}", scope, None, f"{who} with the password"))
        for token in _of(user, tables["user_token"]):
            expires_at = token["expires"] * 1000 or None
            if not token["label"] and expires_at:
                left.append(f"{who}: a session of ntfy's web app")
            elif expires_at and expires_at < now + api_keys.MIN_LIFE_MS:
                left.append(f"{who}: the token “{token['label']}” has expired")
            else:
                name = f"ntfy {user['user']} {token['label'] or 'token'}"
                keys.append(NewKey(name, scope, expires_at, f"{who}, token “{token['label']}”"))
        if access and user["role"] != "admin":
            topics = ", ".join(sorted({row["topic"].replace("\\_", "_").replace("%", "*") for row in access}))
            left.append(f"{who}: the limit to the topics {topics}; a key may send to every topic")
    if any(user["user"] == EVERYONE and _of(user, tables["user_access"]) for user in tables["user"]):
        left.append("access without signing in: every sender needs a key")
    return Plan(_distinct(keys), [], left)


def _of(user: Row, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["user_id"] == user["id"]]


def from_gotify(tables: dict[str, list[Row]]) -> Plan:
    """A key for each application."""
    keys, left = list[NewKey](), list[str]()
    names = {user["id"]: user["name"] for user in tables["users"]}
    owners = {one["user_id"] for one in tables["applications"]}
    for one in tables["applications"]:
        of_user = f"{names.get(one['user_id'], '')} " if len(owners) > 1 else ""
        what = f"application {of_user}{one['name']}"
        if one["internal"]:
            left.append(f"{what}: it belongs to a plugin")
            continue
        keys.append(NewKey(f"Gotify {of_user}{one['name']}", SEND, None, what))
        if one["default_priority"]:
            left.append(f"{what}: the default priority {one['default_priority']}; messages without one are normal")
    left += [f"client {one['name']}: add the phone or browser as a device" for one in tables["clients"]]
    if tables["messages"]:
        left.append(f"{len(tables['messages']):,} messages: the history begins anew")
    return Plan(_distinct(keys), [], left)


def from_healthchecks(document: Row, now: int, time_zone: str) -> Plan:
    """A heartbeat for each check of `GET /api/v3/checks/`; `Refused` (400) if this is something else."""
    checks = document.get("checks")
    if not isinstance(checks, list) or not all(isinstance(one, dict) and "name" in one for one in checks):
        raise Refused(400, "This is not an answer of Healthchecks' /api/v3/checks/: there is no list of checks.")
    plan = Plan([], [], [])
    for place, one in enumerate(checks):
        try:
            _add_check(plan, one, now, time_zone)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Refused(400, f"checks[{place}] is not a check as Healthchecks' API v3 describes it.") from None
    return plan


def _add_check(plan: Plan, one: Row, now: int, time_zone: str) -> None:
    ping_id = str(uuid.UUID(one["uuid"])) if "uuid" in one else None
    name = one["name"].strip() or f"Check {(ping_id or one['unique_key'])[:8]}"
    settings = {"name": name[:MAX_NAME_CHARACTERS], "grace": f"{max(heartbeats.MIN_S, int(one['grace']))}s"}
    what = f"check {name}"
    if "timeout" in one:
        settings["period"] = f"{int(one['timeout'])}s"
    else:
        try:
            settings["cron"] = checked_cron(one["schedule"], now)
        except Refused:
            plan.left.append(f"{what}: its schedule “{one['schedule']}” is no cron expression: it was not made")
            return
        if one["tz"] != time_zone:
            plan.left.append(f"{what}: the time zone {one['tz']}; its schedule counts in the account's, {time_zone}")
    plan.heartbeats.append(NewHeartbeat(settings, ping_id, one["status"] == "paused"))
    if ping_id is None:
        plan.left.append(f"{what}: its UUID, which a read-only API key does not show")
    if one.get("channels") or one.get("tags") or one.get("desc"):
        lost = {"channels": "integrations", "tags": "tags", "desc": "description"}
        plan.left.append(f"{what}: {', '.join(word for field, word in lost.items() if one.get(field))}")
    if any(one.get(name) for name in FILTERS):
        plan.left.append(f"{what}: filters by keyword: every ping counts")
    if one.get("methods"):
        plan.left.append(f"{what}: the limit to {one['methods']}: other methods count as pings, too")


def _distinct(keys: list[NewKey]) -> list[NewKey]:
    """The keys with names of at most `MAX_NAME_CHARACTERS` that differ."""
    names, made = set[str](), list[NewKey]()
    for key in keys:
        short = " ".join(key.name.split())[: MAX_NAME_CHARACTERS - 5]
        name, number = short, 1
        while name in names:
            number += 1
            name = f"{short} {number}"
        names.add(name)
        made.append(key._replace(name=name))
    return made


# --- making -------------------------------------------------------------------------------------------------


def make(account: Account, plan: Plan, now: int, dry_run: bool) -> list[Made]:
    """Make all of it or nothing, but what has the same name or UUID already; with `dry_run`, nothing."""
    made = list[Made]()
    with trial(account.seq, dry_run):
        made += [_make_key(account, key, now) for key in plan.keys]
        made += [_make_heartbeat(account, one, now) for one in plan.heartbeats]
    return made


def _make_key(account: Account, key: NewKey, now: int) -> Made:
    if ApiKey.is_taken(account.seq, key.name):
        return Made("key", key.name, "", "there is one with this name already")
    limits = api_keys.limits(key.scope, key.expires_at, now, "expires")
    _, full_key = accounts.create_key(account.seq, key.name, now, limits=limits)
    return Made("key", key.name, full_key, f"for {key.stands_for}")


def _make_heartbeat(account: Account, one: NewHeartbeat, now: int) -> Made:
    name = one.settings["name"]
    if one.ping_id and stored_heartbeats.find(account.seq, one.ping_id):
        return Made("heartbeat", name, "", "there is one with this UUID already")
    try:
        beat = heartbeats.create_heartbeat(account, dict(one.settings), now, one.ping_id)
    except Refused as refused:
        raise Refused(refused.status, f"check {name}: {refused.message}") from None
    if one.is_paused:
        heartbeats.pause_heartbeat(account.seq, beat.id, now)
    remark = f"{heartbeats.schedule(beat)}, grace {one.settings['grace']}{', paused' * one.is_paused}"
    return Made("heartbeat", name, f"/ping/{beat.ping_id}", remark)
