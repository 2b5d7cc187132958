"""Make the PNGs of static/ from the mark: static/logo.svg, and logo-maskable.svg and logo-mono.svg beside this file.

    python3 -m tools.make_logo

Run it by hand after changing one of them, and commit the result. It draws with Debian's Chromium.
"""

from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.support.browser import CHROMIUM, FLAGS
from tools import apng

HERE = Path(__file__).parent
STATIC = HERE.parent / "static"
PICTURES = (
    ("icon-180.png", 180, HERE / "logo-maskable.svg"),  # Apple rounds the corners itself
    ("icon-192.png", 192, STATIC / "logo.svg"),
    ("icon-512.png", 512, STATIC / "logo.svg"),
    ("icon-maskable-512.png", 512, HERE / "logo-maskable.svg"),
    ("badge-96.png", 96, HERE / "logo-mono.svg"),
)


def main() -> None:
    """Draw them."""
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS).new_page()
        for name, size, source in PICTURES:
            page.set_viewport_size({"width": size, "height": size})
            page.set_content(f'<body style="margin: 0; color: #fff">{source.read_text()}</body>')
            (STATIC / name).write_bytes(apng.smaller(page.screenshot(omit_background=True)))


if __name__ == "__main__":
    main()
