"""Alerts' priority, link, tag, condition and quiet hours by command."""

import pytest

from core.template_filters import FILTERS
from models import Alert
from tests.support.accounts import OWNER
from tests.support.commands import lines_of, said
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
    """The settings as `flask alert show` prints them."""
    return dict(lines_of(service, "alert", "show", OWNER, hook.id))


def test_an_event_gets_priority_link_and_tag(service, owner):
    hook = service.alert(*FIELDS)
    hook.post({"message": "a", "level": "High", "id": "a/b", "key": "disk"})
    (row,) = owner.listed()
    assert (row["priority"], row["url"], row["tag"]) == (4, "https://x.example/a/b", "disk")


def test_an_event_that_says_resolved_replaces_what_has_its_tag(service, owner):
    hook = service.alert(*FIELDS)
    first = hook.post({"message": "a", "level": 5, "id": 1, "key": "disk"}).json["notificationId"]
    newest = hook.post({"message": "b", "level": 5, "id": 1, "key": "disk", "state": "ok"}).json["notificationId"]
    assert [row["priority"] for row in owner.listed()] == [2, 5]
    assert owner.get(f"/notifications/{first}").json["notification"]["replacedBy"] == newest
    assert [row.get("acknowledge") for row in owner.listed()] == [None, {"everyS": 60, "forS": 3_600}]


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
        "resolved-when": "state = ok",
        "repeat-urgent": "yes",
        "frequency": "1h",
        "quiet-hours": "urgent passes quiet hours",
        "icon": "bell",
        "color": "#3B82F6",
        "address": f"http://127.0.0.1:8000/p/{hook.code}",
    }


def test_set_changes_what_is_named_and_an_empty_text_removes_it(service, owner):
    hook = service.alert(*FIELDS)
    hook.set("--tag", "x", "--no-repeat-urgent")
    now = shown(service, hook)
    assert (now["tag"], now["repeat-urgent"], now["priority"]) == ("x", "no", "{{ level }}")
    hook.set("--priority", "", "--url", " ", "--tag", "", "--resolved-when", "")
    now = shown(service, hook)
    assert {now[name] for name in ("priority", "url", "tag", "resolved-when")} == {"-"}
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


REFUSED = [
    (("--resolved-when", "status"), "Write the condition like status = resolved: a path, an equals sign, a value."),
    (("--resolved-when", "a = " + "b" * 197), "The condition is 201 characters long: at most 200 are allowed."),
    (("--priority", "x" * 201), "The priority template is 201 characters long: at most 200 are allowed."),
    (("--url", "x" * 2_001), "The link template is 2001 characters long: at most 2000 are allowed."),
    (("--tag", "x" * 201), "The tag template is 201 characters long: at most 200 are allowed."),
    (("--tag", "{{ a | shout }}"), f'There is no filter "shout": the filters are {", ".join(FILTERS)}.'),
]


@each("options, sentence", REFUSED)
def test_a_wrong_setting_is_refused_with_a_sentence(service, owner, options, sentence):
    for command in (("create", OWNER, "A"), ("set", OWNER, service.alert().id)):
        assert said(service.flask("alert", *command, *options)) == f"Error: {sentence}"


@pytest.mark.parametrize("option, longest", [("--priority", 200), ("--url", 2_000), ("--tag", 200)])
def test_a_template_as_long_as_allowed_is_taken(service, owner, option, longest):
    service.alert(option, "漢" * longest)


@pytest.mark.parametrize("option, field", [("--priority", "priority"), ("--url", "url"), ("--tag", "tag")])
def test_what_a_template_never_fills_is_warned_of(service, owner, option, field):
    result = service.flask("alert", "create", OWNER, "A", option, "{{ a")
    assert result.stderr == f"Warning: in the {field}, “{{{{ a” is never filled: the closing }}}} is missing.\n"
