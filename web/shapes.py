"""The JSON of alerts, heartbeats, rules, keys, devices and accounts, for REST, assistants and the command line.

Times are integer milliseconds. Must not know Flask or SQL.
"""

from typing import Any

from core import metric_rules
from models import Account, Alert, ApiKey, Device
from store.heartbeats import Beat
from store.key_limits import FULL
from store.metric_rules import Rule
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


def watch(beat: Beat) -> Shape:
    """A heartbeat without its address."""
    return {
        "id": beat.id,
        "kind": "heartbeat",
        "name": beat.name,
        "state": beat.state,
        **({"cron": beat.cron} if beat.cron is not None else {"periodS": beat.period_s}),
        "graceS": beat.grace_s,
        "priority": beat.priority,
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
    """A device without its token."""
    least = {"minPriority": one.min_priority} if one.min_priority > MIN_PRIORITY else {}
    return {
        "id": one.id,
        "kind": one.kind,
        "name": one.name,
        "createdAt": one.created_at,
        "lastDeliveredAt": one.last_delivered_at,
        "lastError": one.last_error,
        **least,
    }


def account(one: Account) -> Shape:
    """An account; only the command line shows it."""
    return {
        "email": one.email,
        "plan": one.plan,
        "timeZone": one.time_zone,
        "createdAt": one.created_at,
        "quietHours": one.quiet_hours,
    }
