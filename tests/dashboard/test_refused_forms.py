"""A form with something wrong in it: the page says so on top and beside the field, and nothing changes."""

import re

import pytest

from tests.support.accounts import OWNER
from tests.support.pages import Page
from tests.support.rows import each
from tests.support.tables import everything

RING, NEW_DEVICE, RULE = "/app/ring", "/app/devices/new", {"operator": ">", "value": "90", "for": "5m"}
DEVICE = "/app/devices/<device_id>"
LOOKS, ZONE, QUIET = "/app/alerts/<alert_id>/settings", "/app/settings/time-zone", "/app/quiet"
CHAT, NUMBER = {"kind": "webhook", "url": "https://a.example.com"}, "Enter a number such as 90 or 0.5."
ROWS = [
    (RING, "title", {"title": " "}, "Enter a title."),
    (RING, "title", {"title": "t" * 1_001}, "This title is too long. Use at most 1000 characters."),
    (RING, "text", {"text": ""}, "Enter a text."),
    (RING, "link", {"link": "a.b"}, "Link must be an address that begins with http:// or https://, without spaces."),
    (RING, "later", {"later": "soon"}, "Write the date and the time like 2026-11-21T07:00."),
    (RING, "later", {"later": "2026-11-21T09:59"}, "Choose a time in the future, at most a year ahead."),
    (RING, "later", {"later": "2028-01-01T00:00"}, "Choose a time in the future, at most a year ahead."),
    (RING, "devices", {"device": []}, "Choose at least one device."),
    (RING, "devices", {"device": ["x"]}, "Choose at least one device."),
    (LOOKS, "name", {"name": " "}, "Enter a name."),
    (LOOKS, "name", {"name": "a\0b"}, "Name is not valid text."),
    (LOOKS, "icon", {"icon": "../x"}, "There is no icon"),
    (LOOKS, "color", {"color": "red"}, "Write the colour like #3B82F6."),
    (LOOKS, "color", {"color": '#123456"'}, "Write the colour like #3B82F6."),
    (LOOKS, "frequency", {"frequency": "2h"}, "Frequency must be"),
    (LOOKS, "quiet_hours", {"quiet_hours": "never"}, "must be follow, urgent or ignore"),
    *(("/app/settings/theme", "theme", {"theme": one}, "system, light or dark") for one in ("", "DARK")),
    *((ZONE, "time_zone", {"time_zone": one}, "not a time zone") for one in ("", "../../etc/passwd")),
    (ZONE, "time_zone", {"time_zone": "europe/berlin"}, "not a time zone"),
    ("/app/settings/password", "current", {"current": "not the password"}, "not your current password"),
    *(("/app/settings/password", "new", {"new": one}, "12 characters") for one in ("elevenchars", "x" * 1_025)),
    *((DEVICE, "name-<device_id>", {"name": one}, "Enter a name.") for one in ("", "   ")),
    (DEVICE, "name-<device_id>", {"name": "x" * 101}, "This name is too long. Use at most 100 characters."),
    (DEVICE, "name-<device_id>", {"name": "a\0b"}, "Name is not valid text."),
    *((DEVICE, "minPriority-<device_id>", {"minPriority": one}, "from 1 to 5, or min") for one in ("", "max")),
    (DEVICE, "quietHours-<device_id>", {"quietHours": "mo 22-7"}, '"mo 22-7"'),
    ("/app/devices/<channel_id>", "afterS-<channel_id>", {"when": "5"}, "AfterS must be"),
    (NEW_DEVICE, "token-token", {"kind": "apns", "token": "no"}, "hexadecimal"),
    (NEW_DEVICE, "token-token", {"kind": "apns", "token": ""}, "Enter a token."),
    *((NEW_DEVICE, "token-token", {"kind": "fcm", "token": one}, "visible ASCII") for one in ("a b", "x" * 4_097)),
    (NEW_DEVICE, "token-name", {"kind": "fcm", "token": "t", "name": "x" * 101}, "at most 100 characters"),
    (NEW_DEVICE, "token-kind", {"kind": ""}, "Enter a kind."),
    (NEW_DEVICE, "token-kind", {"kind": "pigeon"}, "Kind must be apns, email"),
    (NEW_DEVICE, "token-name", {"kind": "webpush", "token": "t"}, "Subscription must be an object"),
    (NEW_DEVICE, "fetching-name", {"kind": "ntfy", "name": "x" * 101}, "at most 100 characters"),
    (NEW_DEVICE, "chat-url", {**CHAT, "url": "http://10.0.0.1/"}, "The address is not permitted"),
    (NEW_DEVICE, "chat-preset", {**CHAT, "preset": "irc"}, "Preset must be generic"),
    (NEW_DEVICE, "chat-name", {**CHAT, "name": "x" * 101}, "at most 100 characters"),
    (NEW_DEVICE, "chat-name", {**CHAT, "when": "<x>"}, "AfterS must be"),
    ("/app/watches/new", "name", {"name": " "}, "Enter a name."),
    ("/app/watches/new", "period", {"period": "1h", "cron": "* * * * *"}, "not both"),
    ("/app/watches/new", "period", {"period": ""}, "Set a period or a cron"),
    ("/app/watches/new", "cron", {"period": "", "cron": "61 * * * *"}, "not a cron expression"),
    ("/app/watches/<heartbeat_id>", "cron", {"period": "", "cron": "x"}, "not a cron expression"),
    ("/app/watches/new", "grace", {"grace": "1s"}, "from 1m to 31d"),
    ("/app/watches/new", "priority", {"priority": "6"}, "from 1 to 5"),
    *(("/app/metrics/one", "value", RULE | {"value": one}, NUMBER) for one in ("", "nan", "1e999")),
    ("/app/metrics/one", "value", RULE | {"operator": "~"}, NUMBER),
    ("/app/metrics/one", "value", {"operator": "", "value": "1"}, NUMBER),
    ("/app/metrics/one", "for", RULE | {"for": "soon"}, "Write the duration like 10m, 1h or 7d"),
    ("/app/metrics/one", "for", RULE | {"for": "9999d"}, "The duration must be from"),
    ("/app/metrics/rules/<rule_id>", "silent", {"silent": "1s"}, "The duration must be from 1m"),
    ("/app/metrics/one", "silent", {"silent": ""}, "Enter a time such as 30m, 24h or 7d."),
    ("/app/metrics/one", "silent", {"silent": "long"}, "Write the duration like 10m, 1h or 7d"),
    ("/app/metrics/one", "silent", {"silent": "1s"}, "The duration must be from 1m"),
    ("/app/keys", "scope", {"scope": "admin"}, "Scope must be full, send or read."),
    ("/app/keys", "life", {"life": "7y"}, "Choose one of these times."),
    *(("/app/people", "email", {"email": one}, "name@example.org") for one in ("", "nobody")),
    ("/app/people", "email", {"email": OWNER.upper()}, "already an account"),
    ("/app/people", "plan", {"plan": "gratis"}, "limits"),
    *(("/app/people/<account_id>/delete", "email", {"email": one}, "Nothing was deleted") for one in ("", OWNER)),
    ("/app/followers/<what>/<subject_id>", "email", {"email": OWNER}, "your own address"),
    ("/app/mutes", "duration", {"duration": ""}, "Write the duration"),
    ("/app/mutes", "duration", {"duration": "soon"}, 'Write the duration like 10m, 1h or 7d, not "soon".'),
    ("/app/mutes", "duration", {"duration": "59s"}, "The duration must be from 1m to 366d."),
    ("/app/mutes", "cron", {"cron": "daily"}, '"daily" is not a cron expression, or never runs.'),
    ("/app/mutes", "cron", {"cron": "0 * * * *"}, '"0 * * * *" comes again on'),
    ("/app/mutes", "", {"what": ""}, "Write all, or one of"),
    *((QUIET, "begin-0", {"begin": one}, "Enter when quiet hours begin and end.") for one in ("", " ")),
    (QUIET, "end-0", {"end": ""}, "Enter when quiet hours begin and end."),
    *((QUIET, "end-0", {"begin": one}, "like 22:00-07:00 or mo-fr") for one in ("24:00", "\0")),
    (QUIET, "end-0", {"end": "01:00"}, "must not begin and end at the same time"),
    (QUIET, "days-0", {"days": []}, "Choose the days of the quiet hours 01:00-02:00."),
    ("/app/alerts/<alert_id>", "priority", {"priority": "x" * 201}, "at most 200"),
    ("/app/alerts/<alert_id>", "url", {"url": "{{ a | shout }}"}, "shout"),
    ("/app/alerts/<alert_id>", "resolved", {"resolved": "state"}, "Write the condition like status = resolved"),
    ("/app/alerts/new", "name", {"name": "x" * 101}, "at most 100 characters"),
]


@pytest.fixture
def unchanged(forms):
    before = everything()
    yield
    assert everything() == before


@each("rule, field, wrong, sentence", ROWS)
def test_what_is_wrong_in_a_form_is_said_on_top_and_beside_its_field_and_changes_nothing(
    forms, unchanged, rule, field, wrong, sentence
):
    sent = wrong if "silent" in wrong else forms.content(rule) | wrong
    answer = forms.post(rule, sent)
    assert answer.status_code == 422, answer.text
    page, place = Page(answer.text), re.sub("<[a-z_]+>", lambda match: forms.ids[match[0]], field)
    (said,) = page.said("alert")
    assert sentence in said and said.endswith(".")
    marked = [one for one in page.elements if one.attributes.get("aria-invalid")]
    assert [one.attributes["id"] for one in marked] == [place] * bool(field)
    assert page.texts_of("p", id=f"{place}-problem") == [said] * bool(field)
    typed = {text.strip() for text in sent.values() if isinstance(text, str)} | {""}
    assert {one.attributes["value"].strip() for one in marked if "value" in one.attributes} <= typed
