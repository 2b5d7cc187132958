"""Make static/icons.svg, the sprite with the web app's icons, anew from an unpacked lucide-static.

    npm pack lucide-static@1.62.0 && tar -xzf lucide-static-1.62.0.tgz
    .venv/bin/python -m tools.make_icons package rabbit turtle

It has the icons that it had and those that are named, such as rabbit and turtle: by Lucide's current names, not by
aliases. Commit the result: the service has no build step. The licence of the icons is static/LICENSE-lucide.txt.
"""

import json
import sys
from html import escape
from pathlib import Path

from core.alerts import ICONS, SPRITE

# Set on each symbol, because <use> does not inherit from the root of another file.
STYLE = (
    'viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" '
    'stroke-linecap="round" stroke-linejoin="round"'
)

Shape = tuple[str, dict[str, str]]


def symbol(name: str, shapes: list[Shape]) -> str:
    """One icon as a symbol. Plain paths are joined into one, which draws the same with fewer bytes."""
    path, others = "", ""
    for tag, attributes in shapes:
        if tag == "path" and attributes.keys() == {"d"}:
            d = attributes["d"]
            path += f"M0 0{d}" if path and d.startswith("m") else d  # a first m is absolute, a later one relative
        else:
            others += f"<{tag}" + "".join(f' {key}="{escape(value)}"' for key, value in attributes.items()) + "/>"
    if path:
        path = f'<path d="{escape(path)}"/>'
    return f'<symbol id="{name}" {STYLE}>{path}{others}</symbol>'


def main(folder: str, *new: str) -> str | None:
    """Write the sprite; returns an error message, or None."""
    icons: dict[str, list[Shape]] = json.loads((Path(folder) / "icon-nodes.json").read_bytes())
    names = ICONS.union(new)
    if unknown := sorted(names - icons.keys()):
        return f"Not icons of this lucide-static: {', '.join(unknown)}"
    symbols = "".join(symbol(name, icons[name]) for name in sorted(names))
    SPRITE.write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{symbols}</svg>\n', "utf-8", newline="\n")
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
