"""What chats and other services take: a notification as the body of a request, for each preset of a webhook.

The shapes are those that the services document for incoming messages. What would be markup there is escaped, or
stands where none is read; nobody is mentioned. Texts are shortened to what the service takes. Pure.
"""

import html
import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from providers.base import Message, one_line, shown
from wire.json_text import json_bytes, longest
from wire.notification import HIGH_PRIORITY, LOW_PRIORITY, MAX_PRIORITY, as_answered

MARKUP = re.compile(r"[\\`*_~|#>\[\]()<{}]|^[+-]|(?<=^[0-9])\.", re.M)
PLAIN_LINK = re.compile(r"(https?://[\w./:?=&%+,;@#!$~-]+)")
MAX_CARD_LINES, MAX_CARD_BYTES = 100, 14_000  # of a text; Teams takes 28 KB in all
MAX_EVENT_BYTES = 48_000  # of a text and the same as HTML; Matrix takes 64 KB in all
MAX_LINKS_CHARACTERS = 2_300
MAX_NTFY_ACTIONS = 3

Body = dict[str, Any]


class Form(NamedTuple):
    """A preset: its name for people, and the body of its requests; what else the request needs."""

    name: str
    body: Callable[[Message, str], Body]  # of the message and this server's origin
    headers: Callable[[Message, str], Mapping[str, str]] | None = None  # if given, the body is only the text
    method: str = "POST"


def cut(text: str, limit: int, escaped: Callable[[str], str] = str) -> str:
    """The text, escaped, with at most `limit` characters."""
    return escaped(longest(shown(text), lambda part: len(escaped(part)) <= limit))


def cut_bytes(text: str, limit: int, escaped: Callable[[str], str] = str) -> str:
    """The text itself, shortened so that it has at most `limit` bytes as JSON, once it is escaped."""
    return longest(shown(text), lambda part: len(json_bytes(escaped(part))) <= limit)


def links(message: Message, origin: str) -> list[tuple[str, str]]:
    """What can be opened, each with its label: the notification's own link, then its buttons.

    A button leads to a page: opening it presses nothing.
    """
    opened = [("Open", message.url)] if message.url else []
    return opened + [(one_line(button.label), url) for button, url in message.addressed_buttons(origin)]


def _encoded_links(message: Message, origin: str) -> list[tuple[str, str]]:
    """The links for markup; if the encoded addresses are too long, each opens the notification's page."""
    found = [(label, _web(url)) for label, url in links(message, origin)]
    is_long = sum(len(url) for _, url in found) > MAX_LINKS_CHARACTERS
    return [(label, origin + message.path if is_long else url) for label, url in found]


def _buttons(message: Message, origin: str) -> list[tuple[str, str]]:
    """The buttons alone, as `links` has them, for services with a field for the notification's own link."""
    return links(message, origin)[bool(message.url) :]


def _as_lines(found: list[tuple[str, str]]) -> list[str]:
    return [f"{label}: {url}" for label, url in found]


def _of_markdown(text: str) -> str:
    """The text as Markdown that shows it; addresses stay as they are, so that they can be opened."""
    parts = PLAIN_LINK.split(text)
    return "".join(part if place % 2 else MARKUP.sub(r"\\\g<0>", part) for place, part in enumerate(parts))


_of_html = partial(html.escape, quote=False)


def _web(address: str) -> str:
    """An address that ends neither a link of Markdown nor an attribute of HTML."""
    return quote(address, safe=":/?&=%#+,;@!$*~[]-._")


def _of_mattermost(text: str) -> str:
    text = PLAIN_LINK.sub(lambda link: link[0].replace("@", "%40"), text)
    return _of_markdown(text).replace("@", "@\u200b")  # or it would call everybody in the channel


# --- the presets --------------------------------------------------------------------------------------------


