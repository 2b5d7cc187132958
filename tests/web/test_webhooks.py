"""The alert webhook: SPEC 3, 4.8, 6, 8; CONTRACT 4 (all but quiet hours, frequency and digest), 7."""

import io
import itertools
import json
import re
import sqlite3
import threading
from contextlib import closing
from unittest.mock import ANY
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import floods
from store import senders
from store.notifications import Notification

DAY_S = 86_400
SENDER, OTHER, PROXY = "203.0.113.7", "203.0.113.8", "127.0.0.1"
UNKNOWN = "0000000"
CODES = itertools.count(1)  # unknown ones, each asked for once
INACTIVE = (200, {"ok": True, "status": "inactive"})
AT = re.compile(r"\bline (\d+),? column (\d+)")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def error(status, code="VALIDATION_ERROR", sentence=ANY):
    return {"ok": False, "error": sentence, "code": code, "statusCode": status}


LIMITED = error(429, "RATE_LIMIT_EXCEEDED", "Rate limit exceeded")


def whole(answer):
    """Everything that a sender can tell answers apart by."""
    return answer.status_code, list(answer.headers), answer.data


def said(answer):
    return answer.status_code, answer.json


def refusal(answer, status=400):
    """The sentence of a refused request."""
    assert said(answer) == (status, error(status))
    assert type(answer.json["error"]) is str and answer.json["error"]
    return answer.json["error"]


def assert_limited(answer):
    assert said(answer) == (429, LIMITED)
    assert answer.headers["Retry-After"] == "60"


def ask(service, path, address=SENDER, method="POST", data=b"{}", headers=None):
    """A request to any path under /p/."""
    sender = {"REMOTE_ADDR": address}
    return service.client.open(f"/p/{path}", method=method, data=data, headers=headers, environ_overrides=sender)


def guess(service, count, address=SENDER, headers=None):
    """What an address that asks for so many unknown codes is answered; `headers` may depend on the number."""
    answers = [
        ask(service, f"{next(CODES):07}", address, headers=headers(number) if callable(headers) else headers)
        for number in range(count)
    ]
    return [answer.status_code for answer in answers]


def burst(hook, count, data=b"not JSON"):
    """What so many requests are answered; by default ones that record nothing."""
    return [hook.post(data=data).status_code for _ in range(count)]


