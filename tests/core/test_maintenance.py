"""Maintenance, a mute that comes again: what changes in silence within it, and what is told at its end."""

import pytest

from core import maintenance
from store.database import run
from tests.support.accounts import OWNER, account_set
from tests.support.heartbeats import Pinged, told
from tests.support.holding import digest_of, held, shown, statuses
from tests.support.mutes import mute, unmute
from tests.support.times import DAY_S, HOUR_S, MINUTE_S, local_ms

BEGIN, WITHIN, END = "2026-11-22T02:00", "2026-11-22T03:00", "2026-11-22T04:00"  # a Sunday


def maintain(caller, what="all", id_=None, cron="0 2 * * sun", for_s=2 * HOUR_S, **more):
    """Mute something each Sunday from 02:00 to 04:00, and return the mute as it is answered."""
    return mute(caller, what, id_, for_s, cron=cron, **more)


@pytest.fixture
def beat(service, owner, browser):
    """A heartbeat that is expected once a week."""
    return Pinged(service, owner, "--period", "7d")


# --- when it is in force --------------------------------------------------------------------------------------


def test_it_says_when_it_is_in_force_next_and_holds_each_time(service, owner, browser, until, works_at):
    made = maintain(owner)
    begin, end = local_ms(BEGIN, "UTC"), local_ms(END, "UTC")
    assert (made["cron"], made["forS"], made["from"], made["until"]) == ("0 2 * * sun", 7200, begin, end)
    hook = service.alert()
    assert hook.post({"message": "before"}).json["status"] == "delivered"
    for week in ("22", "29"):
        until(f"2026-11-{week}T02:00")
        held(hook, f"a{week}", f"b{week}")
        works_at(f"2026-11-{week}T04:00")
        assert shown(browser)[-1] == digest_of(f"Backups: a{week}", f"Backups: b{week}")
        assert hook.post({"message": f"after {week}"}).json["status"] == "delivered"


def test_it_is_in_the_accounts_time_zone_and_follows_it(owner, browser, moved_clock):
    account_set("--timezone", "Asia/Tokyo")
    made = maintain(owner)
    assert made["from"] == local_ms(BEGIN, "Asia/Tokyo")
    account_set("--timezone", "Europe/Berlin")
    assert owner.get("/mutes").json["mutes"][0]["from"] == local_ms(BEGIN, "Europe/Berlin")


# --- what changes in silence ----------------------------------------------------------------------------------


def test_what_is_still_down_at_its_end_is_told_once_then(owner, browser, beat, until, works, works_at):
    maintain(owner, urgentPasses=True)
    until(WITHIN)
    beat.ping("/fail")
    works()
    assert beat.state == "down" and told(owner) == [] == browser.messages
    works_at(END)
    assert told(owner) == [("Backup is down", "It reported a failure.")]
    assert shown(browser) == [("MCP - Backup is down", "It reported a failure.")]
    works()
    assert len(browser.messages) == 1 and run("SELECT count(*) FROM silent_change").fetchone()[0] == 0


@pytest.mark.parametrize(
    "before, within, titles",
    [
        ([], ["/fail", ""], []),
        (["/fail"], ["", "/fail", ""], ["Backup is down", "Backup is up"]),
        (["/fail"], ["", "/fail"], ["Backup is down"]),
    ],
)
def test_only_what_differs_from_before_it_is_told(owner, browser, beat, until, works_at, before, within, titles):
    maintain(owner)
    for signal in before:
        beat.ping(signal)
    until(WITHIN)
    for signal in within:
        beat.ping(signal)
    works_at(END)
    assert [title for title, _ in told(owner)] == titles


def test_a_deadline_that_passes_within_it_is_told_at_its_end(service, owner, browser, until, works_at):
    beat = Pinged(service, owner, "--period", "1h", "--grace", "1m", "--priority", "urgent")
    maintain(owner, "heartbeat", beat.id)
    until("2026-11-22T01:30")
    beat.ping()
    works_at(WITHIN)
    assert beat.state == "down" and told(owner) == []
    works_at(END)
    assert [title for title, _ in told(owner)] == ["Backup is down"]


def test_a_rule_fires_in_silence_and_is_told_if_it_still_does(owner, browser, rule, until, works_at):
    maintain(owner, "rule", owner.get("/rules").json["rules"][0]["id"])
    until(WITHIN)
    rule.sends(95)
    assert rule.state == "firing" and told(owner) == []
    works_at(END)
    assert [title for title, _ in told(owner)] == ["CPU is 95 %"]
    rule.sends(5)
    assert [title for title, _ in told(owner)] == ["CPU is 95 %", "CPU is ok: 5 %"]