def _generic(message: Message, origin: str) -> Body:
    """The notification as the REST API answers it, with the addresses of its page and of its picture."""
    content = message.content
    given = {name: value for name, value in content.given.items() if name != "actions"}
    said = as_answered(message.id, "", int(message.id[:12], 16), content.title, content.body, given)
    buttons = [{"label": label, "url": url} for label, url in _buttons(message, origin)]
    more = {"page": origin + message.path, "priority": message.priority, "actions": buttons}
    image = {"image": image} if (image := message.image(origin)) else {}
    return {name: value for name, value in said.items() if name != "status"} | more | image


def _slack(message: Message, origin: str) -> Body:
    title, text = cut(message.content.title, 150, _of_html), cut(message.content.body, 3_000, _of_html)
    blocks: list[Body] = [{"type": "header", "text": {"type": "plain_text", "text": title}}]
    if text.strip():  # Slack refuses an empty one
        blocks.append({"type": "section", "text": {"type": "plain_text", "text": text}})
    if found := _encoded_links(message, origin):
        opened = " · ".join(f"<{url}|{_of_html(label).replace('|', '/')}>" for label, url in found)
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": opened}})
    said: Body = {"text": f"{title}\n{text}", "blocks": blocks}
    if image := message.image(origin):  # as a block, Slack would refuse the message if it cannot fetch the picture
        said["attachments"] = [{"fallback": "Picture", "image_url": image}]
    return said


def _discord(message: Message, origin: str) -> Body:
    lines = [cut(message.content.body, 1_500, _of_markdown), *_markdown_links(message, origin, _of_markdown)]
    embed: Body = {"title": cut(message.content.title, 256, _of_markdown), "description": "\n".join(lines)}
    image = message.image(origin) or ""
    if "." in (urlsplit(image).hostname or ""):  # Discord refuses other hosts, and the whole message
        embed["image"] = {"url": image}
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def _markdown_links(message: Message, origin: str, escaped: Callable[[str], str]) -> list[str]:
    return [f"[{escaped(label)}]({url})" for label, url in _encoded_links(message, origin)]


def _mattermost(message: Message, origin: str) -> Body:
    title = cut(one_line(message.content.title), 500, _of_mattermost)
    lines = [f"**{title}**", cut(message.content.body, 10_000, _of_mattermost)]
    if image := message.image(origin):
        lines.append(f"![Picture]({_web(image)})")
    return {"text": "\n".join([*lines, *_markdown_links(message, origin, _of_mattermost)])}


def _teams(message: Message, origin: str) -> Body:
    """An Adaptive Card; its runs of text know no markup."""
    lines = cut_bytes(cut(message.content.body, 5_000), MAX_CARD_BYTES).split("\n")
    blocks: list[Body] = [_run(cut(message.content.title, 500), weight="Bolder", size="Medium")]
    blocks += [_run(line) for line in [*lines[:MAX_CARD_LINES], *(["…"] if lines[MAX_CARD_LINES:] else [])]]
    if image := message.image(origin):
        blocks.append({"type": "Image", "url": image, "altText": "Picture"})
    opened = [{"type": "Action.OpenUrl", "title": label, "url": url} for label, url in links(message, origin)]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
        "actions": opened,
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "contentUrl": None, "content": card}]}


def _run(text: str, **style: str) -> Body:
    return {
        "type": "RichTextBlock",
        "spacing": "None",
        "inlines": [{"type": "TextRun", "text": text or " ", **style}],
    }


def _telegram(message: Message, origin: str) -> Body:
    title, text = cut(message.content.title, 500, _of_html), cut(message.content.body, 3_000, _of_html)
    lines = [f"<b>{title}</b>", text, *_html_links(message, origin)]
    quiet = {"disable_notification": True} if message.priority <= LOW_PRIORITY else {}
    return {"text": "\n".join(lines), "parse_mode": "HTML", "link_preview_options": {"is_disabled": True}, **quiet}


def _html_links(message: Message, origin: str) -> list[str]:
    return [f'<a href="{html.escape(url)}">{_of_html(label)}</a>' for label, url in _encoded_links(message, origin)]


