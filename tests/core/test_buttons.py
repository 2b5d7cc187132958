"""Which buttons there are, and how long: recorded, retried, released, repeated, pruned."""

from core import buttons, derived_tokens, pruning
from models import sha256_of
from process import clock
from store import buttons as stored
from store import database
from tests.support.buttons import ANSWERS, paths, press
from tests.support.devices import subscribe
from tests.support.tables import query
from tests.support.times import DAY_S

FIELDS = {"title": "Deploy?", "body": "version 7", "actions": ANSWERS}


def ask(caller, **more):
    answer = caller.post("/notifications/send", {**FIELDS, **more})
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]["id"]


def rows(service):
    return query(
        service, "SELECT notification_seq, device_seq, position, expires_at FROM button ORDER BY 1, 2, 3 NULLS FIRST"
    )


def test_a_token_depends_on_secret_notification_device_and_place(service):
    made = {
        buttons.token_of(notification, device, place)
        for notification in ("n", "m")
        for device in ("d", "e")
        for place in (None, 0, 1)
    }
    assert len(made) == 12 and buttons.token_of("n", "d", None) == buttons.token_of("n", "d", None)
    derived_tokens.configure("another secret")
    assert buttons.token_of("n", "d", None) not in made


def test_a_retry_pushes_the_same_buttons(service, owner, browser, moved_clock):
    browser.then(503)
    ask(owner)
    kept = rows(service)
    moved_clock.advance(60)
    service.work()
    assert rows(service) == kept
    assert press(service, paths(browser)["Yes"]).status_code == 200


def test_what_is_sent_later_has_its_week_from_then_on_and_the_devices_of_then(
    service, owner, browser, push_service, moved_clock, passes
):
    ask(owner, deliverAt=moved_clock.ms + 30 * DAY_S * 1000)
    assert rows(service) == []
    later = subscribe(owner, push_service)
    passes(30 * DAY_S)
    assert {until for *_, until in rows(service)} == {moved_clock.ms + buttons.LIFE_MS}
    moved_clock.advance(6 * DAY_S)
    assert press(service, paths(later)["Yes"]).status_code == 200
    assert press(service, paths(browser)["No"]).status_code == 409


def test_a_repeat_pushes_the_same_buttons_and_gives_a_new_device_its_own(
    service, owner, browser, push_service, passes
):
    ask(owner, acknowledge={"everyS": 60, "forS": 600})
    first = paths(browser)
    assert list(first) == ["Acknowledge", "Yes", "No"]
    later = subscribe(owner, push_service)
    passes(61)
    assert len(browser.messages) == 2 and paths(browser) == first
    assert press(service, paths(later)["Acknowledge"]).status_code == 200


def test_an_answer_acknowledges_what_repeats(service, owner, browser, push_service, moved_clock, works, passes):
    other = subscribe(owner, push_service)
    ask(owner, acknowledge=True)
    pressed = paths(browser)["No"]
    assert press(service, pressed).status_code == 200
    assert query(service, "SELECT state, acknowledged_at, device_seq FROM alarm") == [
        ("acknowledged", moved_clock.ms, 1)
    ]
    works()
    told = other.messages[-1]["notification"]
    assert told["body"].startswith("Acknowledged") and "actions" not in told
    passes(3600)
    assert (len(browser.messages), len(other.messages)) == (1, 2)


def test_an_acknowledgement_leaves_the_answer_open_and_can_be_pressed_again(service, owner, browser, moved_clock):
    ask(owner, acknowledge=True)
    pressed = paths(browser)
    began = moved_clock.ms
    for _ in range(2):
        answer = press(service, pressed["Acknowledge"])
        assert (answer.status_code, answer.json) == (200, {"ok": True})
        moved_clock.advance(1)
    assert query(service, "SELECT acknowledged_at FROM alarm") == [(began,)]
    assert press(service, pressed["Yes"]).status_code == 200
    assert press(service, pressed["Acknowledge"]).status_code == 200


def test_expired_buttons_are_removed_in_pieces(service, owner, browser, moved_clock):
    ask(owner)
    with database.transaction(database.EVERYBODY):
        stored.add([(sha256_of(str(number)), 1, 1, 0, moved_clock.ms + number) for number in range(1_200)])
    moved_clock.advance(1.0)
    pruning.prune(clock.now_ms())
    assert query(service, "SELECT count(*) FROM button") == [(201,)]
    moved_clock.advance(0.5)
    pruning.prune(clock.now_ms())
    assert len(rows(service)) == 2
    moved_clock.advance(7 * DAY_S)
    pruning.prune(clock.now_ms())
    assert rows(service) == []
