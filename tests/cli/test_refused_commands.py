"""What a command refuses is an error in one line that names it, and nothing is done of what stands beside it."""

import os

import pytest

from core.template_filters import FILTERS
from tests.support.accounts import OWNER
from tests.support.commands import lines_of, said
from tests.support.rows import each
from tests.support.tables import everything

NOT_UTF_8 = os.fsdecode(b"caf\xe9")  # as Python sees such an argument
ALERTS = [("alert", "create", OWNER, "A"), ("alert", "set", OWNER, "ALERT", "--inactive", "--frequency", "1d")]
HOURLY, BEATS = ("--period", "1h"), [("heartbeat", "create", OWNER, "B"), ("heartbeat", "set", OWNER, "BEAT")]
RULE, KEY, DEVICE = ("rule", "create", OWNER), ("key", "create", OWNER, "script"), ("device", "add", OWNER)
ACCOUNT, MUTE = ("account", "set", OWNER, "--plan", "pro"), ("mute", OWNER)


def both(commands, *options):
    """The commands with each of these options."""
    return [(*command, *option) for command in commands for option in options]


def valued(option, *values):
    return [(option, value) for value in values]


REFUSED = {  # by what is said
    "already": [("account", "create", one) for one in (OWNER, "Owner@Example.ORG", f" {OWNER} ")],
    "address": [
        ("account", "create", one) for one in ("", " ", "owner", "@", "a@", "@b", "a b@c", "a@b@c", "a@b\nc")
    ],
    "not a time zone": both([ACCOUNT], *valued("--timezone", "Mars/Base", "europe/nowhere", "UTC\nUTC", "x" * 5_000)),
    "uiet hours": both([ACCOUNT], *valued("--quiet-hours", "", "on", "22:00", "7:00-8:00", "24:00-07:00", "a\nb"))
    + both(
        [ACCOUNT],
        *valued("--quiet-hours", "22:00-22:00", "22:00-07:00 ", "22:00–07:00", "22:00-07:0\0", "9" * 10_000),
    ),
    "Write the condition like status = resolved: a path": both(ALERTS, ("--resolved-when", "status")),
    "is 201 characters long: at most 200 are allowed.": both(
        ALERTS, ("--resolved-when", "a = " + "b" * 197), ("--priority", "x" * 201), ("--tag", "x" * 201)
    ),
    "is 2001 characters long: at most 2000 are allowed.": both(ALERTS, ("--url", "x" * 2_001)),
    "1001 characters long": both(ALERTS, ("--title", "t" * 1_001)),
    "10001 characters long": both(ALERTS, ("--body", "b" * 10_001)),
    f'There is no filter "shout": the filters are {", ".join(FILTERS)}.': both(
        ALERTS, *((option, "{{ a | shout }}") for option in ("--tag", "--title", "--body"))
    ),
    "color must be": both(ALERTS, *valued("--color", "red", "#FFF", "#GGGGGG", "3B82F6", "#3B82F6FF", "#3B82F6\n"))
    + both(ALERTS, *valued("--color", " #3B82F6", "#３B82F6", "#3B 2F6", "#+B82F6", "#3B82F\0")),
    "There is no icon": both(ALERTS, *valued("--icon", "no-such-icon", "Bell", "hdd", "", " bell", "a\0b")),
    "not valid text": both(ALERTS, *valued("--title", "a\0b", "a\ud800b"), *valued("--body", "a\0b", NOT_UTF_8)),
    "Set a period or a cron expression.": [BEATS[0], *both(BEATS, ("--period", ""), ("--cron", ""))],
    "Set either a period or a cron expression": both(BEATS, (*HOURLY, "--cron", "* * * * *")),
    "period": both(
        BEATS, *valued("--period", "1", "59s", "367d", "-1h", "1.5h", "h", "1h-", "²h", "1 h", "9" * 5_000)
    ),
    "grace": both(BEATS, *((*HOURLY, "--grace", one) for one in ("", "1", "59s", "32d", "9" * 30 + "d", "1y"))),
    "or never runs": both(
        BEATS, *valued("--cron", "0 3 * *", "0 3 * * * *", "61 * * * *", "0 0 30 2 *", "x", "@daily")
    )
    + both(BEATS, *valued("--cron", "* * * * ²", "1-0 * * * *", "*/0 * * * *", "0 0 * * L", "9" * 5_000 + " * * * *"))
    + both(BEATS, *valued("--cron", "* * * * " + "1," * 100 + "1", "\0 * * * *", "0 0 * * 1#6", "0 0 L/2-3 * *"))
    + both(BEATS, *valued("--cron", "5/L * * * *", "0 0 LW 2 */7")),  # the last weekday of February is no Sunday
    'must be written like "> 90"': [
        (*RULE, "p", "m", one) for one in ("", "90", ">", "over 90", "silent", "x" * 5_000)
    ],
    "must end with a number": [  # the long ones: not in a time that grows with the square of it
        (*RULE, "p", "m", one)
        for one in (
            *(">\n90", "> nan", "> inf", "< -Infinity", "> 1e999", "> " + "9" * 5_000, "> " + "9" * 100_000 + "x"),
            *("> 90%", "> 90 %", "> 1,000", "> 1_000", "> 0x10", "> ٩", "== 0", "=> 0"),
        )
    ],
    "like 10m, 1h or 7d": [
        *(
            (*RULE, "p", "m", "silent 24"),
            (*RULE, "p", "m", "> 90", "--for", ""),
            (*RULE, "p", "m", "> 90", "--for", "5"),
        ),
        *((*KEY, "--expires", "soon"), (*MUTE, "all", "soon")),
    ],
    "from 1m to 366d": [(*RULE, "p", "m", "silent 59s"), (*RULE, "p", "m", "silent 367d"), (*MUTE, "all", "367d")],
    'as in "silent 24h"': [(*RULE, "p", "m", "silent 24h", "--for", "5m")],
    "from 1s to 31d": [(*RULE, "p", "m", "> 90", "--for", one) for one in ("0s", "32d")],
    "project ": [(*RULE, one, "m", "> 90") for one in ("", " ", "x" * 101, "a\0b")],
    "metric ": [(*RULE, "p", one, "> 90") for one in ("", " ", "x" * 101, "a\0b")],
    "scope must be full, send or read.": [(*KEY, "--scope", "admin")],
    "The time until it expires must be from 1m to 3653d.": [(*KEY, "--expires", "30s")],
    "Write all, or one of alert:NAME, key:NAME, heartbeat:NAME, rule:NAME, not": [
        (*MUTE, one, "1h") for one in ("Disk", "alert:", "pager:x")
    ],
    'There is no alert "None".': [(*MUTE, "alert:None", "1h")],
    'There is no heartbeat "None".': [(*MUTE, "heartbeat:None", "1h")],
    '2 alerts have the name "Twice": use an id, such as ': [(*MUTE, "alert:Twice", "1h")],
    '"daily" is not a cron expression, or never runs.': [(*MUTE, "all", "1h", "--cron", "daily")],
    '"0 * * * *" comes again on Sat 21 Nov 12:00, before it': [(*MUTE, "all", "2h", "--cron", "0 * * * *")],
    '"yesterday" is no time': [(*MUTE, "all", "--until", "yesterday")],
    "until must be in the future, at most 366 days ahead.": [
        (*MUTE, "all", "--until", f"{year}-11-21T09:00") for year in (2026, 2028)
    ],
    "token is required": [(*DEVICE, kind, "") for kind in ("apns", "fcm")],
    "hexadecimal": [(*DEVICE, "apns", one) for one in ("0a" * 31, "0a" * 101, "zz" * 32, "0a" * 32 + "\n")],
    "visible ASCII": [(*DEVICE, "fcm", one) for one in (" ", "tök", "a\nb", "x" * 5_000)],
    "": [
        *((*DEVICE, "webpush", one) for one in ("", "{", "[]", "null", "1", '"x"', "{}", "[" * 100_000)),
        (*DEVICE, "webpush", '{"endpoint": "http://127.0.0.1:1/x", "keys": {"p256dh": "a", "auth": "b"}}'),
        (*DEVICE, "webpush", '{"endpoint": "\\ud800", "keys": {"p256dh": "a", "auth": "b"}}'),
        (*DEVICE, "webpush", '{"endpoint": "https://fcm.googleapis.com/x", "keys": []}'),
        *both(ALERTS, ("--icon", NOT_UTF_8)),
        (*ACCOUNT, "--quiet-hours", NOT_UTF_8),
    ],
    "This server sends no e-mail: SMTP_URL and SMTP_FROM are not set.": [(*DEVICE, "email", "a@b.c")],
    "url is not permitted": [(*DEVICE, "webhook", "https://10.0.0.1/")],
    "role is for channels": [(*DEVICE, "fcm", "t", "--role", "always")],
}


@pytest.fixture
def stocked(full, service):
    """An account with one of everything, and two alerts of one name; the ids of the first alert and the heartbeat."""
    ids = {"ALERT": lines_of(service, "alert", "list", OWNER)[0][0]}
    for _ in range(2):
        full("alert", "create", OWNER, "Twice")
    return ids | {"BEAT": lines_of(service, "heartbeat", "list", OWNER)[0][0]}


@each("says, words", [(says, words) for says, some in REFUSED.items() for words in some])
def test_what_is_refused_is_said_in_one_line_and_nothing_is_done(service, stocked, says, words):
    before = everything()
    line = said(service.flask(*(stocked.get(word, word) for word in words)))
    assert line.startswith("Error: ") and says in line and (len(line) < 300 or "The icons are" in line)
    assert everything() == before
