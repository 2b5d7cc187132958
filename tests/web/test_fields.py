"""What a notification may carry beside its text: in requests and in answers."""

from unittest.mock import ANY

from core import delivery
from store import database, notifications
from tests.support.accounts import OWNER
from tests.support.alarms import detail, every
from tests.support.answers import error
from tests.support.devices import subscribe
from tests.support.postgresql import sqlite_only
from tests.support.rows import each

LONGEST_URL = "https://example.org/" + "u" * 1_980
OPENS = {"label": "Look", "url": LONGEST_URL}
ANSWERS = {"label": "Yes", "answer": "y"}
LONGEST_ANSWER = {"label": "😀" * 40, "answer": "😀" * 100}


def send(caller, headers=None, **more):
    return caller.post("/notifications/send", {"title": "Disk", "body": "full", **more}, headers=headers)


def sent(caller, **more):
    answer = send(caller, **more)
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]


def bare(moved_clock, **more):
    """The notification that `send` makes, with what was set."""
    fixed = {"id": ANY, "title": "MCP - Disk", "body": "full", "status": "delivered", "createdAt": moved_clock.ms}
    return {**fixed, **more}


# --- what is taken ------------------------------------------------------------------------------------------


@each(
    "field, value, answered",
    [
        *(("priority", number, number) for number in range(1, 6)),
        *(("priority", word, place) for place, word in enumerate(("min", "low", "normal", "high", "urgent"), 1)),
        ("url", "http://example.org", "http://example.org"),
        ("url", "HTTPS://user:pw@[::1]:8443/a?b=c&d=“é”#e", "HTTPS://user:pw@[::1]:8443/a?b=c&d=“é”#e"),
        ("url", LONGEST_URL, LONGEST_URL),
        ("tag", "x", "x"),
        ("tag", "😀" * 64, "😀" * 64),
        ("tag", "'; DROP TABLE notification; --\n", "'; DROP TABLE notification; --\n"),
        ("expiresAt", 253_402_300_799_999, 253_402_300_799_999),
        ("actions", [OPENS], [OPENS]),
        ("actions", [ANSWERS, OPENS, LONGEST_ANSWER], [ANSWERS, OPENS, LONGEST_ANSWER]),
    ],
)
def test_a_field_that_is_set_is_answered_and_listed(owner, moved_clock, field, value, answered):
    answer = send(owner, **{field: value})
    expected = bare(moved_clock, **{field: answered})
    assert (answer.status_code, answer.json) == (200, {"ok": True, "notification": expected})
    assert owner.listed("?limit=1") == [answer.json["notification"]]
    assert detail(owner, answer.json["notification"]["id"]) == {**expected, "deliveries": []}


def test_all_fields_at_once_are_listed_beside_a_bare_one_as_it_was_answered(owner, moved_clock):
    later = moved_clock.ms + 60_000
    link = {"url": "https://example.org/?a=\"b\\c\"&d='e'", "tag": '["x", null]\n\\u0000'}
    all_of_them = {**link, "expiresAt": later + 1, "actions": [OPENS, LONGEST_ANSWER], "acknowledge": True}
    answers = [sent(owner, deliverAt=later, **all_of_them), sent(owner), sent(owner, priority=4)]
    assert answers[0].items() >= {**link, "deliverAt": later, "acknowledge": {"everyS": 60, "forS": 3_600}}.items()
    assert owner.listed() == answers[::-1]


def test_fields_and_parts_of_a_button_that_are_null_are_absent(owner, moved_clock):
    nulls = dict.fromkeys(("priority", "url", "tag", "expiresAt", "actions", "acknowledge", "deliverAt"))
    assert sent(owner, **nulls) == bare(moved_clock)
    buttons = [{**OPENS, "answer": None}, {**ANSWERS, "url": None}]
    assert sent(owner, actions=buttons) == bare(moved_clock, actions=[OPENS, ANSWERS])


