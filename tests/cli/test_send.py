"""`flask send` and `flask device set`."""

import json

import pytest

from tests.support.accounts import OWNER, account_set
from tests.support.rows import each
from tests.support.times import utc


@pytest.fixture
def send(service, owner):
    return lambda *args, stdin=None: service.flask("send", OWNER, *args, stdin=stdin)


@pytest.fixture
def browser(service, owner, push_service):
    browser = push_service.browser()
    result = service.flask("device", "add", OWNER, "webpush", json.dumps(browser.subscription))
    browser.id = result.output.strip()
    return browser


def test_a_notification_is_sent_and_its_id_and_status_are_printed(owner, send, browser):
    result = send("Backup", "finished")
    (listed,) = owner.listed()
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{listed['id']}\tdelivered\n", "")
    assert (listed["title"], listed["body"]) == ("MCP - Backup", "finished")
    assert browser.messages[0]["notification"]["body"] == "finished"


@pytest.mark.parametrize("priority, number", [("4", 4), ("high", 4), ("1", 1), ("urgent", 5)])
def test_send_has_an_option_for_every_field(owner, send, priority, number):
    result = send("t", "b", "--priority", priority, "--url", "https://example.org/x", "--tag", "disk")
    assert result.exit_code == 0, result.output
    (listed,) = owner.listed()
    assert {name: listed[name] for name in ("priority", "url", "tag")} == {
        "priority": number,
        "url": "https://example.org/x",
        "tag": "disk",
    }


def test_send_repeats_until_acknowledged(owner, send):
    assert send("t", "b", "--acknowledge").exit_code == 0
    (listed,) = owner.listed()
    assert (listed["acknowledge"], listed["priority"]) == ({"everyS": 60, "forS": 3600}, 5)


@pytest.mark.parametrize(
    "typed, at",
    [
        ("2026-11-22T07:00", "2026-11-22T06:00"),  # of the account's time zone
        ("2026-11-22 07:00:30", "2026-11-22T06:00:30"),
        ("2026-11-22T07:00+00:00", "2026-11-22T07:00"),
        ("1795330800", "2026-11-22T07:00"),
        ("1795330800000", "2026-11-22T07:00"),
    ],
)
def test_send_can_be_scheduled(owner, send, browser, typed, at):
    account_set("--timezone", "Europe/Berlin")
    result = send("t", "b", "--deliver-at", typed)
    (listed,) = owner.listed()
    assert (result.stdout, listed["deliverAt"]) == (f"{listed['id']}\theld\n", utc(at))
    assert browser.pushes == []


@each("piped, body", [("one\ntwo\n", "one\ntwo"), ("é\r\n", "é"), ("b" * 10_000 + "\n", "b" * 10_000)])
def test_without_a_body_it_is_read_from_standard_input(owner, send, piped, body):
    assert send("t", stdin=piped).exit_code == 0
    assert owner.listed()[0]["body"] == body


@each(
    "args, stdin, sentence",
    [
        (("", "b"), None, "title must not be blank"),
        (("t", " "), None, "body must not be blank"),
        (("t",), "", "body must not be blank"),
        (("t",), "é" * 10_001, "body is 10001 characters long"),
        (("t",), "é" * (2 << 20), "body is 1048576 characters long"),
        (("t",), b"\xff\xfe", "The body on standard input is not UTF-8."),
        (("t", "b", "--url", "javascript:alert(1)"), None, "url must be an address"),
        (("t", "b", "--tag", "t" * 65), None, "tag must have 1 to 64 characters"),
        (("t", "b", "--tag", ""), None, "tag must have 1 to 64 characters"),
        (("t", "b", "--deliver-at", "tomorrow"), None, '"tomorrow" is no time: write it like 2026-11-21T07:00'),
        (("t", "b", "--deliver-at", "9" * 30), None, "is no time"),
        (("t", "b", "--deliver-at", "9" * 20), None, "is no time"),
        (("t", "b", "--deliver-at", ""), None, '"" is no time'),
        (("t", "b", "--deliver-at", "2026-11-20"), None, "deliverAt must be in the future."),
    ],
)
def test_a_wrong_option_is_one_line_on_stderr(owner, send, args, stdin, sentence):
    result = send(*args, stdin=stdin)
    assert (result.exit_code, result.stdout) == (1, "")
    assert sentence in result.stderr and result.stderr.count("\n") == 1
    assert owner.listed() == []


@each("priority", ["0", "6", "max", "", "４"])
def test_a_wrong_priority_is_a_wrong_usage(owner, send, priority):
    assert send("t", "b", "--priority", priority).exit_code == 2
    assert owner.listed() == []


def test_a_device_that_fails_leaves_it_pending(owner, send, browser):
    browser.then(503)
    assert send("t", "b").stdout.endswith("\tpending\n")


def test_a_device_is_given_its_least_priority(service, owner, send, browser):
    result = service.flask("device", "set", OWNER, browser.id, "--min-priority", "high")
    assert (result.exit_code, result.stdout) == (0, "Web Push: priority 4 and higher, no quiet hours.\n")
    send("t", "b")
    send("t", "b", "--priority", "5")
    assert len(browser.pushes) == 1
    assert owner.get("/devices").json["devices"][0]["minPriority"] == 4
    assert service.flask("device", "set", OWNER, browser.id, "--min-priority", "1").exit_code == 0
    assert "minPriority" not in owner.get("/devices").json["devices"][0]


def test_a_device_is_given_quiet_hours(service, owner, send, browser):
    result = service.flask("device", "set", OWNER, browser.id, "--quiet-hours", "sa 09:00-11:00")
    assert (result.exit_code, result.stdout) == (0, "Web Push: priority 1 and higher, quiet hours sa 09:00-11:00.\n")
    send("t", "b")
    assert browser.pushes == []
    assert service.flask("device", "set", OWNER, browser.id, "--quiet-hours", "22-7").exit_code == 1
    assert service.flask("device", "set", OWNER, browser.id, "--quiet-hours", "off").exit_code == 0
    assert "quietHours" not in owner.get("/devices").json["devices"][0]
