"""Requests of real senders. They are kept beside the project; without them the tests that need them skip."""

import json
from pathlib import Path

from core import alerts
from wire.strict_json import parse_event

FOLDER = Path(__file__).parents[3] / "shared" / "payloads"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8")) if FOLDER.is_dir() else {}


def sample(name):
    return (FOLDER / "json" / f"{name}.json").read_bytes()


def payload_of(name):
    return parse_event(sample(name))


def made(preset, payload):
    """What an alert with a preset's templates makes of a payload."""
    return alerts.rendered(alerts.Template("Name", preset.title or None, preset.body or None, "UTC"), payload)
