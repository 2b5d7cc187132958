"""A notification's page: who answered, and the buttons for browsers that show none."""

import pytest

from tests.support.buttons import ANSWERS, paths, press
from tests.support.pages import Page, notification_page
from tests.support.rows import each
from tests.support.tables import everything
from tests.support.times import DAY_S

LOG = {"label": "Log <b>", "url": "https://example.org/log?a=b&c=“d”"}


@pytest.fixture
def asked(caller, browser):
    """The id of a question with a link."""
    fields = {"title": "Deploy?", "body": "version 7", "actions": [ANSWERS[0], LOG, ANSWERS[1]]}
    return caller.post("/notifications/send", fields).json["notification"]["id"]


def answer_of(caller, asked):
    return caller.get(f"/notifications/{asked}").json["notification"].get("answer")


def answer(owner, asked, **fields):
    return owner.post(f"/app/notifications/{asked}/answer", fields)


def test_the_page_has_a_button_for_each_answer_and_a_link_for_each_url(owner, caller, asked):
    page = notification_page(owner, asked)
    form = f"/app/notifications/{asked}/answer"
    assert page.forms("/answer") == [form, form] and page.hidden(form)["position"] == "0"
    assert [text for text in page.texts_of("button") if text in ("Yes", "No")] == ["Yes", "No"]
    (link,) = [one for one in page.all("a") if one["href"] == LOG["url"]]
    assert link["rel"] == "noopener noreferrer" and page.texts_of("a", href=LOG["url"]) == ["Log <b>"]


def test_an_answer_on_the_page_is_the_answer_of_no_device(owner, caller, asked, moved_clock):
    page = owner.done(f"/app/notifications/{asked}/answer", {"position": "2"}, f"/app/notifications/{asked}")
    assert answer_of(caller, asked) == {**ANSWERS[1], "at": moved_clock.ms, "device": None}
    assert "No, 2026-11-21 10:00:00, in the web app" in page.main
    assert page.forms("/answer") == [] and "Log <b>" in page.main


def test_an_answered_question_is_calm(owner, caller, browser):
    fields = {"title": "Deploy?", "body": "7", "actions": ANSWERS, "priority": "high"}
    asked = caller.post("/notifications/send", fields).json["notification"]["id"]
    assert "High priority" in notification_page(owner, asked).section("Deploy?").partition("Delete")[0]
    answer(owner, asked, position="0")
    page = notification_page(owner, asked)
    assert "High priority" not in page.main and "PriorityHigh" in page.main


def test_an_answer_on_a_device_is_shown_with_its_name(service, owner, caller, browser, asked, moved_clock):
    press(service, paths(browser)["Yes"])
    moved_clock.advance(DAY_S)
    page = notification_page(owner, asked)
    assert "Yes, 2026-11-21 10:00:00, on Chrome on Linux" in page.main and page.forms("/answer") == []


def test_the_second_answer_is_refused_with_a_sentence(service, owner, caller, browser, asked):
    press(service, paths(browser)["Yes"])
    page = owner.done(f"/app/notifications/{asked}/answer", {"position": "2"})
    assert page.said("alert") == ["This was already answered."] and answer_of(caller, asked)["label"] == "Yes"


@each("position", [None, "", "1", "3", "-1", "00", "x", "٢", "9" * 5000])
def test_what_is_no_answer_is_refused(owner, caller, asked, position):
    before = everything()
    refused = answer(owner, asked, **({} if position is None else {"position": position}))
    assert refused.status_code == 400 and Page(refused.text).said("alert") == ["The notification has no such button."]
    assert everything() == before


def test_a_notification_without_buttons_has_none_on_its_page(owner, caller):
    page = notification_page(owner, caller.send().json["notification"]["id"])
    assert page.forms("/answer") == [] and "Answered" not in page.main
