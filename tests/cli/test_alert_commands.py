"""Alerts and quiet hours by command: templates, quiet hours, digests."""

import os
import re
from unittest.mock import ANY

import pytest

from core.icons import ICONS
from models import Alert
from store.database import EVERYBODY, transaction
from tests.support.accounts import OWNER, PRO
from tests.support.commands import printed, said
from tests.support.forks import Fork
from tests.support.rows import each
from tests.support.server import NO_FILE, finished

ADDRESS = re.compile(r"http://127\.0\.0\.1:8000/p/[0-9A-Za-z]{7}")
QUIET_NOW = "09:00-11:00"  # the clock of these tests stands at 10:00 UTC
NOT_UTF_8 = os.fsdecode(b"caf\xe9")  # as Python sees such an argument


def listed_ids(service, email=OWNER):
    result = service.flask("alert", "list", email)
    assert (result.exit_code, result.stderr) == (0, "")
    return [line.split()[0] for line in result.stdout.splitlines()]


def rendered(caller, hook, payload):
    """The title and the body of the notification that an event makes."""
    answer = hook.post(payload)
    assert answer.status_code == 200
    newest = caller.listed()[0]
    assert newest["id"] == answer.json["notificationId"]
    return newest["title"], newest["body"]


def status(hook):
    answer = hook.post({"message": "a"})
    assert answer.status_code == 200
    return answer.json["status"]


# --- alert create -------------------------------------------------------------------------------------------


def test_alert_create_prints_the_webhook_address_alone(service, owner):
    assert ADDRESS.fullmatch(printed(service.flask("alert", "create", OWNER, "Backups")))


def test_the_address_begins_with_base_url(make_service, moved_clock):
    service = make_service(BASE_URL="https://bell.example.org")
    service.account()
    line = printed(service.flask("alert", "create", OWNER, "Backups"))
    assert re.fullmatch(r"https://bell\.example\.org/p/[0-9A-Za-z]{7}", line)


def test_a_created_alert_is_there_at_once_with_the_defaults(service, owner, moved_clock):
    service.alert()
    answer = owner.get("/alerts")
    assert answer.json == {
        "ok": True,
        "alerts": [
            {
                "id": ANY,
                "name": "Backups",
                "icon": "bell",
                "color": "#3B82F6",
                "isActive": True,
                "notificationCount": 0,
                "lastTriggeredAt": None,
                "createdAt": moved_clock.ms,
            }
        ],
    }
    assert owner.get("/stats").json["stats"]["alertsCount"] == 1


def test_a_created_alerts_address_works_at_once(service, owner):
    assert rendered(owner, service.alert(), {"message": "done"}) == ("MCP - Backups", "done")


def test_two_alerts_of_the_same_name_have_addresses_of_their_own(service, owner):
    assert service.alert().code != service.alert().code
    assert len(set(listed_ids(service))) == 2


def test_icon_and_color_are_those_that_were_named(service, owner):
    service.alert("--icon", "server", "--color", "#FF0000")
    assert [(alert["icon"], alert["color"]) for alert in owner.alerts()] == [("server", "#FF0000")]


def test_title_and_body_are_templates(service, owner):
    hook = service.alert("--title", "{{ host }} is down", "--body", "since {{ since.hour }} h")
    assert rendered(owner, hook, {"host": "db1", "since": {"hour": 7}}) == ("MCP - db1 is down", "since 7 h")


@pytest.mark.parametrize(
    "frequency, expected", [("instant", "delivered"), ("15m", "held"), ("1h", "held"), ("1d", "held")]
)
def test_each_frequency_is_taken(service, owner, frequency, expected):
    assert status(service.alert("--frequency", frequency)) == expected


@pytest.mark.parametrize("options, expected", [((), "held"), (("--ignore-quiet-hours",), "delivered")])
def test_an_alert_follows_quiet_hours_unless_told_to_ignore_them(service, owner, options, expected):
    printed(service.flask("account", "set", OWNER, "--quiet-hours", QUIET_NOW))
    assert status(service.alert(*options)) == expected


