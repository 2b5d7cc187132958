"""What all pages share: times as their owner reads them, icons, files of the web app, errors."""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from flask import Flask, Response, render_template, request
from werkzeug.wrappers import Response as BaseResponse

from core import local_time
from core.icons import ICONS
from models import Alert
from process import clock
from store.notifications import Entry
from store.search import fold
from web import guards
from web.context import current, signed_in_account
from wire.errors import Refused

Page = str | BaseResponse | tuple[str, int]


class Problem(NamedTuple):
    """What is wrong with a form that was sent, and the id of the field to mend, if it is one.

    A page that gets it as `problem` says so on top, where the browser puts its focus, and beside that field.
    """

    message: str
    field: str = ""

    @classmethod
    def of(cls, refused: Refused) -> "Problem":
        """What was refused; `Refused` itself, unless what was sent is wrong: that is no matter of a form."""
        if refused.status != 400:
            raise refused
        return cls(refused.message[:1].upper() + refused.message[1:], refused.field)  # many begin with a field's name


STATIC = Path(__file__).parent.parent / "static"
EXCERPT = 300  # characters of a body that a list shows
BEFORE_HIT = 80  # of them before what was searched for
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
LOCAL_HOST = re.compile(r"(?:.*\.)?localhost|127\.[0-9.]+|\[::1\]")


def install(app: Flask) -> None:
    """Make what the templates use known to them."""
    times = {"moment": moment, "formatted": formatted, "ago": ago, "near": near}
    texts = {"number": number, "value": value, "excerpt": excerpt, "hits": hits, "icon": icon, "ink": ink}
    app.jinja_env.filters.update({**times, **texts})
    app.jinja_env.globals.update(asset=asset, by_day=by_day, problem=None)
    app.context_processor(lambda: {"signed_in": signed_in_account()})


def error_page(refused: Refused) -> str:
    """A refusal as a page."""
    return render_template("error.html", message=refused.message, status=refused.status)


def is_wanted() -> bool:
    """Whether who asks is a person with a browser, who would rather read a page than JSON."""
    kinds = ("application/json", "text/html")  # the first is for who does not say
    return request.method in ("GET", "HEAD") and request.accept_mimetypes.best_match(kinds) == "text/html"


def address_page() -> str:
    """What the address of an alert is for: the same for every code, so that nothing can be learned from it."""
    return render_template("address.html")


def webhook_address(alert: Alert) -> str:
    """Where events for the alert are sent to."""
    return f"{guards.origin()}/p/{alert.short_code}"


def qr_code(text: str) -> Response:
    """A text for a camera, as a picture."""
    import segno

    picture = BytesIO()
    segno.make(text, micro=False).save(
        picture, kind="svg", scale=4, border=3, dark="#000", light="#fff", xmldecl=False
    )
    return Response(picture.getvalue(), mimetype="image/svg+xml")


def is_local(address: str) -> bool:
    """Whether an origin leads to the very machine that opens it."""
    return LOCAL_HOST.fullmatch(re.sub(r"^https?://|:[0-9]+$", "", address)) is not None


# --- times --------------------------------------------------------------------------------------------------


def moment(at: int) -> str:
    """A time (ms) as the signed-in owner reads it."""
    return local_time.local_time(at, current().account.time_zone)


def formatted(at: int, layout: str) -> str:
    """A time (ms) laid out by strftime."""
    return local_time.laid_out(at, layout, current().account.time_zone)


def near(at: int) -> str:
    """A time (ms) as "today 22:00", "tomorrow 07:00" or "Mon 23 Nov 07:00"."""
    return local_time.near_time(at, current().account.time_zone, clock.now_ms())


def day(at: int) -> str:
    """The day of a time (ms), as "today" or "Mon 23 Nov"."""
    return local_time.near_day(at, current().account.time_zone, clock.now_ms())


def ago(at: int) -> str:
    """How long ago a time (ms) is; after some hours, when it was."""
    age = clock.now_ms() - at
    if not 0 <= age < 12 * HOUR_MS:
        return near(at)
    if age < MINUTE_MS:
        return "just now"
    return f"{age // MINUTE_MS} min ago" if age < HOUR_MS else f"{age // HOUR_MS} h ago"


def by_day(entries: list[Entry]) -> list[tuple[str, list[Entry]]]:
    """A list of notifications, in parts that each begin with a day."""
    return [(name, list(part)) for name, part in groupby(entries, key=lambda entry: day(entry.created_at))]


# --- texts and pictures -------------------------------------------------------------------------------------


def number(value: int) -> str:
    """A count with separators."""
    return f"{value:,}"


def value(measured: float) -> str:
    """A metric's value, with separators while that is readable."""
    if measured == int(measured) and abs(measured) < 1e15:
        return f"{int(measured):,}"
    return f"{measured:,.2f}" if 1000 <= abs(measured) < 1e15 else f"{measured:.5g}"


def isolated(name: str) -> str:
    """A name within a sentence, whose direction it must not turn around."""
    return f"\u2068{name}\u2069"


def excerpt(text: str, term: str = "") -> str:
    """The beginning of a text, or what is around the place where it holds `term`."""
    place = fold(text).find(fold(term))
    if place >= 0 and len(text) != len(fold(text)):  # some characters are folded to several
        place = bisect_left(range(len(text)), place, key=lambda end: len(fold(text[:end])))
    start = max(0, place - BEFORE_HIT) if place + len(term) > EXCERPT else 0
    cut = text[start : start + EXCERPT]
    return ("…" if start else "") + cut + ("…" if start + EXCERPT < len(text) else "")


def hits(text: str, term: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is one that was searched for."""
    folded = [(character, place) for place, one in enumerate(text) for character in fold(one)] if term else []
    haystack, needle, end = "".join(character for character, _ in folded), fold(term), 0
    at = haystack.find(needle) if term else -1
    while at >= 0:
        first, last = folded[at][1], folded[at + len(needle) - 1][1] + 1
        if first >= end:
            yield from ((text[end:first], False), (text[first:last], True))
            end = last
        at = haystack.find(needle, at + len(needle))
    yield text[end:], False


def icon(name: str | None) -> str:
    """The name of an icon that there is: an alert may have been given another."""
    return name if name and name in ICONS else "bell"


def ink(color: str) -> str:
    """Which ink is read better on a ground of `#RRGGBB`."""
    red, green, blue = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    return "dark" if light > 0.18 else "light"  # where black and white stand out equally


@cache
def asset(name: str) -> str:
    """The address of a static file; it changes with the content, so that browsers may keep it."""
    version = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/app/static/{name}?v={version}"
