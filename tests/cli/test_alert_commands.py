"""Alerts by command."""

import re
from unittest.mock import ANY

import pytest

from core.alerts import ICONS
from models import Alert
from tests.support.accounts import OWNER
from tests.support.commands import lines_of, printed, said
from tests.support.rows import each

FIELDS = (
    *("--priority", "{{ level }}", "--url", "https://x.example/{{ id }}", "--tag", "{{ key }}"),
    *("--resolved-when", "state = ok", "--repeat-urgent"),
)
IN_QUIET_HOURS = {
    "--follow-quiet-hours": "follows quiet hours",
    "--urgent-passes-quiet-hours": "urgent passes quiet hours",
    "--ignore-quiet-hours": "ignores quiet hours",
}


def shown(service, hook):
    """The settings as `alert show` prints them."""
    return dict(lines_of(service, "alert", "show", OWNER, hook.id))


def rendered(caller, hook, payload):
    """The title and the body of the notification that an event makes."""
    answer = hook.post(payload)
    assert answer.status_code == 200
    newest = caller.listed()[0]
    assert newest["id"] == answer.json["notificationId"]
    return newest["title"], newest["body"]


# --- alert create, show, set --------------------------------------------------------------------------------


def test_an_alert_is_made_with_the_defaults_and_its_address_is_printed_alone(make_service, moved_clock):
    service = make_service(BASE_URL="https://bell.example.org")
    service.account()
    line = printed(service.flask("alert", "create", OWNER, "漢字 <b>{{ name }}</b>"))
    assert re.fullmatch(r"https://bell\.example\.org/p/[0-9A-Za-z]{7}", line)
    (alert,) = service.caller().alerts()
    assert alert == {
        "id": ANY,
        "name": "漢字 <b>{{ name }}</b>",
        "icon": "bell",
        "color": "#3B82F6",
        "isActive": True,
        "notificationCount": 0,
        "lastTriggeredAt": None,
        "createdAt": moved_clock.ms,
    }


def test_show_prints_every_setting(service, owner):
    hook = service.alert(*FIELDS, "--title", "{{ a }}\n", "--frequency", "1h", "--urgent-passes-quiet-hours")
    assert shown(service, hook) == {
        "name": "Backups",
        "state": "active",
        "title": "{{ a }} ",
        "body": "-",
        "priority": "{{ level }}",
        "url": "https://x.example/{{ id }}",
        "tag": "{{ key }}",
        "image": "-",
        "resolved-when": "state = ok",
        "repeat-urgent": "yes",
        "mute-button": "no",
        "frequency": "1h",
        "quiet-hours": "urgent passes quiet hours",
        "icon": "bell",
        "color": "#3B82F6",
        "address": f"http://127.0.0.1:8000/p/{hook.code}",
    }


def test_set_changes_only_the_named_fields_and_an_empty_text_removes_one(service, owner):
    hook = service.alert(*FIELDS, "--title", "T", "--body", "B")
    hook.set("--tag", "x", "--no-repeat-urgent")
    now = shown(service, hook)
    assert (now["tag"], now["repeat-urgent"], now["priority"]) == ("x", "no", "{{ level }}")
    hook.set("--title", "", "--body", "", "--priority", "", "--url", " ", "--tag", "", "--resolved-when", "")
    now = shown(service, hook)
    assert {now[name] for name in ("title", "body", "priority", "url", "tag", "resolved-when")} == {"-"}
    assert Alert.get().resolved_when is None


@pytest.mark.parametrize("option", IN_QUIET_HOURS)
def test_each_word_for_quiet_hours_is_taken_and_shown(service, owner, option):
    other = next(one for one in IN_QUIET_HOURS if one != option)
    made, changed = service.alert(option), service.alert(other)
    changed.set(option)
    for hook in (made, changed):
        assert shown(service, hook)["quiet-hours"] == IN_QUIET_HOURS[option]
    assert {columns[4] for columns in lines_of(service, "alert", "list", OWNER)} == {IN_QUIET_HOURS[option]}
    changed.set("--frequency", "1h")
    assert shown(service, changed)["quiet-hours"] == IN_QUIET_HOURS[option]


def test_two_words_for_quiet_hours_are_a_wrong_use(service, owner):
    result = service.flask("alert", "create", OWNER, "A", "--follow-quiet-hours", "--ignore-quiet-hours")
    assert result.exit_code == 2 and "--urgent-passes-quiet-hours" in result.stderr
    assert owner.alerts() == []


@each(
    "field, what",
    [("title", "will appear as written"), ("body", "will appear as written"), ("url", "is never filled")],
)
def test_unknown_placeholders_are_warned_of_in_a_line_each_and_saved(service, owner, field, what):
    for command in (("create", OWNER, "A"), ("set", OWNER, service.alert().id)):
        result = service.flask("alert", *command, f"--{field}", "{{ a\n{{ b")
        lines = [f"Warning: in the {field}, “{{{{ {name}” {what}: the closing }}}} is missing." for name in "ab"]
        assert (result.exit_code, result.stderr.splitlines()) == (0, lines)
        assert len(result.stdout.splitlines()) == 1


def test_a_template_that_was_there_before_is_not_warned_of_again(service, owner):
    hook = service.alert()
    assert service.flask("alert", "set", OWNER, hook.id, "--title", "{{ a").stderr
    assert service.flask("alert", "set", OWNER, hook.id, "--frequency", "1d").stderr == ""


# --- alert rotate, alert delete -----------------------------------------------------------------------------


def test_a_rotated_address_stops_working_at_once_and_nothing_else_changes(service, owner):
    hook = service.alert("--title", "T", "--icon", "server")
    before, old = shown(service, hook), hook.url
    hook.url = printed(service.flask("alert", "rotate", OWNER, hook.id))
    assert service.client.post(old.removeprefix("http://127.0.0.1:8000"), json={}).status_code == 404
    assert shown(service, hook) == before | {"address": hook.url}
    assert rendered(owner, hook, {"message": "b"}) == ("MCP - T", "b")


def test_a_deleted_alert_is_gone_at_once_and_its_notifications_stay(service, owner):
    hook = service.alert()
    service.alert(name="Other")
    hook.post({"message": "a"})
    assert printed(service.flask("alert", "delete", OWNER, hook.id)) == "Deleted the alert Backups."
    assert hook.post({"message": "b"}).status_code == 404
    assert [alert["name"] for alert in owner.alerts()] == ["Other"]
    assert [row["body"] for row in owner.listed()] == ["a"]


# --- what is refused ----------------------------------------------------------------------------------------


@each("icon, near", [("bel", "bell"), ("harddrive", "hard-drive"), ("unicorn", None), ("x" * 100_000, None)])
def test_an_unknown_icon_is_refused_with_all_names_similar_ones_first(service, owner, icon, near):
    sentence, _, listed = said(service.flask("alert", "create", OWNER, "Backups", "--icon", icon)).partition(
        " The icons are "
    )
    assert set(listed.removesuffix(".").split(", ")) == ICONS
    assert len(sentence) < 150 and (near in sentence if near else sentence.endswith('".'))