def test_all_options_at_once_are_taken(service, owner):
    hook = service.alert(
        *("--title", "T {{ a }}", "--body", "B {{ b }}", "--icon", "server", "--color", "#00FF7F"),
        *("--frequency", "1h", "--ignore-quiet-hours"),
    )
    assert rendered(owner, hook, {"a": 1, "b": 2}) == ("MCP - T 1", "B 2")
    assert [(alert["icon"], alert["color"]) for alert in owner.alerts()] == [("server", "#00FF7F")]


@pytest.mark.parametrize("name", ["漢字 😀", "x" * 100, '100 % of "it\'s" <b>{{ name }}</b>'])
def test_a_name_may_have_any_letters(service, owner, name):
    hook = service.alert(name=name)
    assert [alert["name"] for alert in owner.alerts()] == [name]
    assert rendered(owner, hook, {"message": "a"})[0] == f"MCP - {name}"


@pytest.mark.parametrize("option, limit", [("--title", 1_000), ("--body", 10_000)])
def test_a_template_as_long_as_allowed_is_taken(service, owner, option, limit):
    service.alert(option, "漢" * limit)
    assert len(owner.alerts()) == 1


def test_text_that_is_no_placeholder_is_taken_as_it_is(service, owner):
    hook = service.alert()
    for text in ("{% if a %}", "{ lone", "}} {{", "{{", "{{ }}", "50 % | off", "a\nb"):
        hook.set("--body", text)
        assert rendered(owner, hook, {"a": 1})[1] == text


UNFILLED = {
    "{{ title": "the closing }} is missing.",
    "{{ title | truncate }}": "truncate takes a number of characters, as in truncate: 30.",
    "{{ title | default: nobody }}": 'a text in quotes must end it, as in default: b | default: "n/a".',
    "{% if title %}": "tags are not supported, only variables and filters.",
    "{{ }}": "the name of a variable is missing.",
}


@pytest.mark.parametrize("option, field", [("--title", "title"), ("--body", "body")])
@pytest.mark.parametrize("text", UNFILLED)
def test_what_a_template_never_fills_is_warned_of_and_saved(service, owner, option, field, text):
    hook = service.alert()
    made = service.flask("alert", "create", OWNER, "Backups", option, f"a {text}")
    changed = service.flask("alert", "set", OWNER, hook.id, option, f"a {text}")
    for result in (made, changed):
        (warning,) = result.stderr.splitlines()
        assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)
        assert warning == f"Warning: in the {field}, “{text}” will appear as written: {UNFILLED[text]}"
    assert f"a {text}" in " ".join(rendered(owner, hook, {"title": 1}))


def test_what_a_template_never_fills_is_warned_of_in_a_line_each(service, owner):
    result = service.flask("alert", "create", OWNER, "Backups", "--title", "{{ a\n{{ b", "--body", "{% x %}")
    assert [line.split("”")[0] for line in result.stderr.splitlines()] == [
        "Warning: in the title, “{{ a", "Warning: in the title, “{{ b", "Warning: in the body, “{% x %}",
    ]  # fmt: skip


def test_a_template_that_was_there_before_is_not_warned_of_again(service, owner):
    hook = service.alert()
    assert service.flask("alert", "set", OWNER, hook.id, "--title", "{{ a").stderr
    assert service.flask("alert", "set", OWNER, hook.id, "--frequency", "1d").stderr == ""


# --- alert list ---------------------------------------------------------------------------------------------


def test_alert_list_prints_a_line_for_each_alert_that_begins_with_its_id(service, owner):
    for name in ("One", "Two", "Three"):
        service.alert(name=name)
    assert listed_ids(service) == [alert["id"] for alert in owner.alerts()]


def test_alert_list_of_no_alerts_prints_nothing(service, owner):
    result = service.flask("alert", "list", OWNER)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_alert_list_shows_no_other_accounts_alerts(service, owner, pro):
    service.alert(email=PRO)
    assert (listed_ids(service), len(listed_ids(service, PRO))) == ([], 1)


def test_an_alert_name_with_control_characters_cannot_break_a_line(service, owner):
    for name in ["a\nb", "a\r\nb", "a\tb", "a\x1b[31mb", "a\u2028b", "a\x85b", "a\u202eb"]:
        service.flask("alert", "create", OWNER, name)
    shown = service.flask("alert", "list", OWNER).stdout
    assert [line.split()[0] for line in shown.splitlines()] == [alert["id"] for alert in owner.alerts()]
    assert shown.replace("\t", "").replace("\n", "").isprintable()