WRONG = [
    *(("priority", wrong) for wrong in (0, 6, -1, 3.0, 2.5, True, False, "", "3", "MAX", "High", [3], {}, 10**99)),
    *(("url", wrong) for wrong in (1, True, ["https://example.org"], {}, "", " ", LONGEST_URL + "u")),
    *(("url", wrong) for wrong in ("javascript:alert(1)", "data:text/html,x", "//example.org", "example.org", "/x")),
    *(
        ("url", wrong)
        for wrong in ("https://", "https:///x", "https://?x", "https://:80/", "https://[/", "ftp://a/b")
    ),
    *(
        ("url", wrong)
        for wrong in ("https://a b", "https://a/\n", "https://a/\u2028b", " https://a", "https://a/\x01")
    ),
    *(("url", wrong) for wrong in ("https://a:b/", "https://a:99999/", "https://\\a", "https://a\x85", "http:/a")),
    *(("tag", wrong) for wrong in (1, False, ["a"], {}, "", "t" * 65)),
    *(
        (time, wrong)
        for time in ("expiresAt", "deliverAt")
        for wrong in (True, "2026-11-22", 1.5, [1], {}, 253_402_300_800_000, 10**99)
    ),
    *(("actions", wrong) for wrong in (1, True, "Yes", {}, ANSWERS, [], [ANSWERS] * 4)),
    *(("acknowledge", wrong) for wrong in (False, 1, "true", [], {"everyS": 60, "for": 60}, {"forS": 3600, "x": 1})),
]
WRONG_PARTS = [
    *(("actions[1]", wrong) for wrong in (1, None, "Yes", [], {}, {"label": "Yes"}, {"answer": "y", "url": "x"})),
    *(("actions[1]", {"label": "Yes", **more}) for more in ({"url": "https://a", "answer": "y"}, {"method": "POST"})),
    *(("actions[1]", {"label": "Yes", **nulls}) for nulls in ({"answer": None}, {"url": None, "answer": None})),
    ("actions[1]", {**ANSWERS, "body": "x"}),
    *(("actions[1].label", {**ANSWERS, "label": wrong}) for wrong in (None, 1, "", " ", "y" * 41)),
    ("actions[1].label", {"answer": "y"}),
    *(("actions[1].answer", {**ANSWERS, "answer": wrong}) for wrong in (1, [], "", "\n", "y" * 101)),
    *(
        ("actions[1].url", {**OPENS, "url": wrong})
        for wrong in (1, "", "javascript:alert(1)", "/x", LONGEST_URL + "u")
    ),
    *(("acknowledge.everyS", {"everyS": wrong}) for wrong in (True, "60", 60.5, 29, 10_801, -60, 10**99)),
    *(("acknowledge.forS", {"forS": wrong, "everyS": 30}) for wrong in (False, "1h", 29, 10_801, 0)),
]


@each("field, wrong", WRONG)
def test_a_wrong_type_or_value_is_refused_with_the_fields_name(pro, field, wrong):
    answer = send(pro, **{field: wrong})
    assert (answer.status_code, answer.json) == (400, error(400))
    assert answer.json["error"].startswith(f"{field} ")
    assert pro.listed() == []


@each("part, wrong", WRONG_PARTS)
def test_a_wrong_part_of_a_field_is_refused_with_its_place(pro, part, wrong):
    field = part.partition("[")[0].partition(".")[0]
    answer = send(pro, **{field: [OPENS, wrong] if field == "actions" else wrong})
    assert (answer.status_code, answer.json["error"].split(" ")[0]) == (400, part)
    assert pro.listed() == []


@each(
    "sent_value, times",
    [
        (True, (60, 3_600)),
        ({}, (60, 3_600)),
        ({"everyS": 30, "forS": 10_800}, (30, 10_800)),
        ({"forS": 90, "everyS": None}, (60, 90)),
        ({"forS": None, "everyS": None}, (60, 3_600)),
        ({"forS": 30}, (60, 30)),
    ],
)
def test_a_notification_to_acknowledge_is_urgent_and_answered_with_both_times(owner, sent_value, times):
    answer = sent(owner, acknowledge=sent_value, priority=2)
    every_s, for_s = times
    assert (answer["acknowledge"], answer["priority"]) == ({"everyS": every_s, "forS": for_s}, 5)


@each("field", ["priority", "expiresAt", "deliverAt"])
@each("number", ["1" + "0" * 400, "1e400", "-1e400", "NaN"])
def test_a_number_beyond_all_bounds_is_refused(owner, field, number):
    data = f'{{"title": "t", "body": "b", "{field}": {number}}}'
    assert owner.post("/notifications/send", data=data).status_code == 400
    assert owner.listed() == []


