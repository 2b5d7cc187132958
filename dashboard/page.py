"""The parts of all pages: template filters for times and texts, links to static files, QR codes, error pages."""

import csv
import hashlib
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cache
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from flask import Flask, Response, current_app, flash, g, redirect, render_template
from markupsafe import Markup
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from core import attention, channels, digests, holding, local_time, mutes, pictures, week_windows
from core.alerts import ICONS
from core.durations import in_words
from process import clock
from process.clock import DAY_MS, HOUR_MS, MINUTE_MS
from store import database, held_notifications
from store import mutes as stored_mutes
from store.mutes import EVERYTHING, Mute
from store.notifications import Entry
from store.search import fold
from store.senders import find_sender
from web import guards
from web.context import current, request, signed_in_account
from wire.errors import SENTENCES, Refused
from wire.notification import PRIORITY_WORDS, bare
from wire.validation import counted

Page = str | BaseResponse | tuple[str, int]


# How a page words sentences that programs get, too.
FOR_PEOPLE = {
    re.compile(r"(\w+) (?:must not be blank|is required)\."): r"Enter a \1.",
    re.compile(r"color must be written like (.+)\."): r"Write the colour like \1.",
    re.compile(r"(\w+) is \d+ characters long: at most (\d+) .*"): r"This \1 is too long. Use at most \2 characters.",
    re.compile(r"url (.+)"): r"The address \1",
    re.compile(r'".*" is no time: .+', re.DOTALL): "Write the date and the time like 2026-11-21T07:00.",
    re.compile(r"deliverAt .+"): "Choose a time in the future, at most a year ahead.",
    re.compile(r"quietHours: (.+)"): r"\1",
}


class Problem(NamedTuple):
    """The fault of a submitted form, and the id of the field to correct, if it is one field.

    A template that gets it as `problem` shows it at the top of the page, with the focus, and beside the field.
    """

    message: str
    field: str = ""

    @classmethod
    def of(cls, refused: Refused, field: str = "") -> "Problem":
        """Make a problem of a 400, at `field` if given. Others are not about the form, so they are raised again."""
        if refused.status != 400:
            raise refused
        field = field or refused.field
        for pattern, said in FOR_PEOPLE.items():
            if found := pattern.fullmatch(refused.message):
                return cls(found.expand(said), field)
        # Many messages begin with the name of a field, in lower case.
        return cls(refused.message[:1].upper() + refused.message[1:], field)