# --- alert set ----------------------------------------------------------------------------------------------


SET = [
    ("--title", "T"),
    ("--body", "B"),
    ("--icon", "server"),
    ("--color", "#00FF00"),
    ("--frequency", "1h"),
    ("--ignore-quiet-hours",),
    ("--follow-quiet-hours",),
    ("--active",),
    ("--inactive",),
]


def test_alert_set_prints_one_line(service, owner):
    alert_id = service.alert().id
    for options in [*SET, sum(SET[:6], ())]:
        printed(service.flask("alert", "set", OWNER, alert_id, *options))


@pytest.mark.parametrize(
    "options, changed",
    [
        (("--icon", "server"), {"icon": "server"}),
        (("--color", "#00FF00"), {"color": "#00FF00"}),
        (("--inactive",), {"isActive": False}),
        (("--active",), {"isActive": True}),
        (("--title", "T", "--frequency", "1d"), {}),
    ],
)
def test_alert_set_changes_only_what_is_named(service, owner, options, changed):
    hook = service.alert("--icon", "hard-drive", "--color", "#123456")
    hook.post({"message": "a"})
    (before,) = owner.alerts()
    hook.set(*options)
    assert owner.alerts() == [before | changed]


@pytest.mark.parametrize(
    "options, title, body",
    [
        (("--title", "new {{ title }}"), "MCP - new t", "b m"),
        (("--body", "new {{ message }}"), "MCP - a t", "new m"),
        (("--title", "x", "--body", "y"), "MCP - x", "y"),
        (("--title", ""), "MCP - t", "b m"),
        (("--body", ""), "MCP - a t", "m"),
        (("--title", "", "--body", ""), "MCP - t", "m"),
        (("--icon", "server"), "MCP - a t", "b m"),
    ],
)
def test_templates_are_changed_or_with_an_empty_text_removed(service, owner, options, title, body):
    hook = service.alert("--title", "a {{ title }}", "--body", "b {{ message }}")
    hook.set(*options)
    assert rendered(owner, hook, {"title": "t", "message": "m"}) == (title, body)


def test_a_removed_title_template_leaves_the_alerts_name(service, owner):
    hook = service.alert("--title", "T")
    hook.set("--title", "")
    assert rendered(owner, hook, {"message": "m"}) == ("MCP - Backups", "m")


@pytest.mark.parametrize(
    "before, after, expected",
    [
        ("instant", "15m", "held"),
        ("instant", "1h", "held"),
        ("instant", "1d", "held"),
        ("1d", "15m", "held"),
        ("1d", "instant", "delivered"),
    ],
)
def test_a_changed_frequency_counts_from_the_next_event(service, owner, before, after, expected):
    hook = service.alert("--frequency", before)
    hook.set("--frequency", after)
    assert status(hook) == expected


def test_an_alert_may_ignore_quiet_hours_and_follow_them_again(service, owner):
    printed(service.flask("account", "set", OWNER, "--quiet-hours", QUIET_NOW))
    hook = service.alert()
    hook.set("--ignore-quiet-hours")
    assert status(hook) == "delivered"
    hook.set("--follow-quiet-hours")
    assert status(hook) == "held"


def test_an_inactive_alert_records_nothing_until_it_is_active_again(service, owner):
    hook = service.alert()
    hook.set("--inactive")
    assert hook.post({"message": "a"}).json == {"ok": True, "status": "inactive"}
    hook.set("--active")
    assert status(hook) == "delivered"
    assert (len(owner.listed()), owner.alerts()[0]["notificationCount"]) == (1, 1)


def test_alert_set_keeps_the_webhook_address(service, owner):
    hook = service.alert()
    hook.set("--title", "T", "--inactive")
    hook.set("--active")
    assert status(hook) == "delivered"


# --- alert rotate, alert delete -----------------------------------------------------------------------------


