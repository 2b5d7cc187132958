"""The names of an alert's icons: the symbols of the web app's sprite (`tools/make_icons.py` makes it)."""

import difflib
import re
from pathlib import Path

from wire.validation import either

SPRITE = Path(__file__).parents[1] / "static" / "icons.svg"
ICONS = frozenset(re.findall(r'<symbol id="([a-z0-9-]+)"', SPRITE.read_text()))
MAX_NAME = 50  # characters of a name that are compared and repeated


def unknown(name: str) -> str:
    """The sentence that refuses a name, with similar names and all icons."""
    shown, names = name[:MAX_NAME], sorted(ICONS)
    near = difflib.get_close_matches(shown.lower(), names, 3)
    meant = f" Did you mean {either(near)}?" if near else ""
    return f'There is no icon "{shown}".{meant} The icons are {", ".join(names)}.'
