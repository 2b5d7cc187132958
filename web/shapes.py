"""The JSON of alerts, heartbeats, rules, keys, devices, mutes, followers, accounts: for REST and the command line.

Times are integer milliseconds. Must not know Flask or SQL.
"""

from typing import Any

from core import channels, definitions, heartbeat_checks, holding, metric_rules
from models import Account, Alert, ApiKey, Device
from store.followers import Followed, ListedFollower
from store.heartbeats import Beat
from store.key_limits import FULL
from store.metric_rules import Rule
from store.mutes import ListedMute
from wire.notification import MIN_PRIORITY

Shape = dict[str, Any]


def alert(one: Alert) -> Shape:
    """An alert without its address, which is a secret."""
    return {
        "id": one.id,
        "name": one.name,
        "icon": one.icon,
        "color": one.color,
        "isActive": bool(one.is_active),
        "notificationCount": one.notification_count,
        "lastTriggeredAt": one.last_triggered_at,
        "createdAt": one.created_at,
    }


def alert_definition(one: Alert, origin: str | None) -> Shape:
    """An alert with all of its settings; `origin` begins its address, which None hides."""
    return {**alert(one), "url": origin and f"{origin}/p/{one.short_code}", **definitions.ALERT.fields_of(one)}


def heartbeat_definition(beat: Beat, origin: str | None) -> Shape:
    """A heartbeat with its address, as for `alert_definition`."""
    return {
        "id": beat.id,
        **definitions.HEARTBEAT.fields_of(beat),
        "state": beat.state,
        "url": origin and f"{origin}/ping/{beat.ping_id}",
        "lastPingAt": beat.last_ping_at,
        "nextAt": None if beat.deadline_at is None else heartbeat_checks.next_expected(beat),
        "createdAt": beat.created_at,
    }


def rule_definition(one: Rule, _: str | None) -> Shape:
    """A rule on a metric, which has no address."""
    return {"id": one.id, **definitions.RULE.fields_of(one), "state": one.state, "createdAt": one.created_at}


def watch(beat: Beat) -> Shape:
    """A heartbeat without its address."""
    return {
        "id": beat.id,
        "kind": "heartbeat",
        **definitions.HEARTBEAT.fields_of(beat),
        "state": beat.state,
        "lastPingAt": beat.last_ping_at,
        "deadlineAt": beat.deadline_at,
        "downSince": beat.down_since if beat.state == "down" else None,
        "createdAt": beat.created_at,
    }


def rule(one: Rule) -> Shape:
    """A rule on a metric."""
    return {
        "id": one.id,
        "projectId": one.project_id,
        "metricId": one.metric_id,
        "rule": metric_rules.rule_text(one),
        "state": one.state,
        "firingSince": metric_rules.firing_since(one),
        "createdAt": one.created_at,
    }


def key(one: ApiKey) -> Shape:
    """A key as it was made; its scope and its end only if it has any."""
    limited = {} if one.scope == FULL else {"scope": one.scope}
    ends = {} if one.expires_at is None else {"expiresAt": one.expires_at}
    return {"id": one.id, "name": one.name, "keyPreview": one.preview, "createdAt": one.created_at, **limited, **ends}


def listed_key(one: ApiKey) -> Shape:
    """A key with its last use and revocation."""
    used = {} if one.last_used_at is None else {"lastUsedAt": one.last_used_at}
    return {**key(one), **used, "revokedAt": one.revoked_at}


def device(one: Device) -> Shape:
    """A device without its token; a channel says more."""
    least: Shape = {"minPriority": one.min_priority} if one.min_priority > MIN_PRIORITY else {}
    if one.after_s is not None:
        least = {
            "minPriority": one.min_priority,
            "role": channels.role(one.after_s),
            "afterS": one.after_s or None,
            "preset": one.preset,
            "confirmed": one.confirm_by is None,
        }
    quiet = {"quietHours": one.quiet_hours} if one.quiet_hours else {}
    return {
        "id": one.id,
        "kind": one.kind,
        "name": one.name,
        "createdAt": one.created_at,
        "lastDeliveredAt": one.last_delivered_at,
        "lastError": one.last_error,
        **least,
        **quiet,
    }


def mute(one: ListedMute, now: int) -> Shape:
    """A mute; `subject` is the id of what is muted, null for everything.

    Of one that comes again it says when it is in force now, or will be next.
    """
    begin, end = holding.window(one.mute, now)
    again = {} if one.mute.cron is None else {"cron": one.mute.cron, "forS": one.mute.for_s, "from": begin}
    return {
        "id": one.mute.id,
        "what": one.mute.what,
        "subject": one.subject_id,
        "name": one.name,
        "mode": one.mute.mode,
        "urgentPasses": bool(one.mute.urgent_passes),
        "until": end,
        "createdAt": one.mute.created_at,
        **again,
    }


def follower(one: ListedFollower) -> Shape:
    """A follower of the owner's alert, heartbeat, rule or key, or who is invited to follow it."""
    return {"id": one.id, "email": one.email, "state": _state(one.is_following)}


def followed(one: Followed) -> Shape:
    """What an account follows or is invited to, and whose it is."""
    said = {"id": one.id, "owner": one.owner, "what": one.what, "name": one.name}
    return {**said, "state": _state(one.is_following), "invitedAt": one.created_at}


def _state(is_following: int) -> str:
    return "following" if is_following else "invited"


def account(one: Account) -> Shape:
    """An account; only the command line shows it."""
    return {
        "email": one.email,
        "plan": one.plan,
        "timeZone": one.time_zone,
        "createdAt": one.created_at,
        "quietHours": one.quiet_hours,
    }