def test_alert_rotate_prints_the_new_address_alone(service, owner):
    hook = service.alert()
    line = printed(service.flask("alert", "rotate", OWNER, hook.id))
    assert ADDRESS.fullmatch(line) and line != hook.url


def test_a_rotated_address_stops_working_at_once_and_the_new_one_works(service, owner):
    hook = service.alert()
    alert_id, old = hook.id, hook.url
    hook.url = printed(service.flask("alert", "rotate", OWNER, alert_id))
    assert status(hook) == "delivered"
    assert service.client.post(old.removeprefix("http://127.0.0.1:8000"), json={}).status_code == 404
    assert hook.id == alert_id


def test_rotating_changes_nothing_else(service, owner):
    hook = service.alert("--title", "T", "--icon", "server")
    hook.post({"message": "a"})
    before = owner.alerts()
    hook.url = printed(service.flask("alert", "rotate", OWNER, hook.id))
    assert owner.alerts() == before
    assert rendered(owner, hook, {"message": "b"}) == ("MCP - T", "b")


def test_alert_delete_prints_one_line(service, owner):
    printed(service.flask("alert", "delete", OWNER, service.alert().id))


def test_a_deleted_alert_is_gone_at_once_and_its_notifications_stay(service, owner):
    hook, other = service.alert(), service.alert(name="Other")
    hook.post({"message": "a"})
    printed(service.flask("alert", "delete", OWNER, hook.id))
    assert hook.post({"message": "b"}).status_code == 404
    assert [alert["name"] for alert in owner.alerts()] == ["Other"]
    assert listed_ids(service) == [other.id]
    assert [row["body"] for row in owner.listed()] == ["a"]
    stats = owner.get("/stats").json["stats"]
    assert (stats["alertsCount"], stats["totalNotificationsAllTime"]) == (1, 1)


def test_an_alert_cannot_be_deleted_twice(service, owner):
    alert_id = service.alert().id
    printed(service.flask("alert", "delete", OWNER, alert_id))
    said(service.flask("alert", "delete", OWNER, alert_id))


# --- what is refused ----------------------------------------------------------------------------------------


OF_AN_ACCOUNT = [
    ("alert", "create", "EMAIL", "Backups"),
    ("alert", "list", "EMAIL"),
    ("alert", "set", "EMAIL", "id", "--inactive"),
    ("alert", "rotate", "EMAIL", "id"),
    ("alert", "delete", "EMAIL", "id"),
    ("account", "set", "EMAIL", "--quiet-hours", "22:00-07:00"),
]
OF_AN_ALERT = [("set", "--inactive"), ("set", "--title", "T"), ("rotate",), ("delete",)]


@pytest.mark.parametrize("command", OF_AN_ACCOUNT, ids=[" ".join(command[:2]) for command in OF_AN_ACCOUNT])
def test_an_unknown_account_is_an_error_in_one_line(service, owner, command):
    for email in ("nobody@example.org", "a\nb@example.org", NOT_UTF_8):
        said(service.flask(*(email if part == "EMAIL" else part for part in command)))


@pytest.mark.parametrize("command", OF_AN_ALERT, ids=[" ".join(command[:2]) for command in OF_AN_ALERT])
def test_an_unknown_alert_is_an_error_in_one_line(service, owner, command):
    hook = service.alert()
    for unknown in ("x", "", "a\nb", "%", "a" * 10_000, "a\x00b", NOT_UTF_8):
        said(service.flask("alert", command[0], OWNER, unknown, *command[1:]))
    assert rendered(owner, hook, {"message": "a"}) == ("MCP - Backups", "a")


@pytest.mark.parametrize("command", OF_AN_ALERT, ids=[" ".join(command[:2]) for command in OF_AN_ALERT])
def test_another_accounts_alert_is_as_one_that_does_not_exist(service, owner, pro, command):
    hook = service.alert(email=PRO)
    unknown = "f" * len(hook.id)
    theirs = said(service.flask("alert", command[0], OWNER, hook.id, *command[1:]))
    assert theirs.replace(hook.id, unknown) == said(service.flask("alert", command[0], OWNER, unknown, *command[1:]))
    assert rendered(pro, hook, {"message": "a"}) == ("MCP - Backups", "a")


