"""Make static/icons.svg, the sprite with the web app's icons, from an unpacked lucide-static.

    npm pack lucide-static@1.62.0 && tar -xzf lucide-static-1.62.0.tgz
    python3 tools/make_icons.py package

Run it by hand after changing `NAMES`, and commit the result: the service has no build step. Use Lucide's current
names, not aliases. The licence of the icons is static/LICENSE-lucide.txt.
"""

import json
import sys
from html import escape
from pathlib import Path

SPRITE = Path(__file__).resolve().parent.parent / "static" / "icons.svg"

# Set on each symbol, because <use> does not inherit from the root of another file.
STYLE = (
    'viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" '
    'stroke-linecap="round" stroke-linejoin="round"'
)

# fmt: off
NAMES = (
    "activity", "alarm-clock", "archive", "arrow-left", "at-sign", "baby", "ban", "banknote",
    "battery-charging", "battery-low", "bell", "bell-off", "bell-ring", "bike", "book", "bot", "brain", "bug",
    "calendar", "calendar-check", "camera", "car", "chart-column", "chart-line", "check", "chevron-down",
    "chevron-left", "chevron-right", "circle", "circle-alert", "circle-check", "circle-x", "clock", "cloud",
    "cloud-off", "cloud-rain", "code", "coffee", "coins", "container", "copy", "cpu", "credit-card", "database",
    "dollar-sign", "door-open", "download", "droplet", "eighth-notes", "ellipsis", "euro", "external-link",
    "eye", "eye-off", "fan", "file-text", "flag", "flame", "folder", "funnel", "gauge", "gift", "git-branch",
    "git-commit-horizontal", "git-merge", "git-pull-request", "globe", "hammer", "hard-drive", "heart",
    "heart-pulse", "hourglass", "house", "inbox", "info", "key-round", "lamp", "layers", "leaf", "lightbulb",
    "link", "list", "lock", "lock-open", "log-out", "mail", "map-pin", "megaphone", "memory-stick", "menu",
    "message-square", "messages-square", "monitor", "monitor-smartphone", "moon", "network", "newspaper",
    "package", "palette", "pause", "pencil", "phone", "plane", "play", "plug", "plus", "power", "qr-code",
    "receipt", "refresh-cw", "refrigerator", "rocket", "rotate-ccw-clock", "rotate-cw", "router", "rss", "save",
    "search", "send", "server", "settings", "share", "shield", "shield-check", "ship", "shopping-cart", "siren",
    "smartphone", "snowflake", "sparkles", "sprout", "square-plus", "star", "sun", "sun-dim", "sun-moon",
    "tablet", "tag", "terminal", "thermometer", "ticket", "timer", "train-front", "trash", "trending-down",
    "trending-up", "triangle-alert", "trophy", "truck", "tv", "umbrella", "upload", "user", "users", "utensils",
    "video", "wallet", "warehouse", "washing-machine", "webhook", "wifi", "wifi-off", "wind", "wrench", "x",
    "zap",
)
# fmt: on

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


def main(arguments: list[str]) -> str | None:
    """Write the sprite; returns an error message, or None."""
    if len(arguments) != 1:
        return "Usage: make_icons.py LUCIDE_STATIC_FOLDER"
    try:
        icons: dict[str, list[Shape]] = json.loads((Path(arguments[0]) / "icon-nodes.json").read_bytes())
        if unknown := sorted(set(NAMES) - icons.keys()):
            return f"Not icons of this lucide-static: {', '.join(unknown)}"
        symbols = "".join(symbol(name, icons[name]) for name in sorted(set(NAMES)))
        SPRITE.write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{symbols}</svg>\n', "utf-8", newline="\n")
    except (OSError, ValueError) as error:
        return f"Cannot make {SPRITE.name}: {error}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