def test_expires_at_must_be_in_the_future(owner, moved_clock):
    for past in (moved_clock.ms, moved_clock.ms - 1, 0):
        answer = send(owner, expiresAt=past)
        assert (answer.status_code, answer.json["error"]) == (400, "expiresAt must be in the future.")
    assert sent(owner, expiresAt=moved_clock.ms + 1)["status"] == "delivered"


def test_deliver_at_must_be_in_the_future_and_before_expires_at(owner, moved_clock):
    now, days_366 = moved_clock.ms, 366 * 86_400_000
    wrong = {
        "deliverAt must be in the future.": [{"deliverAt": past} for past in (now, 0)],
        "deliverAt must be at most 366 days ahead.": [{"deliverAt": now + days_366 + 1}],
        "expiresAt must be after deliverAt.": [
            {"deliverAt": now + 2, "expiresAt": expires} for expires in (now + 1, now + 2)
        ],
    }
    for sentence, requests in wrong.items():
        for request in requests:
            answer = send(owner, **request)
            assert (answer.status_code, answer.json["error"]) == (400, sentence)
    assert owner.listed() == []


# --- Idempotency-Key ----------------------------------------------------------------------------------------


ONCE = {"Idempotency-Key": "once"}


def test_a_replay_replaces_nothing(owner):
    send(owner, ONCE, tag="t")
    newer = sent(owner, tag="t")
    send(owner, ONCE, tag="t")
    assert "replacedBy" not in detail(owner, newer["id"])


# --- one notification ---------------------------------------------------------------------------------------


def test_a_notification_has_its_status_on_each_device(owner, push_service, moved_clock):
    one, other, third = (subscribe(owner, push_service) for _ in range(3))
    other.then(400, b'{"reason":"BadThing"}')
    third.then(503)
    notification = sent(owner)
    assert detail(owner, notification["id"]) == {
        **bare(moved_clock),
        "deliveries": [
            {"device": one.id, "kind": "webpush", "status": "delivered"},
            {"device": other.id, "kind": "webpush", "status": "failed", "error": ANY},
            {"device": third.id, "kind": "webpush", "status": "pending", "error": "The push service answered 503."},
        ],
    }


def test_deleted_and_too_old_notifications_are_not_found(owner, moved_clock):
    first, second = sent(owner), sent(owner)
    owner.delete(f"/notifications/{first['id']}")
    assert owner.get(f"/notifications/{first['id']}").status_code == 404
    moved_clock.advance(30 * 86_400 + 1)
    assert owner.get(f"/notifications/{second['id']}").status_code == 404


def test_a_digest_is_no_notification_and_its_members_have_deliveries(service, owner, browser, moved_clock):
    service.flask("account", "set", OWNER, "--quiet-hours", "09:00-11:00")
    hook = service.alert("--title", "{{ t }}")
    held = [hook.post({"t": str(number)}).json["notificationId"] for number in range(2)]
    assert detail(owner, held[0])["deliveries"] == []
    every(service, moved_clock, 3600)
    digest = browser.messages[0]["notification"]["tag"]
    assert owner.get(f"/notifications/{digest}").status_code == 404
    assert detail(owner, held[0])["deliveries"] == [{"device": browser.id, "kind": "webpush", "status": "delivered"}]


# --- tag ----------------------------------------------------------------------------------------------------


def test_the_newest_replaces_the_earlier_ones_of_its_tag_and_account(owner, pro, browser):
    first, other, second = sent(owner, tag="disk"), sent(owner, tag="cpu"), sent(owner, tag="disk")
    sent(pro, tag="disk")
    third = sent(owner, tag="disk")
    assert detail(owner, first["id"])["replacedBy"] == second["id"]
    assert detail(owner, second["id"])["replacedBy"] == third["id"]
    assert "replacedBy" not in detail(owner, third["id"]) and "replacedBy" not in detail(owner, other["id"])
    assert [one["status"] for one in owner.listed()] == ["delivered"] * 4
    assert len(owner.listed()) == 4 and not any("replacedBy" in one for one in owner.listed())


