"""Alert webhooks: an event becomes a notification, short codes, the order of checks, secrets."""

import io
import json
import re
from unittest.mock import ANY
from urllib.parse import urlencode

from core import floods
from store import senders
from tests.support.answers import FORM, error, refusal
from tests.support.rows import each
from tests.support.service import last
from tests.support.tables import NO_SUCH_TABLE, alter
from tests.support.webhooks import (
    INACTIVE,
    OTHER_SENDER,
    SENDER,
    UNKNOWN,
    answered,
    ask,
    assert_limited,
    at_once,
    burst,
    guess,
    rotated,
    the_alert,
    whole,
)

# An event becomes a notification


def test_an_event_is_answered_with_its_status_and_id_and_listed_in_the_history(owner, hook, moved_clock):
    answer = hook.post({"title": "Disk", "message": "root at 98 %"})
    assert answered(answer) == (200, {"ok": True, "status": "delivered", "notificationId": ANY})
    assert answer.content_type == "application/json"
    assert owner.listed() == [
        {
            "id": answer.json["notificationId"],
            "title": "MCP - Disk",
            "body": "root at 98 %",
            "status": "delivered",
            "createdAt": moved_clock.ms,
        }
    ]


@each("provider_answers, status", [(503, "pending"), (410, "failed")])
def test_an_event_that_no_device_took_is_answered_200_with_its_status(owner, hook, browser, provider_answers, status):
    browser.then(provider_answers)
    answer = hook.post({"title": "Disk"})
    assert answered(answer) == (200, {"ok": True, "status": status, "notificationId": ANY})
    newest = owner.listed()[0]
    assert (newest["id"], newest["status"]) == (answer.json["notificationId"], status)


def test_an_alert_counts_its_notifications_and_knows_when_the_last_was_made(owner, hook, moved_clock):
    before = the_alert(owner)
    assert (before["notificationCount"], before["lastTriggeredAt"]) == (0, None)
    for seconds in (1, 60, 3_600):
        moved_clock.advance(seconds)
        hook.post({})
    triggered_at = moved_clock.ms
    moved_clock.advance(5)
    assert the_alert(owner) == before | {"notificationCount": 3, "lastTriggeredAt": triggered_at}


def test_threads_that_post_at_once_are_all_counted(service, owner, hook):
    answers = at_once(8, lambda: [service.app.test_client().post(hook.url, json={}).status_code for _ in range(3)])
    assert answers == [[200] * 3] * 8
    assert the_alert(owner)["notificationCount"] == len(owner.listed()) == 24


def test_events_do_not_count_against_the_rest_quota(owner, hook):
    hook.post({})
    assert owner.get("/stats").headers["X-RateLimit-Remaining"] == "99"


@each("header", ["Bearer nonsense", "Basic eDp5", ""])
def test_no_authorization_header_is_used(hook, header):
    assert hook.post({}, headers={"Authorization": header}).status_code == 200


def test_a_query_beside_a_body_changes_nothing(service, owner, hook):
    for data in (b'{"title": "t", "text": "m"}', b"title=t&text=m"):
        assert ask(service, f"{hook.code}?title=query&message=query", data=data, headers=FORM).status_code == 200
        assert last(owner) == ("t", "m")


# The short code


def test_a_short_code_is_7_letters_or_digits_and_another_for_every_alert(service, owner):
    urls = [service.alert(name=f"Alert {number}").url for number in range(20)]
    codes = {re.fullmatch(r"http://127\.0\.0\.1:8000/p/([0-9A-Za-z]{7})", url)[1] for url in urls}
    assert len(codes) == 20