def at_once(threads, ask_once):
    """The results of as many threads that begin together."""
    start, results = threading.Barrier(threads), []

    def one():
        start.wait()
        results.append(ask_once())

    running = [threading.Thread(target=one) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert len(results) == threads
    return results


def rotated(hook):
    """The alert with its new address."""
    result = hook.service.flask("alert", "rotate", hook.email, hook.id)
    assert result.exit_code == 0, result.output
    return type(hook)(hook.service, hook.email, result.output.strip())


def the_alert(caller):
    """The only alert of the account, as the API shows it."""
    (alert,) = caller.get("/alerts").json["alerts"]
    return alert


def last(caller):
    """Title without the prefix, and body, of the newest notification."""
    newest = caller.listed("?limit=1")[0]
    assert newest["title"].startswith("MCP - ")
    return newest["title"].removeprefix("MCP - "), newest["body"]


def run(service, statement):
    with closing(sqlite3.connect(service.settings.database)) as database, database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute(statement)


@pytest.fixture
def hook(service, owner):
    """An alert of the owner without templates."""
    return service.alert()


@pytest.fixture
def browser(push_service, owner):
    """The owner's only device."""
    browser = push_service.browser()
    owner.post("/devices", {"kind": "webpush", "subscription": browser.subscription})
    return browser


# An event becomes a notification


def test_an_event_is_answered_with_its_status_and_id_and_listed_in_the_history(owner, hook, moved_clock):
    answer = hook.post({"title": "Disk", "message": "root at 98 %"})
    assert said(answer) == (200, {"ok": True, "status": "delivered", "notificationId": ANY})
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


def test_an_event_is_pushed_to_the_owners_device(owner, hook, browser):
    answer = hook.post({"title": "Disk", "message": "root at 98 %"})
    assert said(answer) == (200, {"ok": True, "status": "delivered", "notificationId": ANY})
    (message,) = browser.messages
    shown = message["notification"]
    assert (shown["title"], shown["body"], shown["tag"]) == (
        "MCP - Disk",
        "root at 98 %",
        answer.json["notificationId"],
    )


@pytest.mark.parametrize("provider_answers, status", [(503, "pending"), (410, "failed")])
def test_an_event_that_no_device_took_is_answered_200_with_its_status(owner, hook, browser, provider_answers, status):
    browser.then(provider_answers)
    answer = hook.post({"title": "Disk"})
    assert said(answer) == (200, {"ok": True, "status": status, "notificationId": ANY})
    assert [(each["id"], each["status"]) for each in owner.listed()] == [(answer.json["notificationId"], status)]


def test_an_event_that_is_pending_is_delivered_by_a_retry(service, owner, hook, browser, moved_clock):
    browser.then(503)
    hook.post({"title": "Disk"})
    moved_clock.advance(30)
    service.work()
    assert owner.listed()[0]["status"] == "delivered"
    assert len(browser.messages) == 1


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
    answers = at_once(8, lambda: [service.app.test_client().post(hook.url, json={}).status_code for _ in range(5)])
    assert answers == [[200] * 5] * 8
    assert the_alert(owner)["notificationCount"] == len(owner.listed()) == 40


def test_events_are_counted_in_the_statistics(owner, hook):
    for _ in range(3):
        hook.post({})
    stats = owner.get("/stats").json["stats"]
    counted = [
        stats[name] for name in ("totalNotificationsAllTime", "notificationsThisMonth", "notificationsThisDay")
    ]
    assert (counted, stats["alertsCount"]) == ([3, 3, 3], 1)


def test_an_event_is_found_by_search(owner, hook):
    hook.post({"title": "Disk", "message": "root at 98 %"})
    hook.post({"title": "Fan"})
    assert [each["title"] for each in owner.listed("?search=98 %25")] == ["MCP - Disk"]


def test_an_event_belongs_to_the_alerts_owner_alone(owner, pro, hook):
    hook.post({})
    assert (len(owner.listed()), pro.listed()) == (1, [])


def test_events_do_not_count_against_the_rest_quota(owner, hook):
    burst(hook, 60)
    assert owner.get("/stats").headers["X-RateLimit-Remaining"] == "99"


@pytest.mark.parametrize("header", ["Bearer nonsense", "Basic eDp5", ""])
def test_no_authorization_header_is_used(hook, header):
    assert hook.post({}, headers={"Authorization": header}).status_code == 200


def test_a_query_changes_nothing(service, owner, hook):
    assert ask(service, f"{hook.code}?title=query&message=query", data=b'{"title": "t"}').status_code == 200
    assert last(owner) == ("t", '{"title":"t"}')


# The short code


def test_a_short_code_is_7_letters_or_digits_and_another_for_every_alert(service, owner):
    urls = [service.alert(name=f"Alert {number}").url for number in range(20)]
    codes = {re.fullmatch(r"http://127\.0\.0\.1:8000/p/([0-9A-Za-z]{7})", url)[1] for url in urls}
    assert len(codes) == 20


MALFORMED = [
    *["", "a", "abcdef", "abcdefgh", "a" * 5_000, "abcdef-", "abcdef_", "abcdef.", "abcdef~", "abc def", "abcdef+"],
    *["/", "abc/efg", "abcdefg/", "/abcdefg", "abcdefg/abcdefg", "abcdefg/x", "./abcdefg", "{code}/", "/{code}"],
    *["{code}/{code}", "{code}/x", "{code}.", "{code}x", "x{code}", "{code}//", "..{code}", ";{code}", "{code};x"],
    *["%00", "abcdef%00", "{code}%00", "{code}%0A", "{code}%0D", "{code}%20", "%20{code}", "{code}%2F", "%2F{code}"],
    *["abcdef%2F", "%ff", "abcdef%ff", "abcdef%C3", "abcdef%C3%A9", "😀", "１２３４５６７", "٠١٢٣٤٥٦", "äbcdefg"],
    *["abcdef%25", "%2e%2e", "{code}%3Fx", "{code}%23", "{code}%EF%BB%BF", "<script>", "'or1=1'", "sk_test", "null"],
]


@pytest.mark.parametrize("part", range(4))
def test_a_malformed_code_is_404_like_an_unknown_one_byte_for_byte(service, hook, part):
    unknown = ask(service, UNKNOWN)
    assert said(unknown) == (404, error(404, "NOT_FOUND"))
    assert unknown.content_type == "application/json"
    for path in MALFORMED[part::4]:
        assert whole(ask(service, path.format(code=hook.code))) == whole(unknown), path


def test_the_path_without_a_code_is_404_and_no_redirect(service):
    assert said(service.client.post("/p")) == (404, error(404, "NOT_FOUND"))


@pytest.mark.parametrize(
    "change",
    [str.swapcase, lambda code: code[::-1], lambda code: code[1:] + code[:1]],
    ids=["case", "turned", "moved"],
)
def test_a_code_that_is_nearly_right_is_404(service, owner, hook, change):
    assert whole(ask(service, change(hook.code))) == whole(ask(service, UNKNOWN))
    assert owner.listed() == []


def test_a_malformed_code_is_404_without_touching_storage(service, hook):
    run(service, "DROP TABLE alert")
    assert ask(service, UNKNOWN).status_code == 500
    for path in ("", "abcdef", "abcdefgh", "abc/efg", "abcdef%00", "{code}/"):
        assert said(ask(service, path.format(code=hook.code))) == (404, error(404, "NOT_FOUND")), path


@pytest.mark.parametrize("event_before", [False, True])
def test_a_rotated_code_stops_at_once_and_the_new_one_works(service, owner, hook, event_before):
    if event_before:
        hook.post({})
    new = rotated(hook)
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/p/[0-9A-Za-z]{7}", new.url) and new.code != hook.code
    assert whole(hook.post({})) == whole(ask(service, UNKNOWN))
    assert said(new.post({})) == (200, {"ok": True, "status": "delivered", "notificationId": ANY})
    assert the_alert(owner)["notificationCount"] == len(owner.listed()) == 1 + event_before


def test_rotation_gives_no_fresh_60(hook):
    burst(hook, 60)
    assert_limited(rotated(hook).post({}))


@pytest.mark.parametrize("event_before", [False, True])
def test_a_deleted_alerts_code_is_404_at_once(service, owner, hook, event_before):
    if event_before:
        hook.post({})
    assert service.flask("alert", "delete", hook.email, hook.id).exit_code == 0
    assert whole(hook.post({})) == whole(ask(service, UNKNOWN))
    assert owner.get("/alerts").json == {"ok": True, "alerts": []}


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_another_method_is_405_and_told_the_right_one(service, owner, hook, method):
    answer = ask(service, hook.code, method=method)
    assert refusal(answer, 405) == "This address takes only POST."
    assert {"POST"} <= {each.strip() for each in answer.headers["Allow"].split(",")} <= {"POST", "OPTIONS"}
    assert owner.listed() == []


BROWSERS = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
    "text/html",
    "text/html, application/json;q=0.9",
)
PROGRAMS = (None, "*/*", "application/json", "application/json, text/html;q=0.5", "text/*;q=0.1, */*", "nonsense")


@pytest.mark.parametrize("accept", BROWSERS)
def test_a_browser_is_told_what_the_address_is_and_nothing_of_whether_there_is_such_a_code(service, hook, accept):
    codes = (hook.code, UNKNOWN, "abc", "a/b", f"{hook.code}/", "%3Cb%3E")
    answers = [ask(service, code, method="GET", data=None, headers={"Accept": accept}) for code in codes]
    page = answers[0]
    assert (page.status_code, page.mimetype, page.headers["Allow"]) == (405, "text/html", "POST")
    assert "takes POST requests" in page.text and "curl" in page.text and hook.code not in page.text
    assert all(whole(answer) == whole(page) for answer in answers)
    assert page.headers["Content-Security-Policy"] and page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"  # the address is a secret
    head = ask(service, hook.code, method="HEAD", data=None, headers={"Accept": accept})
    assert (head.status_code, head.data) == (405, b"")


@pytest.mark.parametrize("accept", PROGRAMS)
def test_a_program_that_gets_an_address_is_refused_in_json(service, hook, accept):
    headers = {"Accept": accept} if accept else None
    refusal(ask(service, hook.code, method="GET", data=None, headers=headers), 405)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_only_looking_at_an_address_is_answered_with_a_page(service, hook, method):
    refusal(ask(service, hook.code, method=method, headers={"Accept": "text/html"}), 405)