def test_replacing_ends_pending_deliveries(service, owner, browser, moved_clock):
    browser.then(503)
    first = sent(owner, tag="disk", body="first")
    assert first["status"] == "pending"
    second = sent(owner, tag="disk", body="second")
    every(service, moved_clock, 3600)
    assert [message["notification"]["body"] for message in browser.messages] == ["second"]
    assert detail(owner, first["id"]) == {
        **first,
        "status": "failed",
        "deliveries": [
            {
                "device": browser.id,
                "kind": "webpush",
                "status": "failed",
                "error": "Replaced by a newer notification.",
            }
        ],
        "replacedBy": second["id"],
    }


def test_a_replaced_notification_that_was_delivered_stays_delivered(owner, browser, push_service):
    other = subscribe(owner, push_service).then(503)
    first = sent(owner, tag="disk")
    sent(owner, tag="disk")
    found = detail(owner, first["id"])
    assert found["status"] == "delivered"
    assert {one["device"]: one["status"] for one in found["deliveries"]} == {
        browser.id: "delivered",
        other.id: "failed",
    }


def test_a_device_that_had_it_when_it_was_replaced_counts(service, owner, browser, monkeypatch):
    """Its provider's answer came after the newer one was recorded."""
    push_all = delivery.push_all

    def slow(attempts):
        answers = push_all(attempts)
        monkeypatch.setattr(delivery, "push_all", push_all)
        sent(owner, tag="disk", body="second")
        return answers

    monkeypatch.setattr(delivery, "push_all", slow)
    first = sent(owner, tag="disk", body="first")
    assert first["status"] == "delivered"
    assert [one["status"] for one in detail(owner, first["id"])["deliveries"]] == ["delivered"]


def test_a_replaced_notification_is_not_pushed_after_its_successor(owner, browser, monkeypatch):
    """Two of a tag that are stored at the same moment: the newest is what stays on the screen."""
    attempt = delivery._attempt

    def late(*what, **more):
        monkeypatch.setattr(delivery, "_attempt", attempt)
        sent(owner, tag="disk", body="second")
        return attempt(*what, **more)

    monkeypatch.setattr(delivery, "_attempt", late)
    assert sent(owner, tag="disk", body="first")["status"] == "failed"
    assert [message["notification"]["body"] for message in browser.messages] == ["second"]


def test_a_failed_notification_stays_failed_when_it_is_replaced(owner, browser):
    browser.then(410)
    sent(owner)
    first = sent(owner, tag="disk")
    assert first["status"] == "failed"
    sent(owner, tag="disk")
    assert detail(owner, first["id"])["status"] == "failed"


def test_the_newer_one_may_be_deleted(owner):
    first, second = sent(owner, tag="t"), sent(owner, tag="t")
    owner.delete(f"/notifications/{second['id']}")
    assert "replacedBy" not in detail(owner, first["id"])


@each(
    "statement, values, index",
    [
        (notifications.REPLACE, (9, 1, "t", 9, None), "notification_of_tag"),
        (notifications.replaced_with.__self__.statement, (1, "t", 9, 5), "notification_of_tag"),
        (notifications.expired.__self__.statement, (9, 500), "notification_expiring"),
    ],
)
@sqlite_only
def test_replaced_and_expired_notifications_are_found_by_an_index(service, statement, values, index):
    plan = " ".join(row[3] for row in database.run(f"EXPLAIN QUERY PLAN {statement}", values))
    assert index in plan and "SCAN notification" not in plan


# --- expiresAt ----------------------------------------------------------------------------------------------


EXPIRED = "It expired before this device had it."


def test_an_expired_notification_is_not_tried_again_and_fails_if_undelivered(service, owner, browser, moved_clock):
    browser.then(503).then(503).then(503)
    notification = sent(owner, expiresAt=moved_clock.ms + 70_000)
    every(service, moved_clock, 30)
    assert (len(browser.pushes), detail(owner, notification["id"])["status"]) == (2, "pending")
    every(service, moved_clock, 39)
    assert (len(browser.pushes), detail(owner, notification["id"])["status"]) == (2, "pending")
    every(service, moved_clock, 1)
    every(service, moved_clock, 3600)
    assert len(browser.pushes) == 2
    assert detail(owner, notification["id"]) == {
        **notification,
        "status": "failed",
        "deliveries": [{"device": browser.id, "kind": "webpush", "status": "failed", "error": EXPIRED}],
    }


