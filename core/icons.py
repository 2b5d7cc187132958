"""The icons that an alert can have, by name: those of the web app's sprite (`tools/make_icons.py` makes it)."""

import difflib
import re
from pathlib import Path

SPRITE = Path(__file__).parents[1] / "static" / "icons.svg"
ICONS = frozenset(re.findall(r'<symbol id="([a-z0-9-]+)"', SPRITE.read_text()))
EXAMPLES = ["bell", "server", "house"]
MAX_NAME = 50  # characters of a name that are compared and repeated


def like(name: str) -> list[str]:
    """Up to three icons with a name like this one; some common ones where there is none."""
    return difflib.get_close_matches(name[:MAX_NAME].lower(), sorted(ICONS), 3) or EXAMPLES
