"""How the rows of the history look: in two lines or, for an account that asks for it, in one."""

from dashboard import history
from tests.support.accounts import OTHER
from tests.support.pages import HISTORY, event, sent
from tests.support.times import DAY_S


def is_dense(page):
    """Whether the rows are in one line."""
    return next(rows["class"].split() for rows in page.all("ul") if "rows" in rows.get("class", "")) == [
        "rows",
        "dense",
    ]


def test_an_account_can_switch_to_dense_rows_with_the_whole_width_and_back_for_itself_alone(
    service, owner, stranger, caller
):
    sent(caller, "Bell")
    sent(service.caller(email=OTHER), "Bell")
    assert not is_dense(owner.page(HISTORY))
    page = owner.done(f"{HISTORY}/rows", {"dense": "1"}, leads_to=HISTORY)
    assert is_dense(page) and not is_dense(stranger.page(HISTORY))
    assert "Who rang" not in page.main and "Last 14 days" not in page.main
    assert not is_dense(owner.done(f"{HISTORY}/rows", {"dense": "0"}))


def test_switching_dense_rows_keeps_filters_and_page(owner, caller):
    sent(caller, "Bell", "Door")
    page = owner.page(f"{HISTORY}?search=bell")
    (form,) = [one["action"] for one in page.all("form") if "/rows" in one["action"]]
    assert owner.post(form, {"dense": "1"}).location == f"{HISTORY}?search=bell"


# --- what stands beside the list ----------------------------------------------------------------------------


def rang(page):
    """The top senders of the last days, with their counts."""
    return page.section("Who rang in the last 7 days").removeprefix("Who rang in the last 7 days").strip()


def test_the_top_senders_of_the_last_days_link_to_their_notifications(service, owner, moved_clock):
    nas, laptop = service.caller(name="nas"), service.caller(name="laptop")
    sent(laptop, "too long ago")
    moved_clock.advance(7 * DAY_S)
    sent(nas, "a", "b")
    ids = sent(laptop, "c")
    page = owner.page(HISTORY)
    assert rang(page) == "nas 2 notifications laptop 1 notification"
    of_laptop = [one["href"] for one in page.all("a") if "sender=" in one.get("href", "")][1]
    assert owner.page(of_laptop).rows() == ids


def test_failed_notifications_are_counted_beside_their_sender(owner, caller, browser):
    browser.then(400)
    sent(caller, "Bell")
    sent(caller, "Bell")
    page = owner.page(HISTORY)
    assert rang(page) == "backup script 1 failed · 2 notifications"
    assert "Today: 2 notifications, 1 failed" in [one.get("aria-label") for one in page.all("a")]


def test_the_top_senders_include_no_deleted_alert_and_no_other_account(service, owner, stranger, hook, caller):
    sent(service.caller(email=OTHER), "Bell")
    event(hook)
    sent(caller, "Bell")
    owner.post(f"/app/alerts/{hook.id}/delete")
    assert rang(owner.page(HISTORY)) == "backup script 1 notification"


def test_top_senders_of_only_the_newest_notifications_are_labelled_so(owner, caller, monkeypatch):
    sent(caller, "Bell", "Door")
    assert "of the newest" not in owner.page(HISTORY).main
    monkeypatch.setattr(history, "MAX_COUNTED", 2)
    assert rang(owner.page(HISTORY)) == "of the newest 2backup script 2 notifications"


def test_a_phone_gets_no_list_of_top_senders(owner, caller):
    sent(caller, "Bell")
    phone = owner.get(HISTORY, headers={"User-Agent": "Mobile"}).text
    assert "Who rang" not in phone and "Bell" in phone
