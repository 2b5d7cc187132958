"""The documentation as pages: README.md, SECURITY.md, … and docs/*.md. Must not know what they say.

markdown-it-py is imported when it is first needed.
"""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from flask import Response, render_template, send_from_directory
from markupsafe import Markup

from wire.errors import Refused

ROOT = Path(__file__).parents[1]
PAGES = {path.stem.lower(): path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))}
FILE_LINK = re.compile(r"(?:[\w.-]+/)*(?P<file>[\w-]+)\.md(?P<heading>#.*)?")
PICTURE_LINK = re.compile(r"(?:[\w.-]+/)*pictures/(?P<file>[\w.-]+)")


def show_page(name: str) -> str:
    """GET /docs/<name>."""
    if name not in PAGES:
        raise Refused(404)
    title, html = _rendered(PAGES[name])
    return render_template("doc.html", title=title, html=html)


def show_picture(name: str) -> Response:
    """GET /docs/pictures/<name>."""
    return send_from_directory(ROOT / "docs" / "pictures", name)


@cache
def _rendered(path: Path) -> tuple[str, Markup]:
    """The title of a page, and all of it as HTML."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens, title = reader.parse(path.read_text()), ""
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            title = title or content.content
            name = re.sub(r"[^\w -]", "", content.content.lower()).replace(" ", "-")  # as GitHub makes it
            opening.attrSet("id", name)
    for token in (inner for one in tokens for inner in one.children or ()):
        for attribute in ("href", "src"):
            if address := token.attrGet(attribute):
                token.attrSet(attribute, _address(str(address)))
    return title, Markup(reader.renderer.render(tokens, reader.options, {}))  # noqa: S704 - our own files


def _address(link: str) -> str:
    """The address of what a file links to."""
    if found := FILE_LINK.fullmatch(link):
        return f"/docs/{found['file'].lower()}{found['heading'] or ''}"
    if found := PICTURE_LINK.fullmatch(link):
        return f"/docs/pictures/{found['file']}"
    return "/docs" if link.endswith("openapi.yaml") else link
