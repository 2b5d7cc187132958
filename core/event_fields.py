"""An event's priority, link, tag and picture by its alert's templates, and whether it says "resolved". Pure.

Payloads are not trusted: no value may move a link away from the host and the folder in the template. A value that
does not fit is left out, so that no event is lost.
"""

import re
from typing import Any
from urllib.parse import quote

from core.message_templates import WRITABLE, fill, parts
from core.template_filters import MISSING, Work, resolve
from core.value_text import as_text
from models import Alert
from store.senders import Webhook
from wire.errors import Refused
from wire.notification import (
    DEFAULT_PRIORITY,
    EVERY_S,
    FOR_S,
    LOW_PRIORITY,
    MAX_PRIORITY,
    MAX_TAG_CHARACTERS,
    MAX_URL_CHARACTERS,
    PRIORITIES,
    Content,
    image_address,
    web_address,
)
from wire.validation import checked_text

MAX_CONDITION_CHARACTERS = 200
MAX_READ = 10_000  # characters of a tag before it is cut
CONDITION = re.compile(r"\s*(?P<path>[^=]*[^=\s!<>~])\s*=\s*(?P<value>[^=\s](?:.*\S)?)\s*", re.DOTALL)
QUOTED = re.compile(r"""(["'])(.*)\1""", re.DOTALL)

OF_AN_ADDRESS = ":/?#[]@!$&'()*+,;=%"  # beside letters, digits and -._~ they may stand in a URL
LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
BEHIND_A_SCHEME = re.compile(r"https?://[^/?#\\]*", re.I)  # where a host is written
BEHIND_A_HOST = re.compile(r"https?://[^/?#\\]+/", re.I)
HOST_PART = re.compile(r"[A-Za-z0-9.-]*")
BEHIND_A_NAME = re.compile(r"[^/.:@]\Z")  # literal text that a value would lengthen to another name
SEPARATOR = r"[/\\]|%2f|%5c"  # encoded ones too: some servers decode before they resolve the path
DOT_SEGMENT = re.compile(rf"(?:^|{SEPARATOR})(?:\.|%2e){{1,2}}(?={SEPARATOR}|\Z)", re.I)

NUMBERS = PRIORITIES | {str(number): number for number in PRIORITIES.values()}


def event_fields(alert: Alert | Webhook, payload: dict[str, Any], work: Work) -> Content:
    """The content of an event by the alert's templates, as yet without title and body."""
    of_links = alert.url_template or alert.image_template
    if not (of_links or alert.priority_template or alert.tag_template or alert.resolved_when):
        return Content("", "")
    priority, of_priority = priority_of(alert.priority_template, payload, work)
    url, of_url = url_of(alert.url_template, payload, work)
    image, of_image = url_of(alert.image_template, payload, work)
    tag, of_tag = tag_of(alert.tag_template, payload, work)
    if alert.resolved_when and holds(alert.resolved_when, payload):
        priority = LOW_PRIORITY
    repeats = (EVERY_S, FOR_S) if alert.repeats_urgent and priority == MAX_PRIORITY else ()
    missing = of_priority + of_url + of_tag + of_image
    return Content("", "", missing, priority, url, tag, acknowledge=repeats, image=image_address(image))


def priority_of(template: str | None, payload: dict[str, Any], work: Work) -> tuple[int | None, tuple[str, ...]]:
    """The number that the template renders to, None if it is the default or no priority; and the missing paths."""
    filled = fill(template or "", payload, MAX_READ, work)
    number = NUMBERS.get(filled.text.strip().lower(), DEFAULT_PRIORITY)
    return None if number == DEFAULT_PRIORITY else number, filled.missing


def tag_of(template: str | None, payload: dict[str, Any], work: Work) -> tuple[str | None, tuple[str, ...]]:
    """The tag, cut at 64 characters, and the missing paths.

    There is no tag if a placeholder stays unfilled or all are empty: otherwise all such events would share one.
    """
    texts, missing, is_filled = parts(template or "", payload, MAX_READ, work)
    shown = texts[1::2]
    if not is_filled or (shown and not any(text.strip() for text in shown)):
        return None, missing
    return "".join(texts).strip()[:MAX_TAG_CHARACTERS] or None, missing


def url_of(template: str | None, payload: dict[str, Any], work: Work) -> tuple[str | None, tuple[str, ...]]:
    """The URL, None if a placeholder stays unfilled or it is no http(s) address; and the missing paths.

    A value at the very beginning is an address; every other one is encoded, and stays on that host.
    """
    texts, missing, is_filled = parts((template or "").strip(), payload, MAX_URL_CHARACTERS, work)
    if not is_filled:
        return None, missing
    url = address = ""
    for place, text in enumerate(texts):
        is_value, is_first = place % 2 == 1, place == 1 and not texts[0]
        if is_value and not is_first and not _stays_in_host(url, text):
            return None, missing
        if is_first:
            text = address = LONE_PERCENT.sub("%25", quote(text.strip(), safe=OF_AN_ADDRESS))
        elif is_value:
            text = quote(text, safe="/" if BEHIND_A_HOST.match(url) else "")  # behind the host, it keeps its own
        url += text
    return web_address(url) if not _leaves_its_folder(url, address) else None, missing


def _stays_in_host(before: str, text: str) -> bool:
    """Whether a value behind this part of a URL leaves the template's host unchanged.

    `https://example.org{{ x }}` must not become an address at example.org.evil.example.
    """
    if not BEHIND_A_SCHEME.fullmatch(before):
        return True
    return bool(HOST_PART.fullmatch(text)) and not ("." in text and BEHIND_A_NAME.search(before))


def _leaves_its_folder(url: str, address: str) -> bool:
    """Whether a value is `..`, which browsers take for the folder above."""
    path = re.split("[?#]", url, maxsplit=1)[0]
    return bool(DOT_SEGMENT.search(path[len(address) :]))


def checked_condition(condition: str | None) -> str | None:
    """`PATH = VALUE` without white space around it, or None for none; `Refused` (400) if it is written otherwise."""
    condition = (condition or "").strip()
    if not condition:
        return None
    match = CONDITION.fullmatch(checked_text(condition, "The condition", MAX_CONDITION_CHARACTERS))
    if not match or not WRITABLE.fullmatch(match["path"]):
        raise Refused(400, "Write the condition like status = resolved: a path, an equals sign, a value.")
    return condition


def holds(condition: str, payload: dict[str, Any]) -> bool:
    """Whether the value at the condition's path is shown as the condition's value, which may be in quotes."""
    match = CONDITION.fullmatch(condition)
    if not match:
        return False
    quoted = QUOTED.fullmatch(match["value"])
    wanted = quoted[2] if quoted else match["value"]
    value = resolve(payload, match["path"], Work().begin())  # so short a path cannot use it up
    if value is MISSING or isinstance(value, (dict, list)):
        return False
    return as_text(value, len(wanted) + 1) == wanted
