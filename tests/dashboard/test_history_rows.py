"""How the rows of the history look: in two lines or, for an account that asks for it, in one."""

from tests.support.accounts import OTHER
from tests.support.pages import HISTORY, sent


def is_dense(page):
    """Whether the rows are in one line."""
    return [rows["class"].split() for rows in page.all("ul") if "rows" in rows.get("class", "").split()] == [
        ["rows", "dense"]
    ]


def test_an_account_asks_for_rows_of_one_line_and_back(owner, caller):
    sent(caller, "Bell")
    assert not is_dense(owner.page(HISTORY))
    assert is_dense(owner.done(f"{HISTORY}/rows", {"dense": "1"}, leads_to=HISTORY))
    assert not is_dense(owner.done(f"{HISTORY}/rows", {"dense": "0"}))


def test_it_holds_in_every_browser_of_the_account_alone(service, owner, stranger, caller):
    sent(caller, "Bell")
    sent(service.caller(email=OTHER), "Bell")
    owner.done(f"{HISTORY}/rows", {"dense": "1"})
    assert not is_dense(stranger.page(HISTORY))


def test_the_filters_and_the_page_stay(owner, caller):
    sent(caller, "Bell", "Door")
    page = owner.page(f"{HISTORY}?search=bell")
    (form,) = [one["action"] for one in page.all("form") if "/rows" in one["action"]]
    assert owner.post(form, {"dense": "1"}).location == f"{HISTORY}?search=bell"
