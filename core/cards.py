"""The texts of a chat message's cards: Slack's attachments and blocks, Discord's embeds, Teams' and Google's cards.

Pure. The shapes follow the services' documentation for incoming webhooks. Cards are not trusted: at most `MAX_NODES`
of their parts are read.
"""

import html
import re
from typing import Any

from wire.notification import image_address, web_address
from wire.validation import MAX_BODY_CHARACTERS

CARDS = ("attachments", "blocks", "embeds", "sections", "card", "cards", "cardsv2")  # fields of a message
MAX_NODES = 500
MAX_DEPTH = 20
MAX_LINES = 60

TEXTS = (  # the texts of a part, in the order in which they are shown
    *("pretext", "title", "activitytitle", "header", "subtitle", "activitysubtitle", "text", "activitytext"),
    *("description", "content"),
)
TITLES = ("title", "activitytitle")
LABELS, VALUES = ("title", "name", "toplabel"), ("value", "content", "text")  # of a line such as `Host: nas`
INSIDE = (
    *("card", "header", "content", "text", "fields", "facts", "sections", "blocks", "body", "items", "columns"),
    *("elements", "inlines", "rows", "cells", "widgets", "textparagraph", "keyvalue", "decoratedtext"),
)
LINKS = ("title_link", "url", "uri", "target")
LINKS_INSIDE = (
    *("actions", "potentialaction", "targets", "accessory", "buttons", "buttonlist", "textbutton", "selectaction"),
    *("onclick", "openlink"),
)
BUTTONS = ("button", "actions")  # kinds of parts whose texts are not part of the message
PICTURES = ("image", "imageset")
SHOWN = ("image_url", "image", "thumb_url", "thumbnail")  # an address, or an object with one

SLACK_LINK = re.compile(r"<(?P<url>https?://[^\s|<>]+)(?:\|(?P<label>[^<>]*))?>")
MARKDOWN_LINK = re.compile(r"\[(?P<label>[^\[\]\n]*)\]\((?P<url>https?://[^\s()]+)\)")
BREAK = re.compile(r"<br ?/?>", re.I)
TAG = re.compile(r"</?(?:a|b|i|u|s|strike|strong|em|font|code)(?: [^<>]*)?>", re.I)


class Cards:
    """The title, the lines, the first link and the first picture of the cards in a message."""

    def __init__(self) -> None:
        self.title, self.lines = "", list[str]()
        self.url: str | None = None
        self.image: str | None = None
        self._left = MAX_NODES

    def read(self, part: Any, depth: int = 0, is_shown: bool = True) -> None:
        """Read a part of a card; only its links if it is not shown as text."""
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH or len(self.lines) >= MAX_LINES:
            return
        if isinstance(part, list):
            for inner in part[:MAX_NODES]:
                self.read(inner, depth + 1, is_shown)
        elif isinstance(part, dict):
            fields = {key.lower(): value for key, value in part.items()}
            kind = str(fields.get("type", "")).lower()
            for name in SHOWN:
                value = fields.get(name)
                self.image = self.image or image_address(value.get("url") if isinstance(value, dict) else value)
            if kind not in PICTURES:
                self._read_fields(fields, kind, depth + 1, is_shown and kind not in BUTTONS)

    def _read_fields(self, fields: dict[str, Any], kind: str, depth: int, is_shown: bool) -> None:
        said, image = len(self.lines) + bool(self.title), self.image
        for name in LINKS:
            value = fields.get(name)
            self._note(value[0] if isinstance(value, list) and value else value)
        if is_shown and not self._say_pair(fields):
            for name in TEXTS:
                is_title = name in TITLES or kind == "textblock"
                self._say(fields.get(name), is_title and not self.lines)
            heading = fields.pop("text", None) if kind == "header" else fields.get("title")
            if isinstance(heading, dict):
                self._say(heading.get("text", heading.get("content")), True)
        for name in INSIDE:
            self.read(fields.get(name), depth, is_shown)
        for name in LINKS_INSIDE:
            self.read(fields.get(name), depth, False)
        if is_shown and said == len(self.lines) + bool(self.title):
            self._say(fields.get("fallback"))
        if kind == "context":
            self.image = image  # what is beside such a line is an icon

    def _say_pair(self, fields: dict[str, Any]) -> bool:
        """Add a fact as one line, if the part is one."""
        label, value = (next((fields[name] for name in names if name in fields), None) for names in (LABELS, VALUES))
        is_fact = "value" in fields or "toplabel" in fields
        if not (is_fact and isinstance(label, str) and isinstance(value, str)):
            return False
        self._say(f"{label.rstrip(': ')}: {value}" if label.strip() else value)
        return True

    def _say(self, text: Any, is_title: bool = False) -> None:
        if not isinstance(text, str) or not (text := self.plain(text)):
            return
        if is_title and not self.title:
            self.title = text
        elif text != self.title and text not in self.lines[-1:]:
            self.lines.append(text)

    def _note(self, url: Any) -> None:
        self.url = self.url or web_address(url)

    def plain(self, text: str) -> str:
        """The text without its markup, as long as a body may be; its first link is noted."""
        text = SLACK_LINK.sub(self._label, text[:MAX_BODY_CHARACTERS])
        text = BREAK.sub("\n", MARKDOWN_LINK.sub(self._label, text))
        return html.unescape(TAG.sub("", text)).replace("**", "").strip()

    def _label(self, link: re.Match[str]) -> str:
        self._note(link["url"])
        return link["label"] or link["url"]


def read(message: dict[str, Any]) -> Cards | None:
    """The cards of a message, whose keys are in lower case; None if it has none that say or show anything."""
    is_card = message.get("type") == "AdaptiveCard"
    if not is_card and message.keys().isdisjoint(CARDS):
        return None
    cards = Cards()
    for name in (*CARDS, "body") if is_card else CARDS:
        cards.read(message.get(name))
    for name in ("actions", "potentialaction"):
        cards.read(message.get(name), is_shown=False)
    return cards if cards.title or cards.lines or cards.image else None