def test_a_webhook_code_is_no_alert_id(service, owner):
    hook = service.alert()
    said(service.flask("alert", "rotate", OWNER, hook.code))
    assert status(hook) == "delivered"


WRONG_OPTIONS = [
    *(("--color", color) for color in ("red", "#FFF", "#GGGGGG", "3B82F6", "#3B82F6FF", "#3B82F", "#3B82F6\n")),
    *(("--color", color) for color in (" #3B82F6", "#３B82F6", "#3B 2F6", "#+B82F6", "#3B82F\x00", NOT_UTF_8)),
    ("--title", "t" * 1_001),
    ("--body", "b" * 10_001),
    *((option, text) for option in ("--title", "--body", "--icon") for text in ("a\x00b", "a\ud800b", NOT_UTF_8)),
    *((option, "{{ name | shout }}") for option in ("--title", "--body")),
    *(("--icon", icon) for icon in ("no-such-icon", "Bell", "hdd", "", " bell")),
]


@pytest.mark.parametrize("options", WRONG_OPTIONS, ids=range(len(WRONG_OPTIONS)))
def test_a_wrong_option_is_an_error_in_one_line_and_nothing_beside_it_is_done(service, owner, options):
    hook = service.alert("--title", "T", "--body", "B")
    before = owner.alerts()
    said(service.flask("alert", "create", OWNER, "Backups", *options))
    said(service.flask("alert", "set", OWNER, hook.id, "--inactive", "--frequency", "1d", *options))
    assert owner.alerts() == before
    assert rendered(owner, hook, {"message": "a"}) == ("MCP - T", "B")
    assert owner.listed()[0]["status"] == "delivered"


@pytest.mark.parametrize("name", ["a\x00b", "a\ud800b", NOT_UTF_8], ids=range(3))
def test_a_name_that_cannot_be_stored_is_an_error_in_one_line(service, owner, name):
    said(service.flask("alert", "create", OWNER, name))
    assert owner.alerts() == []


@pytest.mark.parametrize(
    "template", ["{{ name | shout }}", "a {{ b | upcase | shout }} c", '{{a|shout: "x"}}', "{{ a }} {{ b | shout }}"]
)
def test_an_unknown_filter_is_named(service, owner, template):
    for option in ("--title", "--body"):
        assert "shout" in said(service.flask("alert", "create", OWNER, "Backups", option, template))


@each("icon, near", [("bel", "bell"), ("harddrive", "hard-drive"), ("unicorn", None), ("x" * 100_000, None)])
def test_an_unknown_icon_is_refused_with_all_names_and_first_those_like_it(service, owner, icon, near):
    sentence, _, listed = said(service.flask("alert", "create", OWNER, "Backups", "--icon", icon)).partition(
        " The icons are "
    )
    assert set(listed.removesuffix(".").split(", ")) == ICONS
    assert len(sentence) < 150 and (near in sentence if near else sentence.endswith('".'))


def test_an_alert_keeps_the_icon_that_it_has_though_there_is_none_of_that_name(service, owner):
    hook = service.alert()
    with transaction(EVERYBODY):
        Alert.update(icon="no-such-icon").execute()
    hook.set("--icon", "no-such-icon", "--color", "#123456")
    assert [(one["icon"], one["color"]) for one in owner.alerts()] == [("no-such-icon", "#123456")]
    said(service.flask("alert", "set", OWNER, hook.id, "--icon", "another-one"))


WRONG_USAGE = [
    ("create", OWNER),
    ("create", OWNER, "Backups", "--frequency", "2h"),
    ("create", OWNER, "Backups", "--frequency", ""),
    ("create", OWNER, "Backups", "--frequency", "daily"),
    ("create", OWNER, "Backups", "--nonsense"),
    ("create", OWNER, "Backups", "extra"),
    ("list",),
    ("set", OWNER),
    ("set", OWNER, "id", "--frequency", "2h"),
    ("set", OWNER, "id", "--title"),
    ("rotate", OWNER),
    ("delete", OWNER),
]


def test_wrong_usage_ends_with_status_2_and_prints_nothing_on_stdout(service, owner):
    for command in WRONG_USAGE:
        result = service.flask("alert", *command)
        assert (result.exit_code, result.stdout) == (2, ""), command
        assert "Traceback" not in result.stderr


