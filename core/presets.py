"""The presets for well-known senders: what an alert begins with, and which of them recognizes a payload. Pure.

Each is a file in presets/. Its templates serve all events of its sender: `default` falls back to the field that other
events use, and `prepend` leaves no gap where an event lacks an optional part.
"""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "presets"


@dataclass(frozen=True)
class Preset:
    """What an alert for a sender begins with: its look, its templates, and how to set up the sender.

    A payload of the sender has all the paths of one of the lists in `marks`. `steps` say what to do at the sender,
    with a `snippet` to copy there, in which ADDRESS stands for the webhook address. `sample` is a short payload like
    those of the sender. An event for which `resolved_when` holds must have the tag of what it resolves.
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
    resolved_when: str = ""

    @classmethod
    def read(cls, path: Path) -> "Preset":
        """The preset in a file, whose name is its id."""
        values = tomllib.loads(path.read_text("utf-8"))
        return cls(path.stem, **values | {"sample": json.loads(values["sample"])})

    @property
    def templates(self) -> dict[str, str]:
        """The columns of an alert that say what an event makes."""
        return {
            "title_template": self.title,
            "body_template": self.body,
            "priority_template": self.priority,
            "url_template": self.url,
            "tag_template": self.tag,
            "resolved_when": self.resolved_when,
        }

    @property
    def settings(self) -> dict[str, str]:
        """The columns of a new alert."""
        return {"icon": self.icon, "color": self.color, "preset": self.id, **self.templates}


BY_ID = {path.stem: Preset.read(path) for path in FOLDER.glob("*.toml")}
OWN_JSON = BY_ID["json"]
PRESETS = tuple(sorted(BY_ID.values(), key=lambda preset: (preset is OWN_JSON, preset.name.casefold())))


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
