"""Buttons that answer: the address of a button, the first answer, what is refused, the page."""

from unittest.mock import ANY

from core.buttons import LIFE_MS
from tests.support.alarms import detail
from tests.support.buttons import ANSWERS, paths, press
from tests.support.devices import subscribe
from tests.support.pages import Page
from tests.support.rows import each
from tests.support.tables import everything, query
from tests.support.times import DAY_S
from tests.support.webhooks import answered

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
NO_BUTTON = "There is no such button: it may be older than a week, or its notification was deleted."


def ask(caller, **more):
    """Send a question, and return its id."""
    fields = {"title": "Deploy?", "body": "version 7", "actions": ANSWERS, **more}
    answer = caller.post("/notifications/send", fields)
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]["id"]


def refused(status, sentence=ANY):
    code = {404: "NOT_FOUND", 429: "RATE_LIMIT_EXCEEDED"}.get(status, "VALIDATION_ERROR")
    return status, {"ok": False, "error": sentence, "code": code, "statusCode": status}


# --- answering ----------------------------------------------------------------------------------------------


def test_a_press_is_the_answer_and_says_where_it_was_pressed(service, owner, browser, moved_clock):
    id_ = ask(owner)
    moved_clock.advance(5)
    assert answered(press(service, paths(browser)["Yes"])) == (200, {"ok": True})
    (device,) = owner.get("/devices").json["devices"]
    expected = {"label": "Yes", "answer": "y", "at": moved_clock.ms, "device": device["id"]}
    assert detail(owner, id_)["answer"] == expected


def test_the_first_answer_wins(service, owner, browser, push_service):
    other = subscribe(owner, push_service)
    id_ = ask(owner)
    assert press(service, paths(other)["No"]).status_code == 200
    for path in (paths(browser)["Yes"], paths(browser)["No"], paths(other)["No"], paths(other)["Yes"]):
        assert answered(press(service, path)) == refused(409, "This was already answered.")
    assert detail(owner, id_)["answer"]["label"] == "No"
    assert "answer" not in detail(owner, ask(owner))


def test_a_question_that_was_answered_is_not_retried_on_the_other_devices(
    service, owner, browser, push_service, passes
):
    other = subscribe(owner, push_service).then(503)
    id_ = ask(owner)
    assert press(service, paths(browser)["Yes"]).status_code == 200
    delivery = detail(owner, id_)["deliveries"][1]
    assert (delivery["status"], delivery["error"]) == ("failed", "It was answered before this device had it.")
    passes(DAY_S)
    assert (len(other.pushes), detail(owner, id_)["status"]) == (1, "delivered")


def test_the_database_holds_no_token(service, owner, browser):
    ask(owner)
    kept = str(everything())
    for path in paths(browser).values():
        assert path.removeprefix("/a/") not in kept


def test_without_buttons_there_are_no_actions_and_no_rows(service, owner, browser):
    owner.send()
    assert "actions" not in browser.messages[-1]["notification"]
    assert query(service, "SELECT * FROM button") == []


# --- what is refused ----------------------------------------------------------------------------------------


@each("method", ["POST", "GET"])
def test_an_unknown_token_is_404_and_malformed_ones_too(service, owner, browser, method):
    ask(owner)
    good = paths(browser)["Yes"]
    for path in (
        "/a/" + "A" * 22,
        good[:-1],
        good + "A",
        good + "/",
        good + "/x",
        "/a/é",
        "/a/%00",
        "/a/" + "x" * 5000,
    ):
        assert answered(press(service, path, method)) == refused(404, NO_BUTTON), path


def test_a_token_is_good_for_a_week(service, owner, browser, moved_clock):
    id_ = ask(owner)
    moved_clock.advance(LIFE_MS / 1000 - 1)
    assert press(service, paths(browser)["Yes"], "GET").status_code == 200
    moved_clock.advance(1)
    for method in ("GET", "POST"):
        assert answered(press(service, paths(browser)["Yes"], method)) == refused(404, NO_BUTTON)
    assert "answer" not in detail(owner, id_)


def test_buttons_go_with_their_notification_and_their_device(service, owner, browser, push_service):
    other = subscribe(owner, push_service)
    id_ = ask(owner)
    first = owner.get("/devices").json["devices"][0]["id"]
    owner.delete(f"/devices/{first}")
    statuses = sorted(press(service, paths(one)["Yes"], "GET").status_code for one in (browser, other))
    assert statuses == [200, 404]
    owner.delete(f"/notifications/{id_}")
    assert {press(service, paths(one)["Yes"]).status_code for one in (browser, other)} == {404}
    assert query(service, "SELECT * FROM button") == query(service, "SELECT * FROM answer") == []