# --- account set --quiet-hours, --timezone ------------------------------------------------------------------


@pytest.mark.parametrize("window", ["22:00-07:00", "00:00-23:59", "off"])
def test_account_set_prints_one_line(service, owner, window):
    printed(service.flask("account", "set", OWNER, "--quiet-hours", window))


def test_quiet_hours_hold_from_the_next_event_on_until_they_are_off(service, owner):
    hook = service.alert()
    assert status(hook) == "delivered"
    printed(service.flask("account", "set", OWNER, "--quiet-hours", QUIET_NOW))
    assert status(hook) == "held"
    printed(service.flask("account", "set", OWNER, "--quiet-hours", "12:00-13:00"))
    assert status(hook) == "delivered"
    printed(service.flask("account", "set", OWNER, "--quiet-hours", QUIET_NOW))
    printed(service.flask("account", "set", OWNER, "--quiet-hours", "off"))
    assert status(hook) == "delivered"


@pytest.mark.parametrize("options", [("--plan", "pro"), ("--timezone", "Atlantic/Reykjavik")])
def test_quiet_hours_stay_when_something_else_is_set(service, owner, options):
    printed(service.flask("account", "set", OWNER, "--quiet-hours", QUIET_NOW))
    printed(service.flask("account", "set", OWNER, *options))
    assert status(service.alert()) == "held"


@pytest.mark.parametrize("zone, expected", [("Asia/Kathmandu", "delivered"), ("Africa/Abidjan", "held")])
def test_a_changed_time_zone_moves_quiet_hours_at_once(service, owner, zone, expected):
    printed(service.flask("account", "set", OWNER, "--quiet-hours", QUIET_NOW))
    printed(service.flask("account", "set", OWNER, "--timezone", zone))
    assert status(service.alert()) == expected


def test_quiet_hours_and_time_zone_can_be_set_together(service, owner):
    printed(service.flask("account", "set", OWNER, "--quiet-hours", "15:40-15:50", "--timezone", "Asia/Kathmandu"))
    assert status(service.alert()) == "held"


def test_quiet_hours_are_those_of_the_named_account(service, owner, pro):
    printed(service.flask("account", "set", PRO, "--quiet-hours", QUIET_NOW))
    assert (status(service.alert()), status(service.alert(email=PRO))) == ("delivered", "held")


WRONG_QUIET_HOURS = [
    *("", "on", "22:00", "7:00-8:00", "24:00-07:00", "22:60-07:00", "22:00-22:00", "22:00-07:00 ", "22:00–07:00"),
    *("22:00-07:00\n", "a\nb", "22:00-07:0\x00", NOT_UTF_8, "9" * 10_000),
]


def test_wrong_quiet_hours_are_an_error_in_one_line_and_change_nothing(service, owner):
    printed(service.flask("account", "set", OWNER, "--quiet-hours", QUIET_NOW))
    for window in WRONG_QUIET_HOURS:
        said(service.flask("account", "set", OWNER, "--plan", "pro", "--quiet-hours", window))
    assert owner.get("/stats").json["stats"]["plan"] == "starter"
    assert status(service.alert()) == "held"


def test_a_wrong_time_zone_changes_no_quiet_hours_beside_it(service, owner):
    said(service.flask("account", "set", OWNER, "--quiet-hours", QUIET_NOW, "--timezone", "Mars/Olympus"))
    assert status(service.alert()) == "delivered"


# --- in a process of its own --------------------------------------------------------------------------------


def test_a_command_in_another_process_takes_effect_at_once(service, owner):
    def elsewhere(*args):
        environ = {
            **NO_FILE,
            "DATA_DIR": str(service.data_dir),
            **service.where,
        }
        done = finished(Fork, ["flask", *args], environ)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode().strip()

    hook = service.alert()
    assert status(hook) == "delivered"
    new = elsewhere("alert", "rotate", OWNER, hook.id)
    assert hook.post({"message": "a"}).status_code == 404
    hook.url = new
    assert status(hook) == "delivered"
    elsewhere("account", "set", OWNER, "--quiet-hours", QUIET_NOW)
    assert status(hook) == "held"