STATIC = Path(__file__).parent.parent / "static"
EXCERPT = 300  # characters of a body that a list shows
NO_PAGE = "This page does not exist, or what it showed was deleted."
NOT_A_PAGE = "There is no page at this address: it only accepts the forms of other pages."
KINDS = ("application/json", "text/html")  # the first is the default of clients without a preference
MAX_ACCEPT = 1_000  # characters; browsers send 200
BEFORE_HIT = 80  # characters of an excerpt before the first hit
FORMULA = tuple("=+-@＝＋－＠")
LINK = re.compile(r"https?://[^\s<>\"'`“”‘’«»\u2066-\u2069\u202a-\u202e]+", re.IGNORECASE)
BEHIND_LINK = ".,;:!?*_~"  # ends a sentence or a markup rather than an address
PAIRS = {")": "(", "]": "[", "}": "{"}
AGES = ((365, "year"), (30, "month"), (1, "day"))
TILES = ("#b3261e", "#7d4a00", "#146c3c", "#0b6470", "#2456c9", "#6b3fa0", "#a02f6f", "#5b5e6a")
PICTURE_ORIGIN = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?=[/?#]|\Z)")  # as a header of the page names it
MAX_PICTURE_ORIGINS = 20  # of a page
OUR_PAGE = re.compile(r"(?P<path>/app(?:/[A-Za-z0-9_-]+)*/?)(?:\?[A-Za-z0-9_./=&%+-]*)?")
LOCAL_HOST = re.compile(r"(?:.*\.)?localhost|127\.[0-9.]+|\[::1\]")


def install(app: Flask) -> None:
    """Register the filters and globals that the templates use."""
    times = (moment, formatted, ago, age, near, day, took, dated)
    texts = (value, percent, excerpt, hits, links, icon, ink, tile_color, bare, counted)
    others = {
        "lasting": in_words,
        "number": "{:,}".format,
        "priority_word": PRIORITY_WORDS.__getitem__,
        "mute_end": lambda mute: holding.window(mute, clock.now_ms())[1],
        "mute_time": lambda mute: mutes.time_words(mute, clock.now_ms()),
        "hours_in_words": week_windows.in_words,
        "gets": channels.in_words,
    }
    app.jinja_env.filters.update({one.__name__: one for one in times + texts}, **others)
    functions = {one.__name__: one for one in (asset, by_day, held_until, muted, picture, is_local)}
    app.jinja_env.globals.update(functions, problem=None)
    app.context_processor(
        lambda: {"signed_in": signed_in_account(), "count_watches": attention.count_watches, "origin": guards.origin}
    )


def error_page(refused: Refused) -> str:
    """The page that shows a refusal."""
    message = refused.message
    if refused.status == 404 and message == SENTENCES[404]:
        message = NO_PAGE
    elif refused.status == 405 and request.method in ("GET", "HEAD"):
        message = NOT_A_PAGE
    account = signed_in_account() if refused.status < 500 else None  # the menu counts watches in the database
    return render_template("error.html", message=message, status=refused.status, signed_in=account)


def is_wanted() -> bool:
    """Whether the client is a browser that prefers a page to JSON."""
    is_short = len(request.headers.get("Accept", "")) <= MAX_ACCEPT  # to read a long one takes 10 ms
    return is_short and request.accept_mimetypes.best_match(KINDS) == "text/html"


def is_phone() -> bool:
    """Whether the browser is a phone's by its own account: too narrow for a list beside the open page."""
    return "Mobi" in request.headers.get("User-Agent", "")


def back_to(address: str, said: str, kind: str = "message") -> BaseResponse:
    """Redirect to a page, which shows this message: a `message`, `warning` or `error`."""
    flash(said, kind)
    return redirect(address, 303)


def asked_for(name: str, otherwise: str) -> str:
    """The address in the query, if it is of a page of the web app and no other site's, or else `otherwise`."""
    asked = OUR_PAGE.fullmatch(request.args.get(name, ""))
    if asked is None or "//" in asked[0]:
        return otherwise
    try:
        current_app.url_map.bind("").match(asked["path"], "GET")
    except HTTPException:
        return otherwise
    return asked[0]


def qr_svg(text: str) -> Markup:
    """The text as a QR code, an element of a page: a secret must not have an address of its own."""
    import segno

    picture = segno.make(text, micro=False).svg_inline(scale=4, border=3, dark="#000", light="#fff")
    return Markup(picture)  # noqa: S704 - segno's alone


def csv_file(name: str, columns: tuple[str, ...], pieces: Iterator[list[tuple[str | float, ...]]]) -> Response:
    """A download of these rows, written in pieces as fast as the client takes them."""

    def texts() -> Iterator[str]:
        yield _csv([columns])
        while True:
            try:
                piece = next(pieces, None)
            finally:
                database.give_back()
            if piece is None:
                return
            yield _csv(piece)

    named = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(texts(), mimetype="text/csv", headers=named)


def _csv(rows: Iterable[tuple[str | float, ...]]) -> str:
    text = StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([_cell(value) if isinstance(value, str) else value for value in row] for row in rows)
    return text.getvalue()


def _cell(text: str) -> str:
    """The text, quoted if a spreadsheet would otherwise run it as a formula."""
    return f"'{text}" if text.strip().startswith(FORMULA) else text


def is_local(address: str) -> bool:
    """Whether an origin is a loopback address, which leads every machine to itself."""
    return LOCAL_HOST.fullmatch(re.sub(r"^https?://|:[0-9]+$", "", address)) is not None


# --- times --------------------------------------------------------------------------------------------------


def moment(at: int) -> str:
    """A time (ms) in the signed-in owner's time zone."""
    return local_time.local_time(at, current().account.time_zone)


def formatted(at: int, layout: str) -> str:
    """A time (ms) formatted by strftime, in the owner's time zone."""
    return local_time.laid_out(at, layout, current().account.time_zone)


def near(at: int) -> str:
    """A time (ms) as "today 22:00", "tomorrow 07:00" or "Mon 23 Nov 07:00"."""
    return local_time.near_time(at, current().account.time_zone, clock.now_ms())


def day(at: int) -> str:
    """The day of a time (ms), as "today" or "Mon 23 Nov"."""
    return local_time.near_day(at, current().account.time_zone, clock.now_ms())


def ago(at: int) -> str:
    """A time (ms) as "5 min ago"; after twelve hours, and in the future, like `near`."""
    age = clock.now_ms() - at
    if not 0 <= age < 12 * HOUR_MS:
        return near(at)
    if age < MINUTE_MS:
        return "just now"
    return f"{age // MINUTE_MS} min ago" if age < HOUR_MS else f"{age // HOUR_MS} h ago"


def age(at: int) -> str:
    """How long ago a time (ms) is: "5 min ago", "3 days ago", "2 months ago"."""
    since = clock.now_ms() - at
    if since < HOUR_MS:
        return ago(at)
    days = since // DAY_MS
    if days < 1:
        return f"{since // HOUR_MS} h ago"
    length, unit = next(one for one in AGES if days >= one[0])
    return f"{counted(days // length, unit)} ago"


def took(ms: int) -> str:
    """How long a run took, in its two greatest units; "1 s" if it was shorter."""
    return in_words(max(1, round(ms / 1000)), 2)


def percent(share: float) -> str:
    """A share as "94.1 %"; "100 %" only if it is all."""
    return f"{math.floor(share * 1000) / 10:g} %"


def held_until(entry: Entry) -> int | None:
    """When a held notification will be sent, as things stand; None if a newer one with its tag stands for it."""
    group = None if entry.digest_seq else held_notifications.group_of(entry.seq)
    if group is None:
        at = entry.content.deliver_at
        if at is None or not current().account.has_mutes:
            return at
        muting = stored_mutes.of_account(current().account.seq)
        return holding.what_holds(find_sender(entry.seq), entry.content.priority, muting)[1].until(at)[0]
    if "held" not in g:  # a page may list many
        g.held = held_notifications.of_account(current().account.seq)
    of_group = [one for one in g.held if (one.kind, one.sender_seq, one.priority) == group]
    releases = digests.releases(of_group, clock.now_ms())
    return releases[0] if releases else None


def muted(what: str, seq: int) -> Mute | None:
    """The mute in force of an alert, a key, a heartbeat or a rule alone, or else of all: the one that ends last."""
    account, now = current().account, clock.now_ms()
    if not account.has_mutes:
        return None
    return next(iter([*mutes.timed(account.seq, (what, seq), now), *mutes.timed(account.seq, EVERYTHING, now)]), None)


def by_day(entries: list[Entry]) -> list[tuple[str, list[Entry]]]:
    """Group sorted notifications by day, with the day's name."""
    return [(name, list(part)) for name, part in groupby(entries, key=lambda entry: day(entry.created_at))]


# --- texts and pictures -------------------------------------------------------------------------------------


def picture(entry: Entry) -> str | None:
    """The address of a notification's picture, which the page may then load; None if there is none to show."""
    address = pictures.address_of(entry.id, entry.content)
    if address is None or address.startswith("/"):
        return address
    found, origins = PICTURE_ORIGIN.match(address), current().picture_origins
    if found and (found[0] in origins or len(origins) < MAX_PICTURE_ORIGINS):
        origins.add(found[0])
        return address
    return None


def value(measured: float) -> str:
    """A metric's value: with thousands separators if integral or large, otherwise to five significant digits."""
    if measured == int(measured) and abs(measured) < 1e15:
        return f"{int(measured):,}"
    return f"{measured:,.2f}" if 1000 <= abs(measured) < 1e15 else f"{measured:.5g}"


def isolated(name: str) -> str:
    """A name in Unicode isolates, so that right-to-left text in it cannot reorder the sentence around it."""
    return f"\u2068{name}\u2069"


def excerpt(text: str, terms: Iterable[str] = ()) -> str:
    """The beginning of a text, or the part around the first match of any of `terms`."""
    folded = fold(text)
    found = [(place, len(term)) for term in terms if (place := folded.find(fold(term))) >= 0]
    place, length = min(found, default=(0, 0))
    # Case folding can turn one character into several ("ß" to "ss"): map the place back to the unfolded text.
    if found and len(text) != len(folded):
        place = bisect_left(range(len(text)), place, key=lambda end: len(fold(text[:end])))
    start = max(0, place - BEFORE_HIT) if place + length > EXCERPT else 0
    cut = text[start : start + EXCERPT]
    return ("…" if start else "") + cut + ("…" if start + EXCERPT < len(text) else "")


def hits(text: str, terms: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Split the text into pieces, each with whether it matches one of the search terms."""
    needles = sorted(map(fold, terms), key=len, reverse=True)  # of two at one place, the longer one matches
    if not needles:
        yield text, False
        return
    folded, end = [(character, place) for place, one in enumerate(text) for character in fold(one)], 0
    for found in re.finditer("|".join(map(re.escape, needles)), "".join(character for character, _ in folded)):
        first, last = folded[found.start()][1], folded[found.end() - 1][1] + 1
        if first >= end:
            yield from ((text[end:first], False), (text[first:last], True))
            end = last
    yield text[end:], False


def dated(day: str, layout: str) -> str:
    """A day (YYYY-MM-DD) formatted by strftime."""
    return date.fromisoformat(day).strftime(layout)


def links(text: str) -> Iterator[tuple[str, bool]]:
    """Split the text into pieces, each with whether it is an address (http or https) to link."""
    end = 0
    for found in LINK.finditer(text):
        address = found[0].rstrip(BEHIND_LINK)
        while address[-1] in PAIRS and address.count(address[-1]) > address.count(PAIRS[address[-1]]):
            address = address[:-1].rstrip(BEHIND_LINK)
        if not address.endswith("//"):
            yield from ((text[end : found.start()], False), (address, True))
            end = found.start() + len(address)
    yield text[end:], False


def icon(name: str | None) -> str:
    """The icon's name, or `bell` for an unknown one: older alerts may have any name."""
    return name if name and name in ICONS else "bell"


def ink(color: str) -> str:
    """The text color, `dark` or `light`, that is easier to read on the background `#RRGGBB`."""
    red, green, blue = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2  # the relative luminance of WCAG
    return "dark" if light > 0.18 else "light"  # at 0.18, black and white have equal contrast


def tile_color(name: str) -> str:
    """The color of the tile of something that has a name but no icon: always the same for the same name."""
    return TILES[crc32(name.encode("utf-8", "replace")) % len(TILES)]


@cache
def asset(name: str) -> str:
    """The URL of a static file. It changes with the content, so that browsers can cache it for good."""
    version = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/app/static/{name}?v={version}"