def test_an_expired_notification_that_one_device_has_stays_delivered(
    service, owner, browser, push_service, moved_clock
):
    other = subscribe(owner, push_service).then(503)
    notification = sent(owner, expiresAt=moved_clock.ms + 10_000)
    assert notification["status"] == "delivered"
    every(service, moved_clock, 3600)
    found = detail(owner, notification["id"])
    assert (found["status"], len(other.pushes)) == ("delivered", 1)
    assert found["deliveries"][1] == {"device": other.id, "kind": "webpush", "status": "failed", "error": EXPIRED}


def test_a_device_that_no_provider_reaches_does_not_keep_it_pending(service, owner, moved_clock):
    assert owner.post("/devices", {"kind": "fcm", "token": "x"}).status_code == 201
    notification = sent(owner, expiresAt=moved_clock.ms + 10_000)
    assert notification["status"] == "pending"
    every(service, moved_clock, 10)
    assert detail(owner, notification["id"])["status"] == "failed"


def test_a_provider_that_asks_for_patience_is_not_asked_after_it(service, owner, browser, moved_clock):
    browser.then(429, Retry_After="60")
    notification = sent(owner, expiresAt=moved_clock.ms + 20_000)
    every(service, moved_clock, 61)
    assert (len(browser.pushes), detail(owner, notification["id"])["status"]) == (1, "failed")


# --- priority and devices -----------------------------------------------------------------------------------


def test_the_least_priority_is_for_the_history_alone_and_delivered_when_the_last_device_died(owner, browser):
    assert sent(owner, priority="min")["status"] == "delivered"
    assert detail(owner, sent(owner, priority=1)["id"])["deliveries"] == []
    assert browser.pushes == []
    browser.then(410)
    assert sent(owner)["status"] == "failed"
    assert sent(owner, priority=1)["status"] == "delivered"


def test_a_device_gets_its_least_priority_and_higher_ones(owner, push_service):
    browsers = {least: subscribe(owner, push_service, minPriority=least) for least in (1, 2, 3, 4, 5)}
    for priority in (1, 2, 3, 4, 5):
        assert sent(owner, priority=priority, body=str(priority))["status"] == "delivered"
    bodies = {
        least: [int(message["notification"]["body"]) for message in browser.messages]
        for least, browser in browsers.items()
    }
    assert bodies == {least: list(range(max(least, 2), 6)) for least in browsers}


def test_a_notification_that_no_device_may_get_is_delivered_when_stored(service, owner, push_service):
    browser = subscribe(owner, push_service, minPriority="high")
    notification = sent(owner)
    assert (notification["status"], detail(owner, notification["id"])["deliveries"]) == ("delivered", [])
    assert service.alert("--title", "x").post({}).json["status"] == "delivered"
    assert browser.pushes == []


def test_a_dead_device_beside_an_excluded_one_fails_nothing(owner, push_service):
    dead = subscribe(owner, push_service).then(410)
    subscribe(owner, push_service, minPriority=5)
    sent(owner)
    assert (len(dead.pushes), sent(owner)["status"]) == (1, "delivered")


def test_a_device_says_its_least_priority_unless_it_is_the_default(owner, push_service):
    subscribe(owner, push_service)
    browser = subscribe(owner, push_service, minPriority="urgent")
    first, second = owner.get("/devices").json["devices"]
    assert (first["minPriority"], "minPriority" in second) == (5, False)
    again = owner.post("/devices", {"kind": "webpush", "subscription": browser.subscription, "minPriority": 2}).json[
        "device"
    ]
    assert again == {**first, "minPriority": 2}
    kept = owner.post("/devices", {"kind": "webpush", "subscription": browser.subscription}).json["device"]
    assert kept == again


@each("wrong", [0, 6, True, 1.5, "5", "none", [], {}, 10**99])
def test_a_wrong_least_priority_is_refused_with_its_name(owner, push_service, wrong):
    subscription = push_service.browser().subscription
    answer = owner.post("/devices", {"kind": "webpush", "subscription": subscription, "minPriority": wrong})
    assert answer.status_code == 400 and answer.json["error"].startswith("minPriority must be")
    assert owner.get("/devices").json["devices"] == []