# Order of checks: malformed; look-up and sender; 60 a minute; global cap; inactive; 413 and 400

WRONG_BODIES = [b"not JSON", b"[]", b"", b" " * 1_100_000]


@pytest.mark.parametrize("path", ["abcdef", UNKNOWN])
def test_404_comes_before_what_is_wrong_with_the_body(service, path):
    for data in WRONG_BODIES:
        assert said(ask(service, path, data=data)) == (404, error(404, "NOT_FOUND"))


@pytest.mark.parametrize("path", ["abcdef", UNKNOWN])
def test_404_comes_before_the_global_cap(capped, path):
    assert burst(capped, 4) == [400, 400, 400, 429]
    assert said(ask(capped.service, path)) == (404, error(404, "NOT_FOUND"))


def test_the_sender_comes_before_inactive_and_the_body(service, hook):
    hook.set("--inactive")
    guess(service, 60)
    for data in WRONG_BODIES:
        assert_limited(hook.post(data=data))


def test_a_request_refused_for_its_sender_does_not_count_for_the_alert(service, hook):
    guess(service, 60)
    assert burst(hook, 70) == [429] * 70
    assert [hook.post(data=b"x", address=OTHER).status_code for _ in range(61)] == [400] * 60 + [429]


def test_60_a_minute_comes_before_inactive_and_the_body(hook):
    burst(hook, 60)
    hook.set("--inactive")
    for data in (b"{}", *WRONG_BODIES):
        assert_limited(hook.post(data=data))


def test_the_global_cap_comes_before_inactive_and_the_body(capped):
    burst(capped, 3)
    capped.set("--inactive")
    for data in (b"{}", *WRONG_BODIES):
        assert_limited(capped.post(data=data))


def test_inactive_comes_before_what_is_wrong_with_the_body(hook):
    hook.set("--inactive")
    for data in WRONG_BODIES:
        assert said(hook.post(data=data)) == INACTIVE


# Inactive


def test_an_inactive_alert_answers_200_and_records_nothing(owner, hook, browser):
    hook.post({})
    before = the_alert(owner)
    hook.set("--inactive")
    assert said(hook.post({"title": "t"})) == INACTIVE
    assert the_alert(owner) == before | {"isActive": False}
    assert (len(owner.listed()), len(browser.pushes)) == (1, 1)
    assert owner.get("/stats").json["stats"]["totalNotificationsAllTime"] == 1


def test_switched_on_again_it_produces_notifications_at_once(owner, hook):
    hook.set("--inactive")
    hook.post({})
    hook.set("--active")
    assert said(hook.post({})) == (200, {"ok": True, "status": "delivered", "notificationId": ANY})
    assert (the_alert(owner)["isActive"], len(owner.listed())) == (True, 1)


# 60 a minute


def test_exactly_60_requests_a_minute_are_let_through(owner, hook):
    assert burst(hook, 70, b"{}") == [200] * 60 + [429] * 10
    assert the_alert(owner)["notificationCount"] == 60


def test_the_61st_request_is_answered_429_with_retry_after_60_and_not_queued(service, owner, hook, moved_clock):
    burst(hook, 60)
    assert_limited(hook.post({"title": "refused"}))
    moved_clock.advance(61)
    service.work()
    assert owner.listed() == []


def test_the_window_moves_with_every_request(hook, moved_clock):
    assert burst(hook, 40) == [400] * 40
    moved_clock.advance(30)
    assert burst(hook, 30) == [400] * 20 + [429] * 10
    moved_clock.advance(29.9)
    assert burst(hook, 1) == [429]
    moved_clock.advance(0.2)
    assert burst(hook, 50) == [400] * 40 + [429] * 10


def test_refused_requests_do_not_extend_the_wait(hook, moved_clock):
    burst(hook, 60)
    for _ in range(59):
        moved_clock.advance(1)
        assert burst(hook, 3) == [429] * 3
    moved_clock.advance(1.1)
    assert burst(hook, 61) == [400] * 60 + [429]


def test_a_wall_clock_that_is_set_neither_frees_nor_locks(hook, moved_clock):
    burst(hook, 60)
    for by_ms in (3_600_000, -7_200_000, 86_400_000):
        moved_clock.set_wall(moved_clock.ms + by_ms)
        assert burst(hook, 1) == [429]
    moved_clock.advance(60.1)
    assert burst(hook, 1) == [400]


@pytest.mark.parametrize("data, status", [(b"not JSON", 400), (b"[]", 400), (b" " * 1_100_000, 413), (b"{}", 200)])
def test_a_request_counts_whatever_its_body(hook, data, status):
    burst(hook, 59)
    assert hook.post(data=data).status_code == status
    assert_limited(hook.post(data=data))


def test_requests_to_an_inactive_alert_count(hook):
    hook.set("--inactive")
    assert burst(hook, 61) == [200] * 60 + [429]
    hook.set("--active")
    assert_limited(hook.post({}))


def test_every_alert_has_a_count_of_its_own(service, hook):
    second = service.alert(name="Second")
    assert burst(hook, 61) == burst(second, 61) == [400] * 60 + [429]


def test_senders_share_the_alerts_count(hook):
    answers = [hook.post(data=b"x", address=f"198.51.100.{number}").status_code for number in range(61)]
    assert answers == [400] * 60 + [429]


def test_threads_that_post_at_once_get_exactly_60(service, hook):
    answers = at_once(8, lambda: [service.app.test_client().post(hook.url).status_code for _ in range(15)])
    assert sorted(code for each in answers for code in each) == [400] * 60 + [429] * 60


# Flood


@pytest.fixture
def zebra(service, owner):
    """An alert whose name is found in whatever names it."""
    return service.alert(name="Zebra crossing")


def notices(caller):
    """The notifications that name the alert; bursts record no other."""
    listed = caller.listed()
    assert all("Zebra crossing" in each["title"] + each["body"] for each in listed)
    return listed


def test_the_500th_request_within_a_minute_pauses_the_alert_refused_ones_included(owner, zebra):
    assert burst(zebra, 499) == [400] * 60 + [429] * 439
    assert (the_alert(owner)["isActive"], notices(owner)) == (True, [])
    zebra.post({})
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, 1)


def test_requests_that_were_let_through_count_too(service, owner):
    hook = service.alert("--title", "event", "--body", "event", name="Zebra crossing")
    burst(hook, 500, b"{}")
    assert the_alert(owner)["isActive"] is False
    listed = owner.listed("?limit=100")
    assert len(listed) == 61 and sum("Zebra crossing" in each["title"] + each["body"] for each in listed) == 1