def test_all_that_is_still_so_is_one_digest_with_what_was_held(service, owner, browser, beat, rule, until, works_at):
    maintain(owner)
    until(WITHIN)
    held(service.alert(), "a")
    beat.ping("/fail")
    rule.sends(95)
    works_at(END)
    assert shown(browser) == [
        digest_of("Backups: a", "Backup is down: It reported a failure.", "CPU is 95 %: Rule: > 90. Project: web.")
    ]


def test_a_heartbeat_that_is_not_maintained_tells_at_once(service, owner, browser, beat, until, works):
    other = Pinged(service, owner, "--period", "7d", name="Other")
    maintain(owner, "heartbeat", other.id)
    until(WITHIN)
    for one in (beat, other):
        one.ping("/fail")
    assert [title for title, _ in told(owner)] == ["Backup is down"]


def test_to_end_it_tells_within_a_round(owner, browser, beat, until, works):
    made = maintain(owner)
    until(WITHIN)
    beat.ping("/fail")
    unmute(owner, made)
    works()
    assert shown(browser) == [("MCP - Backup is down", "It reported a failure.")]


def test_quiet_hours_and_mutes_hold_what_is_told_at_its_end(owner, browser, beat, until, works_at):
    account_set("--quiet-hours", "22:00-07:00")
    maintain(owner)
    until(WITHIN)
    beat.ping("/fail")
    works_at(END)
    assert statuses(owner) == {"It reported a failure.": "held"} and browser.messages == []
    works_at("2026-11-22T07:00")
    assert [title for title, _ in shown(browser)] == ["MCP - Backup is down"]


def test_a_ping_between_its_end_and_the_next_round_is_told_once(owner, browser, beat, until, works):
    maintain(owner)
    until(WITHIN)
    beat.ping("/fail")
    until(END)
    beat.ping()
    works()
    assert told(owner) == []
    beat.ping("/fail")
    works()
    assert [title for title, _ in told(owner)] == ["Backup is down"]


def test_a_heartbeat_that_is_paused_then_is_told_when_it_is_resumed(owner, browser, beat, until, works, works_at):
    maintain(owner)
    until(WITHIN)
    beat.ping("/fail")
    beat.run("pause", beat.id)
    works_at(END)
    assert told(owner) == []
    beat.run("resume", beat.id)
    works()
    assert [title for title, _ in told(owner)] == ["Backup is down"]


@pytest.mark.parametrize("deed", ["heartbeat", "account"])
def test_what_is_deleted_is_not_told(service, owner, browser, beat, until, deed, works_at):
    maintain(owner)
    until(WITHIN)
    beat.ping("/fail")
    args = ("heartbeat", "delete", OWNER, beat.id) if deed == "heartbeat" else ("account", "delete", OWNER, "--yes")
    assert service.flask(*args).exit_code == 0
    works_at(END)
    assert browser.messages == [] and run("SELECT count(*) FROM silent_change").fetchone()[0] == 0


def test_of_two_processes_one_tells(owner, browser, beat, until, works, moved_clock, monkeypatch):
    maintain(owner)
    until(WITHIN)
    beat.ping("/fail")
    until(END)
    found = maintenance.silent_changes.everything()
    monkeypatch.setattr(maintenance.silent_changes, "everything", lambda: found)
    maintenance.tell_ended(moved_clock.ms)
    maintenance.tell_ended(moved_clock.ms)
    assert [title for title, _ in told(owner)] == ["Backup is down"]


def test_a_failing_account_does_not_keep_the_others_waiting(
    service, owner, pro, browser, until, monkeypatch, works_at
):
    hurt, other = Pinged(service, owner, "--period", "7d"), pro.post("/heartbeats", {"name": "B", "periodS": 604_800})
    maintain(owner)
    maintain(pro)
    until(WITHIN)
    hurt.ping("/fail")
    service.client.post(f"{other.json['heartbeat']['url'].partition('localhost')[2]}/fail")
    tell = maintenance._tell_ended
    monkeypatch.setattr(maintenance, "_tell_ended", lambda change: 1 / 0 if change.account_seq == 1 else tell(change))
    works_at(END)
    assert (told(owner), [title for title, _ in told(pro)]) == ([], ["B is down"])


def test_a_clock_that_is_set_back_into_it_and_out_of_it_again_tells_once(
    owner, browser, beat, until, works, moved_clock, works_at
):
    maintain(owner)
    until(WITHIN)
    beat.ping("/fail")
    moved_clock.set_wall(moved_clock.ms - 2 * HOUR_S * 1000)
    works()
    assert [title for title, _ in told(owner)] == ["Backup is down"]
    works_at(END)
    assert len(told(owner)) == 1


def test_one_that_covers_a_day_ends_each_day_only_if_it_says_so(owner, moved_clock):
    maintain(owner, cron="0 0 * * *", for_s=DAY_S - MINUTE_S)
    assert owner.get("/mutes").json["mutes"][0]["until"] == local_ms("2026-11-21T23:59", "UTC")