def _matrix(message: Message, origin: str) -> Body:
    title = cut(message.content.title, 1_000)
    text = cut_bytes(message.content.body, MAX_EVENT_BYTES, lambda part: part + _with_breaks(part))
    lines = [f"<strong>{_of_html(title)}</strong>", _with_breaks(text), *_html_links(message, origin)]
    plain = [title, text, *_as_lines(links(message, origin))]
    return {
        "msgtype": "m.text",
        "body": "\n".join(plain),
        "format": "org.matrix.custom.html",
        "formatted_body": "<br>".join(lines),
        "m.mentions": {},
    }


def _with_breaks(text: str) -> str:
    return _of_html(text).replace("\n", "<br>")


def _gotify(message: Message, origin: str) -> Body:
    shown_as: Body = {"click": {"url": message.url}} if message.url else {}
    if image := message.image(origin):
        shown_as["bigImageUrl"] = image
    title = cut(message.content.title, 1_000)
    return {
        "title": title,
        "message": "\n".join([cut(message.content.body, 10_000), *_as_lines(_buttons(message, origin))]) or title,
        "priority": (0, 2, 5, 8, 10)[message.priority - 1],
        "extras": {"client::display": {"contentType": "text/plain"}, "client::notification": shown_as},
    }


def _ntfy_text(message: Message, origin: str) -> Body:
    return {"text": longest(shown(message.content.body), lambda part: len(part.encode()) <= 4_000)}


def _ntfy_headers(message: Message, origin: str) -> dict[str, str]:
    """The rest of a message, which ntfy takes in headers; JSON in them is ASCII."""
    headers = {"Title": _encoded_word(cut(one_line(message.content.title), 250)), "Priority": str(message.priority)}
    if message.url:
        headers["Click"] = _ascii(message.url)
    if image := message.image(origin):
        headers["Attach"] = _ascii(image)
    if buttons := _buttons(message, origin):
        if len(buttons) > MAX_NTFY_ACTIONS:  # ntfy would refuse the message
            buttons[MAX_NTFY_ACTIONS - 1 :] = [("More", origin + message.path)]
        headers["Actions"] = json.dumps([{"action": "view", "label": label, "url": url} for label, url in buttons])
    return headers


def _encoded_word(text: str) -> str:
    """The text for a header: as it is, or as ntfy decodes it (RFC 2047)."""
    return (
        text if text.isascii() and not text.startswith("=?") else f"=?utf-8?b?{b64encode(text.encode()).decode()}?="
    )


def _ascii(address: str) -> str:
    return quote(address, safe="".join(map(chr, range(33, 127))))


def _apprise(message: Message, origin: str) -> Body:
    kind = {MAX_PRIORITY: "failure", HIGH_PRIORITY: "warning"}.get(message.priority, "info")
    title = cut(message.content.title, 1_000)
    text = "\n".join([cut(message.content.body, 10_000), *_as_lines(links(message, origin))])
    return {"title": title, "body": text if text.strip() else title, "type": kind, "format": "text"}


FORMS = {
    "generic": Form("Webhook", _generic),
    "slack": Form("Slack", _slack),
    "discord": Form("Discord", _discord),
    "mattermost": Form("Mattermost", _mattermost),
    "teams": Form("Microsoft Teams", _teams),
    "telegram": Form("Telegram", _telegram),
    "matrix": Form("Matrix", _matrix, method="PUT"),
    "gotify": Form("Gotify", _gotify),
    "ntfy": Form("ntfy", _ntfy_text, _ntfy_headers),
    "apprise": Form("Apprise", _apprise),
}


def url_of(preset: str, url: str, turn_id: str) -> str:
    """The address to which a preset's request goes: with Matrix, one of its own for each message."""
    if preset != "matrix":
        return url
    address, mark, query = url.partition("?")
    return f"{address.rstrip('/')}/{quote(turn_id, safe='')}{mark}{query}"


def named_in(url: str, *names: str) -> Body:
    """These fields of the address's query: Telegram reads them in the body, too."""
    query = parse_qs(urlsplit(url).query)
    return {name: query[name][0] for name in names if name in query}