def test_requests_refused_by_the_global_cap_count_too(capped):
    assert burst(capped, 500) == [400] * 3 + [429] * 497
    first, _ = capped.service.caller().get("/alerts").json["alerts"][::-1]
    assert first["isActive"] is False


def test_a_flood_is_499_requests_and_one_more_in_any_60_seconds(owner, zebra, moved_clock):
    burst(zebra, 250)
    moved_clock.advance(59)
    burst(zebra, 249)
    moved_clock.advance(1.1)
    burst(zebra, 1)
    assert the_alert(owner)["isActive"] is True
    burst(zebra, 249)
    assert the_alert(owner)["isActive"] is True
    burst(zebra, 1)
    assert the_alert(owner)["isActive"] is False


def test_requests_to_two_alerts_are_no_flood(service, owner, zebra):
    second = service.alert(name="Second")
    for _ in range(2):
        burst(zebra, 150)
        burst(second, 150)
    assert [each["isActive"] for each in owner.get("/alerts").json["alerts"]] == [True, True]


def test_the_one_notice_is_pushed_although_it_is_night(service, owner, zebra, browser):
    service.flask("account", "set", zebra.email, "--quiet-hours", "09:00-11:00")
    burst(zebra, 560)
    assert notices(owner)[0]["status"] in ("pending", "delivered")
    service.work()
    (notice,) = notices(owner)
    assert notice == {"id": ANY, "title": ANY, "body": ANY, "status": "delivered", "createdAt": ANY}
    assert notice["title"].startswith("MCP - ")
    (message,) = browser.messages
    shown = message["notification"]
    assert (shown["title"], shown["body"], shown["tag"]) == (notice["title"], notice["body"], notice["id"])


def test_a_paused_alert_stays_paused_and_gets_no_second_notice(service, owner, zebra, moved_clock):
    burst(zebra, 500)
    assert set(burst(zebra, 60)) <= {200, 429}
    moved_clock.advance(61)
    assert said(zebra.post({})) == INACTIVE
    burst(zebra, 500)
    service.work()
    assert the_alert(owner)["isActive"] is False
    assert [notice["status"] for notice in notices(owner)] == ["delivered"]


def test_a_paused_alert_is_still_paused_after_a_restart(owner, zebra, make_service):
    burst(zebra, 500)
    zebra.service = owner.service = make_service()
    assert said(zebra.post({})) == INACTIVE
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, 1)


def test_threads_that_flood_at_once_make_one_notice(service, owner, zebra):
    at_once(8, lambda: [service.app.test_client().post(zebra.url).status_code for _ in range(70)])
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, 1)


@pytest.mark.parametrize("refused_while_paused", [0, 30])
def test_switching_it_on_starts_the_count_afresh(owner, zebra, moved_clock, refused_while_paused):
    burst(zebra, 500 + refused_while_paused)
    moved_clock.advance(1)
    zebra.set("--active")
    assert the_alert(owner)["isActive"] is True
    burst(zebra, 499)
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (True, 1)
    burst(zebra, 1)
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, 2)


def test_switching_it_off_and_on_by_hand_starts_the_count_afresh(owner, zebra, moved_clock):
    burst(zebra, 499)
    moved_clock.advance(1)
    zebra.set("--inactive")
    zebra.set("--active")
    burst(zebra, 2)
    assert (the_alert(owner)["isActive"], notices(owner)) == (True, [])


# The global cap


@pytest.fixture
def capped_at(make_service, moved_clock):
    """Two alerts of a service that takes so many events a minute."""

    def make(events):
        service = make_service(INGEST_PER_MINUTE=str(events))
        service.account()
        return service.alert(), service.alert(name="Second")

    return make


@pytest.fixture
def capped(capped_at):
    """An alert of a service that takes 3 events a minute."""
    return capped_at(3)[0]


def test_the_cap_is_over_all_alerts_and_accounts(capped):
    capped.service.account("other@example.org")
    other = capped.service.alert(email="other@example.org")
    assert [capped.post({}).status_code, other.post({}).status_code, capped.post({}).status_code] == [200] * 3
    assert_limited(other.post({}))
    assert_limited(capped.post({}))


def test_the_caps_window_moves_and_refused_requests_do_not_extend_it(capped, moved_clock):
    assert burst(capped, 2) == [400] * 2
    moved_clock.advance(30)
    assert burst(capped, 3) == [400, 429, 429]
    moved_clock.advance(29.9)
    assert burst(capped, 1) == [429]
    moved_clock.advance(0.2)
    assert burst(capped, 3) == [400, 400, 429]


def test_the_cap_does_not_count_what_an_alerts_own_limit_refused(capped_at):
    first, second = capped_at(100)
    assert burst(first, 110) == [400] * 60 + [429] * 50
    assert burst(second, 41) == [400] * 40 + [429]


