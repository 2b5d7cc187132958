"""The text form of ntfy's action buttons: `view, Open, https://…; …`, or a JSON array.

Each action has sections between commas, and semicolons end an action. A section is a value or `key=value`, where the
value may be quoted, with a backslash before a quote within it. The first three sections need no key.
"""

import re
from typing import Any

from wire.errors import Refused
from wire.strict_json import parse_json

PLACES = ("action", "label", "url")
SECTION = re.compile(
    r"\s*+(?>(?:([-.\w]++)\s*+=\s*+)?)"  # a key
    r"""(?:"((?:[^"\\]++|\\.)*)"|'((?:[^'\\]++|\\.)*)'|(?!["'])([^,;]*+))"""  # a value
    r"\s*([,;]|\Z)",
    re.ASCII | re.DOTALL,
)
ESCAPED_QUOTE = re.compile(r"""\\(["'])""")


class ActionsError(Exception):
    """Actions that cannot be understood; the text is half a sentence that says why."""


def parsed_actions(text: str) -> list[Any]:
    """The actions in the text, unchecked; raises `ActionsError`."""
    text = text.strip()
    if text.startswith("["):
        try:
            return list(parse_json(f'{{"actions":{text}}}'.encode())["actions"])
        except (Refused, TypeError):
            raise ActionsError("they are not valid JSON.") from None
    actions, start = list[Any](), 0
    while start < len(text):
        action, start = _action(text, start)
        actions.append(action)
    return actions


def _action(text: str, start: int) -> tuple[dict[str, str], int]:
    """The action that starts there, and where the next one starts."""
    action, place = dict[str, str](), 0
    while True:
        section = SECTION.match(text, start)
        if section is None:
            raise ActionsError(f"the section after character {start} is not one, or its quote does not end.")
        key, double, single, bare, end = section.groups()
        if key is None and place >= len(PLACES) and action.get("action", "").lower() == "view":
            raise ActionsError(f"the section after character {start} needs a name before it, such as clear=true.")
        name = key.lower() if key else PLACES[place] if place < len(PLACES) else ""
        action[name] = bare.strip() if bare is not None else ESCAPED_QUOTE.sub(r"\1", double or single or "")
        start, place = section.end(), place + 1
        if end != ",":
            return action, start