def test_a_sender_has_sixty_tries_a_minute_pages_and_presses_together(service, owner, browser, moved_clock):
    id_ = ask(owner)
    tried = [
        press(service, paths(browser)["Yes"] if n % 2 else "/a/x", ("GET", "POST")[n % 4 < 2]) for n in range(60)
    ]
    assert 429 not in {answer.status_code for answer in tried}
    moved_clock.advance(20)
    for method in ("GET", "POST"):
        answer = press(service, paths(browser)["No"], method)
        assert answered(answer) == refused(429) and answer.headers["Retry-After"] == "40"
    assert press(service, paths(browser)["No"], address="203.0.113.8").status_code == 409
    moved_clock.advance(40.1)
    assert press(service, paths(browser)["No"]).status_code == 409
    assert detail(owner, id_)["answer"]["label"] == "Yes"


def test_the_body_is_ignored_and_must_be_small(service, owner, browser):
    ask(owner)
    path = paths(browser)["Yes"]
    assert answered(press(service, path, data=b"x" * 16_385)) == refused(413)
    assert answered(press(service, path, data=b'{"answer": "n"', content_type="application/json")) == (
        200,
        {"ok": True},
    )


# --- the page -----------------------------------------------------------------------------------------------


def test_the_page_has_the_title_and_a_form_that_is_the_button_and_changes_nothing(service, owner, browser):
    id_ = ask(owner, title="<b>Deploy</b>?", actions=[{"label": "“Yes” <i>", "answer": "y"}, ANSWERS[1]])
    path = paths(browser)["“Yes” <i>"]
    before = everything()
    for method in ("GET", "HEAD", "GET"):
        answer = press(service, path, method, headers=BROWSER)
        assert answer.status_code == 200 and answer.content_type == "text/html; charset=utf-8"
    page = Page(answer.text)
    assert page.texts_of("h1") == ["<b>Deploy</b>?"] and page.texts_of("button") == ["“Yes” <i>"]
    assert page.all("form") == [{"method": "post", "action": path}]
    assert everything() == before and "answer" not in detail(owner, id_)


def test_a_browser_that_presses_gets_a_page(service, owner, browser):
    ask(owner)
    yes, no = paths(browser)["Yes"], paths(browser)["No"]
    first = press(service, yes, headers=BROWSER)
    assert first.status_code == 200 and Page(first.text).said("status") == ["Answered: Yes"]
    late = press(service, no, headers=BROWSER)
    assert late.status_code == 409 and Page(late.text).said("alert") == ["This was already answered."]
    shown = Page(press(service, no, "GET", headers=BROWSER).text)
    assert shown.said("status") == ["Answered: Yes"] and shown.all("form") == []
    unknown = press(service, "/a/x", headers=BROWSER)
    assert unknown.status_code == 404 and Page(unknown.text).said("alert") == [NO_BUTTON]


def test_the_page_of_acknowledge_says_that_it_was_even_if_a_newer_notification_replaced_it(service, owner, browser):
    for is_replaced in (False, True):
        ask(owner, acknowledge=True, tag="disk")
        path = paths(browser)["Acknowledge"]
        assert Page(press(service, path, "GET", headers=BROWSER).text).texts_of("button") == ["Acknowledge"]
        if is_replaced:
            ask(owner, tag="disk")
        for _ in range(2):
            assert Page(press(service, path, headers=BROWSER).text).said("status") == ["Acknowledged."]


@each("method", ["GET", "HEAD", "POST"])
@each("is_known", [True, False])
def test_the_address_of_an_answer_sends_no_referrer_and_sets_no_cookie(service, owner, browser, method, is_known):
    ask(owner)
    headers = press(service, paths(browser)["Yes"] if is_known else "/a/x", method, headers=BROWSER).headers
    assert (headers["Referrer-Policy"], headers["Cache-Control"]) == ("no-referrer", "no-store")
    assert "Set-Cookie" not in headers and "form-action 'self'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_session_is_not_looked_at(service, owner, browser):
    ask(owner)
    answer = press(
        service, paths(browser)["Yes"], headers={"Cookie": "pocketbell=x", "Origin": "https://evil.example"}
    )
    assert answered(answer) == (200, {"ok": True})
