"""Requests of real senders. They are kept beside the project; without them the tests that need them skip."""

import json
from pathlib import Path

import pytest

from core import alerts, presets
from models import Alert
from wire.strict_json import parse_event

FOLDER = Path(__file__).parents[3] / "shared" / "payloads"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8")) if FOLDER.is_dir() else {}


def sample(name):
    return (FOLDER / "json" / f"{name}.json").read_bytes()


def payload_of(name):
    return parse_event(sample(name))


def made(preset, payload):
    """The text that an alert with a preset's templates makes from a payload."""
    templates = {column: text or None for column, text in preset.templates.items()}
    return alerts.rendered(Alert(name="Name", **templates), "UTC", payload)


PRESETS = {preset.id: preset for preset in presets.PRESETS}
SENDERS = {  # of a payload, by the beginning of its file's name
    "github-": "github", "gitlab-": "gitlab", "grafana-": "grafana", "alertmanager-": "alertmanager",
    "prometheus-targetdown": "alertmanager", "alerta-doc-prometheus": "alertmanager",
    "uptimekuma-": "uptime-kuma", "sentry-": "sentry", "stripe-": "stripe", "healthchecks-": "healthchecks",
    "gitea-": "gitea", "gogs-": "gitea", "netdata-custom": "netdata", "sonarr-": "sonarr-radarr",
    "radarr-download": "sonarr-radarr", "dockerhub-build": "docker-hub", "aws-sns": "aws-sns",
}  # fmt: skip
OTHER_FORMATS = {  # for somebody else's service, as a user wrote them, or Grafana's before version 9
    "alertmanager-opsgenie", "alertmanager-slack", "grafana-legacy-alerting", "grafana-legacy-battery",
    "healthchecks-discord", "healthchecks-googlechat", "healthchecks-msteams",
    "uptimekuma-custom", "uptimekuma-custom-no-ct", "uptimekuma-feishu", "uptimekuma-grafana-oncall",
    "uptimekuma-slack-plain", "uptimekuma-squadcast",
}  # fmt: skip
NAMES = sorted(path.stem for path in (FOLDER / "json").glob("*.json"))
with_payloads = pytest.mark.skipif(not NAMES, reason="no payloads")


def sender_of(name):
    return (
        None if name in OTHER_FORMATS else next((p for start, p in SENDERS.items() if name.startswith(start)), None)
    )
