"""`Preset`: what an alert for a well-known sender begins with; and the expressions that templates share. Pure."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """What an alert for a sender begins with: its look, its templates, and how to set up the sender.

    A payload of the sender has all the paths of one of the tuples in `marks`. `steps` say what to do at the sender,
    with a `snippet` to copy there, in which ADDRESS stands for the webhook address. `sample` is a short payload like
    those of the sender. An event for which `resolved_when` holds must have the tag of what it resolves.
    """

    id: str
    name: str
    icon: str
    color: str
    title: str
    body: str
    steps: tuple[str, ...]
    sample: dict[str, Any]
    marks: tuple[tuple[str, ...], ...] = ()
    snippet: str = ""
    priority: str = ""
    url: str = ""
    tag: str = ""
    resolved_when: str = ""

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


def first_of(*paths: str, otherwise: str = "") -> str:
    """A placeholder that shows the first of these paths that an event has, or else `otherwise`."""
    path, *others = paths
    chain = "".join(f" | default: {other}" for other in others)
    return f'{{{{ {path}{chain} | default: "{otherwise}" }}}}'


def alerts_with(status: str) -> str:
    """Placeholders that show how many alerts of a group have the status, and what each says.

    An alert says its summary, or else its description, or else its labels.
    """
    those = f'alerts | where: "status", "{status}"'
    without_summary = f'{those} | where: "annotations.summary", ""'
    without_both = f'{without_summary} | where: "annotations.description", ""'
    listed = (
        (those, "annotations.summary"),
        (without_summary, "annotations.description"),
        (without_both, "labels"),
    )
    texts = (f'{{{{ {some} | map: "{path}" | join: "\n" | default: "" }}}}' for some, path in listed)
    return f"{{{{ {those} | size }}}} {status}: {' '.join(texts)}"