MALFORMED = [
    *["", "a", "abcdef", "abcdefgh", "a" * 5_000, "abcdef-", "abcdef_", "abcdef.", "abcdef~", "abc def", "abcdef+"],
    *["/", "abc/efg", "abcdefg/", "/abcdefg", "abcdefg/abcdefg", "abcdefg/x", "./abcdefg", "/{code}"],
    *["{code}/{code}", "{code}/x", "{code}.", "{code}x", "x{code}", "{code}//", "..{code}", ";{code}", "{code};x"],
    *[
        *("%00", "abcdef%00", "{code}%00", "{code}%0A", "{code}%0D", "{code}%20", "%20{code}", "{code}%2F%2F"),
        *("%2F{code}",),
    ],
    *["abcdef%2F", "%ff", "abcdef%ff", "abcdef%C3", "abcdef%C3%A9", "😀", "１２３４５６７", "٠١٢٣٤٥٦", "äbcdefg"],
    *["abcdef%25", "%2e%2e", "{code}%3Fx", "{code}%23", "{code}%EF%BB%BF", "<script>", "'or1=1'", "sk_test", "null"],
]


def test_a_malformed_code_is_404_like_an_unknown_one_byte_for_byte(service, hook, moved_clock):
    unknown = ask(service, UNKNOWN)
    assert answered(unknown) == (404, error(404, "NOT_FOUND"))
    assert unknown.content_type == "application/json"
    for path in MALFORMED:
        moved_clock.advance(2)  # a sender may ask for 60 unknown ones a minute
        assert whole(ask(service, path.format(code=hook.code))) == whole(unknown), path


@each("change", [str.swapcase, lambda code: code[::-1], lambda code: code[1:] + code[:1]])
def test_a_code_that_is_nearly_right_is_404(service, owner, hook, change):
    assert whole(ask(service, change(hook.code))) == whole(ask(service, UNKNOWN))
    assert owner.listed() == []


def test_a_malformed_code_is_404_without_touching_storage(service, hook):
    alter(service, "DROP TABLE alert")
    assert ask(service, UNKNOWN).status_code == 500
    for path in ("", "abcdef", "abcdefgh", "abc/efg", "abcdef%00", "{code}//"):
        assert answered(ask(service, path.format(code=hook.code))) == (404, error(404, "NOT_FOUND")), path


def test_a_rotated_code_stops_at_once_and_the_new_one_works(service, owner, hook):
    for count in (1, 2):  # before the second rotation there was an event
        old, hook = hook, rotated(hook)
        assert re.fullmatch(r"http://127\.0\.0\.1:8000/p/[0-9A-Za-z]{7}", hook.url) and old.code != hook.code
        assert whole(old.post({})) == whole(ask(service, UNKNOWN))
        assert answered(hook.post({})) == (200, {"ok": True, "status": "delivered", "notificationId": ANY})
        assert the_alert(owner)["notificationCount"] == len(owner.listed()) == count


def test_rotation_gives_no_fresh_60(hook, few):
    burst(hook, 6)
    assert_limited(rotated(hook).post({}))


def test_a_deleted_alerts_code_is_404_at_once(service, owner, hook):
    hook.post({})
    for one in (hook, service.alert(name="without an event")):
        assert service.flask("alert", "delete", one.email, one.id).exit_code == 0
        assert whole(one.post({})) == whole(ask(service, UNKNOWN))
    assert owner.get("/alerts").json == {"ok": True, "alerts": []}