def test_the_cap_does_not_count_unknown_and_malformed_codes_and_refused_senders(capped):
    guess(capped.service, 70)
    ask(capped.service, "abcdef", OTHER)
    assert burst(capped, 5) == [429] * 5  # for the sender
    assert [capped.post({}, address=OTHER).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_a_request_refused_by_the_cap_does_not_use_up_the_alerts_own_60(capped_at, moved_clock):
    first, second = capped_at(60)
    burst(first, 60)
    moved_clock.advance(30)
    assert burst(second, 60) == [429] * 60
    moved_clock.advance(30.1)
    assert burst(second, 61) == [400] * 60 + [429]


def test_the_cap_counts_inactive_alerts(capped):
    capped.set("--inactive")
    assert burst(capped, 4) == [200] * 3 + [429]


def test_without_the_setting_one_alert_after_the_other_may_use_its_60(service, owner):
    assert [burst(service.alert(name=f"Alert {number}"), 60) for number in range(3)] == [[400] * 60] * 3


# The budget of a sender that guesses


def test_an_address_may_ask_for_60_unknown_codes_a_minute(service):
    assert guess(service, 63) == [404] * 60 + [429] * 3
    assert_limited(ask(service, "abc1234"))


def test_malformed_codes_count_like_unknown_ones(service):
    malformed = [ask(service, f"abc{number}x").status_code for number in range(30)]
    assert malformed + guess(service, 31) == [404] * 60 + [429]
    assert_limited(ask(service, "abcdef"))
    assert_limited(ask(service, "abc/efg"))


def test_rotated_codes_count_like_unknown_ones(service, hook):
    rotated(hook)
    assert guess(service, 59) + burst(hook, 2) == [404] * 60 + [429]


def test_the_budget_moves_with_time(service, moved_clock):
    assert guess(service, 40) == [404] * 40
    moved_clock.advance(30)
    assert guess(service, 20) == [404] * 20
    moved_clock.advance(29.9)
    assert guess(service, 1) == [429]
    moved_clock.advance(60.1)
    assert guess(service, 61) == [404] * 60 + [429]


def test_other_addresses_have_a_budget_of_their_own(service):
    assert guess(service, 61, SENDER)[-1] == 429
    assert guess(service, 61, OTHER) == [404] * 60 + [429]


def test_beyond_the_budget_a_code_without_an_event_looks_like_an_unknown_one(service, owner, hook):
    guess(service, 60)
    assert_limited(hook.post({}))
    assert whole(hook.post({})) == whole(ask(service, UNKNOWN))
    assert owner.listed() == []
    assert hook.post({}, address=OTHER).status_code == 200


def test_beyond_the_budget_codes_in_use_pass(service, hook):
    hook.post({}, address=OTHER)
    guess(service, 60)
    assert said(hook.post({})) == (200, {"ok": True, "status": "delivered", "notificationId": ANY})


@pytest.mark.parametrize("seconds, status", [(DAY_S - 1, 200), (DAY_S + 1, 429)])
def test_a_code_is_in_use_for_24_hours_after_its_last_event(service, hook, moved_clock, seconds, status):
    hook.post({})
    moved_clock.advance(seconds)
    guess(service, 60)
    assert hook.post({}).status_code == status


def test_a_code_in_use_is_still_in_use_after_a_restart(hook, make_service):
    hook.post({})
    hook.service = make_service()
    guess(hook.service, 60)
    assert hook.post({}).status_code == 200


def test_requests_to_codes_that_exist_do_not_use_up_the_budget(service, hook):
    burst(hook, 70)
    assert guess(service, 61) == [404] * 60 + [429]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_guessing_with_another_method_learns_nothing(service, hook, method):
    for _ in range(100):
        ask(service, f"{next(CODES):07}", method=method)
    assert whole(ask(service, hook.code, method=method)) == whole(ask(service, UNKNOWN, method=method))


@pytest.mark.parametrize("other, status", [("2001:db8:1:2:ffff::9", 429), ("2001:db8:1:3::1", 404)])
def test_the_addresses_of_an_ipv6_64_share_one_budget(service, other, status):
    same = [status for number in range(1, 61) for status in guess(service, 1, f"2001:db8:1:2::{number:x}")]
    assert same == [404] * 60
    assert guess(service, 1, other) == [status]


# The client's address


def behind(*addresses):
    return {"X-Forwarded-For": ", ".join(addresses)}


def test_a_trusted_proxy_says_who_the_sender_is(service):
    assert guess(service, 61, PROXY, behind(SENDER)) == [404] * 60 + [429]
    assert guess(service, 1, PROXY, behind(OTHER)) == [404]
    assert guess(service, 1, SENDER) == [429]


def test_a_trusted_proxy_without_the_header_is_the_sender(service):
    assert guess(service, 61, PROXY) == [404] * 60 + [429]


def test_the_forwarded_64_of_an_ipv6_address_shares_one_budget(service):
    guess(service, 60, PROXY, behind("2001:db8:1:2::1"))
    assert guess(service, 1, PROXY, behind("2001:db8:1:2::2")) == [429]
    assert guess(service, 1, PROXY, behind("2001:db8:1:3::1")) == [404]


@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP", "CF-Connecting-IP"])
def test_a_peer_that_is_not_trusted_cannot_say_who_it_is(service, name):
    assert guess(service, 61, SENDER, lambda number: {name: f"198.51.100.{number}"}) == [404] * 60 + [429]


@pytest.mark.parametrize("name", ["X-Real-IP", "Forwarded", "X-Client-IP", "CF-Connecting-IP"])
def test_no_other_header_says_who_the_sender_is(service, name):
    answers = guess(service, 61, PROXY, lambda number: behind(SENDER) | {name: f"198.51.100.{number}"})
    assert answers == [404] * 60 + [429]


@pytest.mark.parametrize(
    "before", ["198.51.100.{}", "127.0.0.1, 198.51.100.{}", "nonsense{}", "198.51.100.{}, 10.0.0.1"]
)
def test_what_the_sender_wrote_before_the_last_entry_is_not_believed(service, before):
    assert guess(service, 61, PROXY, lambda number: behind(before.format(number), SENDER)) == [404] * 60 + [429]
    assert guess(service, 1, PROXY, behind(SENDER, OTHER)) == [404]


def test_of_two_headers_the_last_entry_counts(service):
    def headers(number):
        return [("X-Forwarded-For", f"198.51.100.{number}"), ("X-Forwarded-For", SENDER)]

    assert guess(service, 61, PROXY, headers) == [404] * 60 + [429]


def test_entries_that_are_trusted_proxies_are_passed_over(make_service, moved_clock):
    service = make_service(FORWARDED_ALLOW_IPS="127.0.0.1, 10.0.0.0/8, 2001:db8:ffff::/48")
    chains = [
        (PROXY, (SENDER, "10.1.2.3")),
        ("10.0.0.9", (SENDER,)),
        ("2001:db8:ffff::1", (SENDER, PROXY, "10.9.9.9")),
    ]
    for peer, chain in chains:
        assert guess(service, 20, peer, behind("198.51.100.1", *chain)) == [404] * 20
    for peer, chain in chains:
        assert guess(service, 1, peer, behind(*chain)) == [429]
    assert guess(service, 1, PROXY, behind(SENDER, OTHER, "10.1.2.3")) == [404]


@pytest.mark.parametrize("peer, entries", [(PROXY, ()), ("10.0.0.1", ("10.0.0.2",))])
def test_a_proxy_that_is_not_named_is_a_sender(make_service, moved_clock, peer, entries):
    service = make_service(FORWARDED_ALLOW_IPS="10.0.0.1")
    answers = guess(service, 61, peer, lambda number: behind(f"198.51.100.{number}", *entries))
    assert answers == [404] * 60 + [429]


def test_no_forwarded_header_causes_a_fault_of_the_server(service, hook):
    texts = [
        "",
        ",",
        " , ",
        "unknown",
        "_hidden",
        "203.0.113.7:4711",
        "[2001:db8::1]:80",
        "999.1.1.1",
        "::",
        "1",
        "é",
    ]
    texts += ["127.0.0.1", "127.0.0.1, 127.0.0.1", "fe80::1%eth0", "::ffff:203.0.113.7", "a" * 10_000, "1," * 5_000]
    for text in texts:
        for address in (PROXY, SENDER):
            headers = {"X-Forwarded-For": text}
            assert hook.post(data=b"x", address=address, headers=headers).status_code == 400, text
            assert ask(service, UNKNOWN, address, headers=headers).status_code == 404, text


# The body


NO_EVENTS = [
    *[b"", b" \n", b"{", b"nonsense", b"[]", b'[{"title": "t"}]', b"null", b"true", b"1", b'"title"', b"{}{}"],
    *[b"{'a': 1}", b'{"a": 1,}', b'{"a": "\n"}', b'{"a": "\x00"}', b"title=t&message=m", b"<a/>", b"//\n{}"],
    *[b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}', b'{"a": 1e400}', b'{"a": ' + b"9" * 101 + b"}"],
    *[b'{"a": "\xff"}', b'{"a": "\xed\xa0\x80"}', '{"a": 1}'.encode("utf-16"), b"\x1f\x8b\x08\x00", b"\x80"],
    *[
        b'{"a":' * 64 + b"{}" + b"}" * 64,
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}",
    ],
]


def test_a_body_that_is_no_json_object_is_refused_and_nothing_recorded(owner, hook):
    for data in NO_EVENTS:
        refusal(hook.post(data=data))
    alert = the_alert(owner)
    assert (alert["notificationCount"], alert["lastTriggeredAt"], owner.listed()) == (0, None, [])


@pytest.mark.parametrize(
    "data, place",
    [
        (b'{"a": 1,\n "b": }', (2, 7)),
        (b'{"a": nan}', (1, 7)),
        (b"nonsense", (1, 1)),
        (b'{\n\n"a": "\xff"}', (3, 7)),
        (b'{"a":\n1e400}', (2, 1)),
        (b"", (1, 1)),
        (b'{"text": "a quote " in it"}', (1, 21)),
    ],
)
def test_a_refusal_says_where_the_json_breaks(hook, data, place):
    found = AT.search(refusal(hook.post(data=data)))
    assert (int(found[1]), int(found[2])) == place


def test_a_refusal_repeats_nothing_of_the_body(hook):
    for data in (b"secret-word", b'{"secret-word": secret-word}', b'{"a": "secret-word\n"}', b'["secret-word"]'):
        assert "secret" not in refusal(hook.post(data=data))


def test_64_levels_are_taken(hook):
    assert hook.post(data=b'{"a":' * 63 + b"{}" + b"}" * 63).status_code == 200


CONTENT_TYPES = ["", "text/plain", "application/xml", "application/x-www-form-urlencoded", "nonsense", ";;;"]
CONTENT_TYPES += ["multipart/form-data; boundary=x", "application/json; charset=latin-1"]


def test_a_body_is_read_as_json_whatever_it_is_called(owner, hook):
    data = '{"title": "é+%41&payload=1", "message": "漢"}'.encode()
    for headers in [{}, *({"Content-Type": name} for name in CONTENT_TYPES)]:
        assert hook.post(data=data, headers=headers).status_code == 200
        assert last(owner) == ("é+%41&payload=1", "漢")
    assert len(owner.listed()) == 1 + len(CONTENT_TYPES)


@pytest.mark.parametrize(
    "data, title",
    [
        (b'{"title": "first", "title": "last"}', "last"),
        (b'{"title": 1, "title": "first", "t\\u0069tle": "last"}', "last"),
        (b'{"title": "first", "title": null, "subject": "other"}', "other"),
    ],
)
def test_the_last_of_duplicate_keys_wins(owner, hook, data, title):
    hook.post(data=data)
    assert last(owner)[0] == title


@pytest.mark.parametrize(
    "written, becomes",
    [
        ("\\u0000", "\ufffd"),
        ("a\\u0000b", "a\ufffdb"),
        ("\\ud800", "\ufffd"),
        ("\\uDFFF", "\ufffd"),
        ("\\udc00\\ud800", "\ufffd\ufffd"),
        ("\\ud800\\ud83d\\ude00", "\ufffd😀"),
        ("\\ud800\\u0041", "\ufffdA"),
        ("\\ud83d\\ude00", "😀"),
        ("\\\\u0000", "\\u0000"),
        ("\\\\\\u0000", "\\\ufffd"),
        ("\\\\ud800", "\\ud800"),
    ],
)
def test_a_nul_or_a_lone_surrogate_becomes_the_replacement_character_in_values_and_keys(
    service, owner, written, becomes
):
    hook = service.alert("--title", "{{ a }}", "--body", "{{ " + becomes + " }}")
    assert hook.post(data=f'{{"a": "{written}", "{written}": "by key"}}'.encode()).status_code == 200
    assert last(owner) == (becomes, "by key")


STRINGS = st.text(st.characters(exclude_categories=[]), max_size=20) | st.sampled_from(["\ud800", "\x00", "\udc00a"])
NUMBERS = st.integers(-(10**99), 10**99) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | STRINGS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4),
    max_leaves=10,
)


