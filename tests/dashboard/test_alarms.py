"""What repeats, what is sent later and what is deleted, in the web app."""

import pytest

from store import alarms
from store.database import EVERYBODY, run, transaction
from tests.support.alarms import every, ring, rung, send_at
from tests.support.mutes import mute, unmute
from tests.support.pages import HISTORY, notification_page
from tests.support.rows import each
from tests.support.times import HOUR_S

REPEATS = "Repeats until acknowledged"


@pytest.fixture
def rings(caller, browser):
    """The id of a notification that repeats each minute, at most 50 times."""
    return ring(caller)


def part(page):
    return next(e.text for e in page.elements if e.attributes.get("aria-label") == REPEATS)


def part_of(owner, id_):
    return part(notification_page(owner, id_))


def acknowledged(owner, id_):
    return owner.done(f"{HISTORY}/{id_}/acknowledge", leads_to=f"{HISTORY}/{id_}")


# --- repeating ----------------------------------------------------------------------------------------------


def test_a_waiting_alarms_page_shows_its_repeats_and_acknowledges_it(
    service, owner, caller, browser, rings, moved_clock
):
    assert part_of(owner, rings) == (
        "Ringing every 1 min until 10:50Acknowledging stops it on every device. Acknowledge"
    )
    every(service, moved_clock, 60, 2)
    assert part_of(owner, rings).startswith("Ringing every 1 min until 10:50Repeated 2 times. Ack")
    page = acknowledged(owner, rings)
    assert "Acknowledged2026-11-21 10:02:00" in page.main
    assert part(page) == "Acknowledged · just now in the web app or through the API after 2 repeats"
    assert rung(caller, rings) == ("acknowledged", 2)
    every(service, moved_clock, 60, 3)
    assert [one["notification"]["body"] for one in browser.messages] == ["full"] * 3 + ["Acknowledged."]


def test_an_alarms_page_names_the_device_that_acknowledged_it(owner, rings, moved_clock):
    account_seq, device_seq, seq = run("SELECT account_seq, seq, 1 FROM device").fetchone()
    with transaction(EVERYBODY):
        now = moved_clock.ms
        assert alarms.acknowledge(account=account_seq, seq=seq, device=device_seq, by=None, now=now)
    assert part_of(owner, rings) == "Acknowledged · just now on Chrome on Linux"


def test_an_expired_alarms_page_says_so_and_can_still_acknowledge_it(service, owner, caller, browser, moved_clock):
    id_ = ring(caller, every_s=30, for_s=30)
    every(service, moved_clock, 30, 2)
    assert part_of(owner, id_) == "It stopped repeating after 1 repeatNobody acknowledged it. Acknowledge"
    assert "Acknowledged2026-11-21 10:01:00" in acknowledged(owner, id_).text


def test_a_replaced_alarms_page_says_so_and_has_no_button(owner, caller, browser):
    id_ = ring(caller, tag="disk")
    ring(caller, tag="disk")
    page = notification_page(owner, id_)
    assert part(page) == "A newer notification replaced itNobody had acknowledged it."
    assert page.forms("/acknowledge") == []


def test_a_scheduled_alarms_page_says_from_when_it_repeats(owner, caller, moved_clock):
    id_ = send_at(caller, moved_clock.ms + 90_000, acknowledge={"everyS": 300, "forS": 10_800})
    said = "It will repeat every 5 min for 3 hOnce delivered, until somebody acknowledges it. Acknowledge"
    assert part_of(owner, id_) == said


def test_the_history_marks_waiting_alarms(owner, caller, rings):
    caller.send()
    assert owner.page(HISTORY).text.count("Not acknowledged") == 1
    owner.post(f"{HISTORY}/{rings}/acknowledge")
    assert "Not acknowledged" not in owner.page(HISTORY).text


def test_a_notification_that_does_not_repeat_says_only_when_it_was_acknowledged(owner, caller):
    sent = caller.send().json["notification"]["id"]
    page = notification_page(owner, sent)
    assert REPEATS not in page.values() and "Acknowledged" not in page.main
    page = acknowledged(owner, sent)
    assert REPEATS not in page.values() and "Acknowledged · just now in the web app or through the API" in page.main