@each("method", ["PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_405_and_told_the_right_ones(service, owner, hook, method):
    answer = ask(service, hook.code, method=method)
    assert refusal(answer, 405) == "This address takes only GET, HEAD, POST and PUT."
    assert answer.headers["Allow"] == "GET, HEAD, POST, PUT"  # in this order, whatever process answers
    assert owner.listed() == []


@each("method", ["GET", "POST", "PUT"])
def test_get_put_and_a_trailing_slash_work_like_post(service, owner, hook, method):
    for path in (hook.code, f"{hook.code}/"):
        assert ask(service, path, method=method, data=b'{"title": "t", "message": "m"}').status_code == 200
        assert last(owner) == ("t", "m")
    assert ask(service, f"{UNKNOWN}/", method=method).status_code == 404


def test_head_is_200_and_records_nothing(service, owner, hook, few):
    for path in (hook.code, f"{hook.code}/", f"{hook.code}?title=t"):
        answer = ask(service, path, method="HEAD", data=None)
        assert (answer.status_code, answer.data) == (200, b"")
    assert (owner.listed(), the_alert(owner)["notificationCount"]) == ([], 0)
    assert ask(service, UNKNOWN, method="HEAD", data=None).status_code == 404
    assert [ask(service, hook.code, method="HEAD", data=None).status_code for _ in range(4)] == [200] * 3 + [429]


BROWSERS = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
    "text/html",
    "text/html, application/json;q=0.9",
)
PROGRAMS = (None, "*/*", "application/json", "application/json, text/html;q=0.5", "text/*;q=0.1, */*", "nonsense")


@each("accept", BROWSERS)
def test_a_browser_gets_a_page_that_explains_the_address(service, owner, hook, accept):
    page = ask(service, hook.code, method="GET", data=None, headers={"Accept": accept})
    assert (page.status_code, page.mimetype) == (400, "text/html")
    assert "is for programs" in page.text and "curl" in page.text and hook.code not in page.text
    assert page.headers["Content-Security-Policy"] and page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"  # the address is a secret
    assert owner.listed() == []


def test_an_event_is_not_answered_with_a_page(service, hook):
    for accept in PROGRAMS:
        headers = {"Accept": accept} if accept else None
        refusal(ask(service, hook.code, method="GET", data=None, headers=headers))
    for method in ("POST", "PUT"):
        refusal(ask(service, hook.code, method=method, data=b"", headers={"Accept": "text/html"}))
    unknown = ask(service, UNKNOWN, method="GET", data=None, headers={"Accept": "text/html"})
    assert whole(unknown) == whole(ask(service, UNKNOWN))


WRONG_BODIES = [b"{not JSON", b"[", b"", b" " * 1_100_000]


def test_404_comes_before_the_global_cap_and_errors_of_the_body(capped):
    assert burst(capped, 4) == [400, 400, 400, 429]
    for path in ("abcdef", "/abc", UNKNOWN):
        for data in (b"{}", *WRONG_BODIES):
            assert answered(ask(capped.service, path, data=data)) == (404, error(404, "NOT_FOUND")), path


def test_the_sender_comes_before_inactive_and_the_body(service, hook, few):
    hook.set("--inactive")
    guess(service, 6)
    for data in WRONG_BODIES:
        assert_limited(hook.post(data=data))


def test_a_request_refused_for_its_sender_does_not_count_for_the_alert(service, hook, few):
    guess(service, 6)
    assert burst(hook, 7) == [429] * 7
    assert [hook.post(data=b"{", address=OTHER_SENDER).status_code for _ in range(7)] == [400] * 6 + [429]


def test_60_a_minute_comes_before_inactive_and_the_body(hook, few):
    burst(hook, 6)
    hook.set("--inactive")
    for data in (b"{}", *WRONG_BODIES):
        assert_limited(hook.post(data=data))


def test_the_global_cap_comes_before_inactive_and_the_body(capped):
    burst(capped, 3)
    capped.set("--inactive")
    for data in (b"{}", *WRONG_BODIES):
        assert_limited(capped.post(data=data))


def test_inactive_comes_before_errors_of_the_body(hook):
    hook.set("--inactive")
    for data in WRONG_BODIES:
        assert answered(hook.post(data=data)) == INACTIVE


# Inactive


def test_an_inactive_alert_answers_200_and_records_nothing(owner, hook, browser):
    hook.post({})
    before = the_alert(owner)
    hook.set("--inactive")
    assert answered(hook.post({"title": "t"})) == INACTIVE
    assert the_alert(owner) == before | {"isActive": False}
    assert (len(owner.listed()), len(browser.pushes)) == (1, 1)
    assert owner.get("/stats").json["stats"]["totalNotificationsAllTime"] == 1


# Never in a log or an answer


def test_an_event_that_cannot_be_written_is_500_and_leaves_nothing(service, owner, hook):
    alter(service, "CREATE TRIGGER full BEFORE INSERT ON notification BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    assert answered(hook.post({})) == (500, error(500, "INTERNAL_ERROR"))
    alter(service, "DROP TRIGGER full")
    alert = the_alert(owner)
    assert (alert["notificationCount"], alert["lastTriggeredAt"], owner.listed()) == (0, None, [])
    assert hook.post({}).status_code == 200


def test_the_most_talkative_log_holds_neither_a_code_nor_a_payload(
    service, owner, hook, browser, moved_clock, low, caplog
):
    event = {"title": "title-of-it", "message": "body-of-it", "nested": {"key-of-it": "value-of-it"}}
    with caplog.at_level("DEBUG"):
        browser.then(503)
        new = rotated(hook)
        hook.post(event)
        new.post(event)
        new.post(data=urlencode({"payload": json.dumps(event)}), headers=FORM)
        new.post(data=json.dumps(event)[:-1])
        new.post(data=json.dumps(event).ljust(1_100_000))
        ask(service, f"{new.code}/", data=json.dumps(event))
        ask(service, new.code, method="PUT", data=json.dumps(event))
        burst(new, 8, json.dumps(event))
        new.set("--active")
        moved_clock.advance(61)
        alter(service, "DROP TABLE notification")
        service.client.post(new.url, json=event)
        alter(service, "DROP TABLE alert")
        service.client.post(new.url, json=event)
    assert NO_SUCH_TABLE in caplog.text
    for secret in (hook.code, new.code, "title-of-it", "body-of-it", "key-of-it", "value-of-it"):
        assert secret not in caplog.text, secret


def test_no_answer_repeats_a_code(service, hook, few):
    hook.set("--inactive")
    answers = [hook.post({}), ask(service, hook.code, method="DELETE"), ask(service, f"{hook.code}x")]
    burst(hook, 6)
    answers += [hook.post({}), rotated(hook).post({}), hook.post({})]
    assert [answer.status_code for answer in answers] == [200, 405, 404, 429, 429, 404]
    assert not any(hook.code in answer.text + str(answer.headers) for answer in answers)


# --- events whose body comes long after their address -------------------------------------------------------


class LateBody(io.BytesIO):
    """A request body that arrives only after something else has happened."""

    def __init__(self, data, before):
        super().__init__(data)
        self.before = before

    def read(self, *size):
        self.before()
        return super().read(*size)


def post_late(hook, happens):
    """The answer to an event whose alert changed while its body was on the way."""
    data = b'{"title": "late"}'
    environ = {"wsgi.input": LateBody(data, happens), "CONTENT_LENGTH": str(len(data)), "REMOTE_ADDR": SENDER}
    return hook.service.client.post(f"/p/{hook.code}", environ_overrides=environ)


@each("command", ["rotate", "delete"])
def test_an_event_whose_code_is_void_before_its_body_has_come_is_404(service, owner, command):
    hook = service.alert()
    answer = post_late(hook, lambda alert=hook.id: service.flask("alert", command, hook.email, alert))
    assert answered(answer) == (404, error(404, "NOT_FOUND"))
    assert owner.listed() == []


def test_an_event_whose_alert_is_switched_off_before_its_body_has_come_is_not_recorded(service, owner):
    hook = service.alert()
    assert answered(post_late(hook, lambda: hook.set("--inactive"))) == INACTIVE
    assert owner.listed() == []


def test_an_event_whose_body_comes_in_quiet_hours_is_held(service, owner):
    hook = service.alert()
    quiet = ("account", "set", hook.email, "--quiet-hours", "00:00-23:59")
    assert post_late(hook, lambda: service.flask(*quiet)).json["status"] == "held"


# --- what else is malformed, or means nothing ---------------------------------------------------------------


@each("path", ["/abc", "ab%0Acd", "%2Fabcdefg", "/", "%0A", "abcdef", "abc/efg"])
def test_a_malformed_code_counts_against_its_sender_like_an_unknown_one(service, moved_clock, few, path):
    moved_clock.advance(61)
    assert [ask(service, path).status_code for _ in range(6)] == [404] * 6
    assert_limited(ask(service, path))
    assert_limited(ask(service, UNKNOWN))


def test_a_request_from_before_a_pause_does_not_pause_the_alert_that_was_switched_on_again(
    service, owner, moved_clock
):
    hook = service.alert()
    early = senders.find_webhook(hook.code)
    moved_clock.advance(1)
    hook.set("--inactive")
    hook.set("--active")
    floods.pause(early, 500)
    assert owner.get("/alerts").json["alerts"][0]["isActive"] is True
    assert owner.listed() == []