def storable(value):
    """The value as it must be kept: surrogates in pairs, all others and NUL replaced."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff\x00]", "\ufffd", value)
    if isinstance(value, list):
        return [storable(each) for each in value]
    if isinstance(value, dict):
        return {storable(key): storable(each) for key, each in value.items()}
    return value


@settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(VALUES)
def test_any_json_object_is_an_event_and_compact_json_keeps_it(owner, hook, moved_clock, value):
    moved_clock.advance(61)
    data = json.dumps({"x": value})
    assert hook.post(data=data).status_code == 200
    assert json.loads(last(owner)[1]) == storable(json.loads(data))


@pytest.fixture
def small(make_service, moved_clock):
    """An alert of a service that takes bodies of at most 2,048 bytes."""
    service = make_service(MAX_BODY_BYTES="2048")
    service.account()
    return service.alert()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_413(small, chunked):
    def post(size, text=b'{"title": "t"}'):
        data = text.ljust(size)
        if not chunked:
            return small.post(data=data)
        headers = {"Transfer-Encoding": "chunked"}
        environ = {"wsgi.input_terminated": True, "REMOTE_ADDR": SENDER}
        stream = io.BytesIO(data)
        return small.service.client.post(small.url, input_stream=stream, headers=headers, environ_overrides=environ)

    assert post(2_048).status_code == 200
    refusal(post(2_049), 413)
    refusal(post(300_000), 413)
    refusal(post(2_049, b"not JSON"), 413)
    assert len(small.service.caller().listed()) == 1


# Forms


def test_a_form_whose_one_field_payload_holds_an_object_is_taken_as_that_object(owner, hook):
    payload = json.dumps({"title": "é + & = %41 漢", "message": "two\nlines"})
    assert hook.post(data=urlencode({"payload": payload}), headers=FORM).status_code == 200
    assert last(owner) == ("é + & = %41 漢", "two\nlines")


def test_a_form_keeps_digits_and_replaces_what_cannot_be_stored_like_json(service, owner):
    hook = service.alert("--title", "{{ n }}", "--body", "{{ s }}")
    data = urlencode({"payload": '{"n": 9.90, "s": "a\\u0000"}'})
    assert hook.post(data=data, headers={"Content-Type": f"{FORM['Content-Type']}; charset=utf-8"}).status_code == 200
    assert last(owner) == ("9.90", "a\ufffd")


OTHER_FORMS = [
    *[b"", b"payload", b"payload=", b"payload=x", b"payload=[]", b"payload=1", b"payload=null", b"payload=%7B"],
    *[b"title=t", b"Payload=%7B%7D", b"data=%7B%7D", b"payload[]=%7B%7D", b"=%7B%7D", b"&&&", b"%=%&%"],
    *[b"payload=%7B%22a%22%3A%22%FF%22%7D", b"payload=%7B%22a%22%3ANaN%7D", b"payload=payload%3D%7B%7D"],
    *[b"payload=" + b"%7B%22a%22%3A" * 2_000, b"a=1&" * 20_000, b"payload=\xff"],
]


def test_any_other_form_is_refused(owner, hook):
    for data in OTHER_FORMS:
        refusal(hook.post(data=data, headers=FORM))
    assert owner.listed() == []


# Title and body


@pytest.mark.parametrize(
    "payload, title, body",
    [
        (dict(zip(["name", "subject", "title", "msg", "text", "body", "message"], "nstgxbm", strict=True)), "t", "m"),
        ({"name": "n", "subject": "s", "msg": "g", "text": "x", "body": "b"}, "s", "b"),
        ({"name": "n", "msg": "g", "text": "x"}, "n", "x"),
        ({"msg": "g", "content": "c"}, "Backups", "g"),
        ({"content": "c"}, "Backups", "c"),
        (
            {"title": 1, "subject": None, "name": "n", "message": {"a": 1}, "body": ["b"], "text": True, "msg": "g"},
            "n",
            "g",
        ),
        ({"Title": "t", "MESSAGE": "m"}, "Backups", '{"Title":"t","MESSAGE":"m"}'),
        ({}, "Backups", "{}"),
        ({"z": {"b": [1, None, True, "x y"]}, "a": []}, "Backups", '{"z":{"b":[1,null,true,"x y"]},"a":[]}'),
        ({"data": {"title": "t", "message": "m"}}, "Backups", '{"data":{"title":"t","message":"m"}}'),
        ({"title": "", "message": "m"}, "Backups", "m"),
        ({"title": "{{ message }}", "message": "{{ title }}"}, "{{ message }}", "{{ title }}"),
    ],
    ids=range(12),
)
def test_without_templates_the_payloads_usual_fields_are_taken(owner, hook, payload, title, body):
    assert hook.post(payload).status_code == 200
    assert last(owner) == (title, body)


def test_compact_json_keeps_numbers_digit_for_digit(owner, hook):
    hook.post(data=b'{ "a": 9.90, "b": [1.0, 1E+2, 12345678901234567890], "c": { "d": -0.0, "e": -0 } }')
    assert last(owner)[1] == '{"a":9.90,"b":[1.0,1E+2,12345678901234567890],"c":{"d":-0.0,"e":-0}}'


def test_templates_are_filled_from_the_payload(service, owner):
    hook = service.alert(
        "--title",
        "[{{ status }}] {{alerts.0.labels.alertname}}",
        "--body",
        "{{ on }} {{no.such}} {{ nil }}| {{ alerts.0.labels }} %",
    )
    hook.post({"status": "firing", "on": True, "nil": None, "alerts": [{"labels": {"alertname": "Disk", "n": 1}}]})
    assert last(owner) == ("[firing] Disk", 'true {{no.such}} | {"alertname":"Disk","n":1} %')


@pytest.mark.parametrize("option, rendered", [("--title", ("v", "m")), ("--body", ("t", "v"))])
def test_a_template_that_is_not_there_leaves_the_usual_field(service, owner, option, rendered):
    service.alert(option, "{{ v }}").post({"v": "v", "title": "t", "message": "m"})
    assert last(owner) == rendered


def test_a_changed_template_is_used_at_once(owner, hook):
    hook.post({"a": "1"})
    hook.set("--title", "T {{ a }}", "--body", "B {{ a }}")
    hook.post({"a": "2"})
    assert last(owner) == ("T 2", "B 2")


def test_a_number_is_rendered_digit_for_digit(service, owner):
    hook = service.alert("--title", "{{ n }}", "--body", "={{ list.0 }}")
    numbers = ["9.90", "1.0", "0", "-0", "-0.0", "1E+2", "1e-7", "12345678901234567890", "0.10000000000000000555"]
    for number in [*numbers, "1" + "0" * 99]:
        hook.post(data=f'{{"n": {number}, "list": [{number}]}}')
        assert last(owner) == (number, f"={number}")


@pytest.mark.parametrize("options", [(), ("--title", "{{ title }}", "--body", "{{ message }}")])
@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_a_title_is_cut_to_1000_characters_before_the_prefix_and_a_body_to_10000(service, owner, options, letter):
    hook = service.alert(*options)
    hook.post({"title": letter * 1_000, "message": letter * 10_000})
    assert last(owner) == (letter * 1_000, letter * 10_000)
    hook.post({"title": letter * 1_001, "message": letter * 10_001})
    assert last(owner) == (letter * 999 + "…", letter * 9_999 + "…")


def test_compact_json_is_cut_to_10000_characters(owner, hook):
    hook.post({"a": "x" * 20_000})
    assert last(owner)[1] == '{"a":"' + "x" * 9_993 + "…"


def test_a_title_that_renders_to_nothing_is_the_alerts_name(service, owner):
    service.alert("--title", "{{ a }}{{ b }}", "--body", "m").post({"a": "", "b": None})
    assert last(owner) == ("Backups", "m")


# CONTRACT 7: never


def test_an_event_that_cannot_be_written_is_500_and_nothing_of_it_is_kept(service, owner, hook):
    run(service, "CREATE TRIGGER full BEFORE INSERT ON notification BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    assert said(hook.post({})) == (500, error(500, "INTERNAL_ERROR"))
    run(service, "DROP TRIGGER full")
    alert = the_alert(owner)
    assert (alert["notificationCount"], alert["lastTriggeredAt"], owner.listed()) == (0, None, [])
    assert hook.post({}).status_code == 200


def test_the_most_talkative_log_holds_neither_a_code_nor_a_payload(
    service, owner, hook, browser, moved_clock, caplog
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
        burst(new, 500, json.dumps(event))
        new.set("--active")
        moved_clock.advance(61)
        run(service, "DROP TABLE notification")
        service.client.post(new.url, json=event)
        run(service, "DROP TABLE alert")
        service.client.post(new.url, json=event)
    assert "no such table" in caplog.text
    for secret in (hook.code, new.code, "title-of-it", "body-of-it", "key-of-it", "value-of-it"):
        assert secret not in caplog.text, secret


def test_no_answer_repeats_a_code(service, hook):
    hook.set("--inactive")
    answers = [hook.post({}), ask(service, hook.code, method="GET"), ask(service, f"{hook.code}x")]
    burst(hook, 60)
    answers += [hook.post({}), rotated(hook).post({}), hook.post({})]
    assert [answer.status_code for answer in answers] == [200, 405, 404, 429, 429, 404]
    assert not any(hook.code in answer.text + str(answer.headers) for answer in answers)


# --- events whose body comes long after their address -------------------------------------------------------


class LateBody(io.BytesIO):
    """A body that arrives only after something else has happened."""

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


@pytest.mark.parametrize("command", ["rotate", "delete"])
def test_an_event_whose_code_is_void_before_its_body_has_come_is_404(service, owner, command):
    hook = service.alert()
    answer = post_late(hook, lambda alert=hook.id: service.flask("alert", command, hook.email, alert))
    assert said(answer) == (404, error(404, "NOT_FOUND"))
    assert owner.listed() == []


def test_an_event_whose_alert_is_switched_off_before_its_body_has_come_is_not_recorded(service, owner):
    hook = service.alert()
    assert said(post_late(hook, lambda: hook.set("--inactive"))) == INACTIVE
    assert owner.listed() == []


def test_an_event_whose_body_comes_in_quiet_hours_is_held(service, owner):
    hook = service.alert()
    quiet = ("account", "set", hook.email, "--quiet-hours", "00:00-23:59")
    assert post_late(hook, lambda: service.flask(*quiet)).json["status"] == "held"


# --- what else is malformed, or means nothing ---------------------------------------------------------------


@pytest.mark.parametrize("path", ["/abc", "ab%0Acd", "%2Fabcdefg", "/", "%0A"])
def test_a_malformed_code_that_no_route_takes_counts_against_its_sender_too(service, path):
    assert [ask(service, path).status_code for _ in range(60)] == [404] * 60
    assert_limited(ask(service, path))


def test_a_malformed_code_is_404_however_large_its_body_is(make_service):
    service = make_service(MAX_BODY_BYTES="1024")
    assert ask(service, "/abc", data=b"x" * 2000).status_code == 404


@pytest.mark.parametrize("title", ["\u0001\u0002", " \t\n", "\u200b", "\u0085\u00a0"])
def test_a_title_that_shows_nothing_becomes_the_alerts_name(service, owner, title):
    service.alert(name="Disk").post({"title": title, "message": "full"})
    assert owner.listed()[0]["title"] == "MCP - Disk"


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


# --- variables that the event lacks -------------------------------------------------------------------------


def missing_of(hook, payload):
    """The variables that are kept with the notification as missing; None without any."""
    answer = hook.post(payload)
    assert answer.status_code == 200
    row = Notification.get(Notification.id == answer.json["notificationId"])
    return row.missing and json.loads(row.missing)


@pytest.mark.parametrize(
    "title, body, payload, missing",
    [
        ("{{ a }}", "{{ b }}", {"a": 1, "b": 2}, None),
        ("{{ a }}", "{{ b }}", {"b": 2}, ["a"]),
        ("{{ a }}", "{{ b }}", {}, ["a", "b"]),
        ("{{ b }}", "{{ a }}", {}, ["b", "a"]),
        ("{{ a }} {{a}}", "{{ a }} {{ b }} {{ b }}", {}, ["a", "b"]),
        ("{{ a.b }}", "{{ a.c }}", {"a": {"b": 1}}, ["a.c"]),
        ("{{ a.b }}", "x", {"a": None}, ["a.b"]),
        ("{{ a }}", "x", {"a": None}, None),
        ("{{ a }}", "x", {"a": ""}, None),
        ("{{ a.0 }} {{ a.1 }}", "x", {"a": [1]}, ["a.1"]),
        ('{{ a | default: "n/a" }}', "{{ b }}", {}, ["b"]),
        ("no variable", "{% at %} { all }", {}, None),
    ],
)
def test_variables_that_an_event_lacks_are_kept_each_once(service, owner, title, body, payload, missing):
    assert missing_of(service.alert("--title", title, "--body", body), payload) == missing


def test_without_templates_nothing_is_missing(service, owner, hook):
    assert missing_of(hook, {}) is None
    assert missing_of(hook, {"title": "{{ a }}", "message": "{{ b }}"}) is None


def test_what_is_missing_is_kept_of_a_held_event_too(service, owner):
    service.flask("account", "set", "owner@example.org", "--quiet-hours", "09:00-11:00")
    assert missing_of(service.alert("--title", "{{ a }}"), {}) == ["a"]


def test_what_is_missing_is_not_told_to_the_sender(service, owner):
    answer = service.alert("--title", "{{ a }}").post({})
    assert set(answer.json) == {"ok", "status", "notificationId"}


def test_senders_whose_address_the_server_does_not_know_are_one_sender(service):
    assert guess(service, 61, address="") == [404] * 60 + [429]