# --- sent later ---------------------------------------------------------------------------------------------


def test_a_scheduled_notification_says_when_it_is_sent(service, owner, caller, browser, moved_clock):
    id_ = send_at(caller, moved_clock.ms + HOUR_S * 1000)
    page = notification_page(owner, id_)
    assert "StatusHeld until 11:00" in page.main and "Scheduledfor 2026-11-21 11:00:00" in page.main
    assert page.section("Devices") == "Devices Not sent yet: it is held."
    assert "Held until 11:00" in owner.page(HISTORY).text
    muted = mute(caller, cron="30 10 * * *", for_s=HOUR_S)
    assert "Held until 11:30" in owner.page(HISTORY).text
    unmute(caller, muted)
    every(service, moved_clock, HOUR_S)
    service.work()
    page = notification_page(owner, id_)
    assert "StatusDelivered" in page.main and "Helduntil 2026-11-21 11:00:00" in page.main
    assert "Held" not in owner.page(HISTORY).text


def test_a_scheduled_notification_is_not_listed_as_held_nor_delivered_by_deliver_now(
    service, owner, caller, held, moved_clock
):
    send_at(caller, moved_clock.ms + HOUR_S * 1000)
    assert "Nothing is held." in owner.page("/app/quiet").main
    held("a")
    assert "1 held now" in owner.page("/app/quiet").main
    assert owner.post("/app/quiet/deliver").location == "/app/quiet"
    assert [one["status"] for one in caller.listed()] == ["pending", "held"]


def test_a_scheduled_notification_replaced_before_its_time_says_so(owner, caller, browser, moved_clock):
    first, _ = (send_at(caller, moved_clock.ms + 90_000, tag="t") for _ in range(2))
    said = "Not sent: a newer notification replaced it before it was due."
    assert said in notification_page(owner, first).section("Devices")


def test_a_scheduled_notification_expired_before_its_time_says_so(service, owner, caller, browser, moved_clock):
    id_ = send_at(caller, moved_clock.ms + 90_000, expiresAt=moved_clock.ms + 91_000)
    every(service, moved_clock, 100)
    said = "Not sent: it had expired before Pocketbell could send it."
    assert said in notification_page(owner, id_).section("Devices")


# --- deleting -----------------------------------------------------------------------------------------------


def test_a_notification_is_deleted_after_a_confirmation(owner, caller, browser):
    sent = caller.send().json["notification"]["id"]
    page, action = notification_page(owner, sent), f"{HISTORY}/{sent}/delete"
    assert page.confirmation(action) == "Delete… BackupIt is removed from the history for good.Delete"
    page = owner.done(action, leads_to=HISTORY)
    assert "Notification deleted." in page.text and page.rows() == []
    assert owner.get(f"{HISTORY}/{sent}").status_code == 404


@each("why", ["held", "pending", "repeating"])
def test_deleting_a_waiting_notification_cancels_it(service, owner, caller, browser, moved_clock, why):
    if why == "held":
        id_ = send_at(caller, moved_clock.ms + 30_000)
    else:
        browser.then(503 if why == "pending" else 201)
        id_ = caller.send().json["notification"]["id"] if why == "pending" else ring(caller, every_s=30)
    page, action = notification_page(owner, id_), f"{HISTORY}/{id_}/delete"
    said = "It will not be sent, and is removed from the history for good."
    assert page.confirmation(action) == f"Cancel and delete… {page.texts_of('h1')[0]}{said}Cancel and delete"
    pushes = len(browser.pushes)
    assert owner.post(action).location == HISTORY
    every(service, moved_clock, 30, 2)
    assert len(browser.pushes) == pushes and caller.listed() == []


def test_a_digest_has_no_delete_button(service, owner, held, browser, moved_clock):
    held("a", "b")
    every(service, moved_clock, 3 * HOUR_S, 2)
    digest = browser.messages[-1]["notification"]["navigate"].rpartition("/")[2]
    assert notification_page(owner, digest).forms("/delete") == []
