"""The presets for well-known senders, and which of them recognizes a payload. Pure.

A preset's templates serve all events of its sender: `default` falls back to the field that other event types use.
Optional fields come last in their line, and optional lines last of all, so that a missing value leaves no gap.
"""

from operator import itemgetter
from typing import Any

from core.preset import Preset
from core.presets_for_machines import (
    ALERTMANAGER,
    GRAFANA,
    HEALTHCHECKS,
    HOME_ASSISTANT,
    NETDATA,
    OWN_JSON,
    PROXMOX_VE,
    SONARR_RADARR,
    UPTIME_KUMA,
)
from core.presets_for_services import GITEA, GITHUB, GITLAB, SENTRY, STRIPE

PRESETS = (  # as the page lists them; of two that recognize a payload equally well, the first wins
    GITHUB,
    GITLAB,
    GITEA,
    GRAFANA,
    ALERTMANAGER,
    UPTIME_KUMA,
    SENTRY,
    STRIPE,
    HOME_ASSISTANT,
    HEALTHCHECKS,
    NETDATA,
    PROXMOX_VE,
    SONARR_RADARR,
    OWN_JSON,
)
BY_ID = {preset.id: preset for preset in PRESETS}


def of(preset_id: str | None) -> Preset:
    """The preset with that id, from which an alert was made; without one, that for any JSON."""
    return BY_ID.get(preset_id or "", OWN_JSON)


def recognized(payload: dict[str, Any]) -> Preset | None:
    """The preset of the sender of this payload, as far as its fields tell.

    The longest mark that the payload has decides, because it says most: Grafana's payloads look like Alertmanager's
    with some fields more. Among marks of the same length, the first preset in `PRESETS` wins.
    """
    fits = [
        (len(mark), preset)
        for preset in PRESETS
        for mark in preset.marks
        if all(_has(payload, path) for path in mark)
    ]
    return max(fits, key=itemgetter(0), default=(0, None))[1]


def _has(payload: Any, path: str) -> bool:
    for key in path.split("."):
        if not isinstance(payload, dict) or key not in payload:
            return False
        payload = payload[key]
    return True
