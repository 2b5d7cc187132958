"""The presets for well-known senders: a new alert's settings, and recognizing a payload's sender. Pure.

Each preset is a file in presets/. Its templates serve all events of its sender: `default` falls back to the field of
other events, and `prepend` leaves no gap for a missing optional part.
"""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "presets"
TEMPLATES = ("title", "body", "priority", "url", "tag", "image")  # as presets, options and forms call them


@dataclass(frozen=True)
class Preset:
    """The settings of a new alert for a sender, and the instructions for the sender's side.

    A payload of the sender has all the paths of one of the lists in `marks`. `steps` are the instructions, with a
    `snippet` to copy to the sender, in which ADDRESS stands for the webhook address. `sample` is a short payload. An
    event for which `resolved_when` holds must have the same tag as the event that it resolves.
    """

    id: str
    name: str
    icon: str
    color: str
    title: str
    body: str
    steps: Sequence[str]
    sample: dict[str, Any]
    marks: Sequence[Sequence[str]] = ()
    snippet: str = ""
    priority: str = ""
    url: str = ""
    tag: str = ""
    image: str = ""
    resolved_when: str = ""

    @classmethod
    def read(cls, path: Path) -> "Preset":
        """The preset in a file, whose name is its id."""
        values = tomllib.loads(path.read_text("utf-8"))
        return cls(path.stem, **values | {"sample": json.loads(values["sample"])})

    @property
    def templates(self) -> dict[str, str]:
        """An alert's columns for an event's content."""
        templates = {f"{name}_template": getattr(self, name) for name in TEMPLATES}
        return templates | {"resolved_when": self.resolved_when}

    @property
    def settings(self) -> dict[str, str]:
        """The columns of a new alert."""
        return {"icon": self.icon, "color": self.color, "preset": self.id, **self.templates}


BY_ID = {path.stem: Preset.read(path) for path in FOLDER.glob("*.toml")}
OWN_JSON = BY_ID["json"]
PRESETS = tuple(sorted(BY_ID.values(), key=lambda preset: (preset is OWN_JSON, preset.name.casefold())))


def of(preset_id: str | None) -> Preset:
    """The preset with that id, or else the preset for any JSON."""
    return BY_ID.get(preset_id or "", OWN_JSON)


def recognized(payload: dict[str, Any]) -> Preset | None:
    """The preset of this payload's probable sender.

    The longest matching mark decides: Grafana's payloads look like Alertmanager's with more fields. Among marks of
    the same length, the first preset in `PRESETS` wins.
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
