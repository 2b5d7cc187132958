"""The pages of heartbeats."""

import re

import pytest

from core.heartbeat_checks import KEPT_PINGS
from dashboard import watches
from models import Account
from store.database import EVERYBODY, transaction
from store.heartbeats import newest_pings
from tests.support.commands import lines_of
from tests.support.heartbeats import EMAIL, Pinged
from tests.support.times import HOUR_S, MINUTE_S

FORM = {"name": "Mail", "period": "", "cron": "0 3 * * *", "grace": "1h", "priority": "urgent"}


@pytest.fixture
def path(owner, beat):
    """The address of a heartbeat's page, which the owner has opened."""
    owner.get(f"/app/watches/{beat.id}")
    return f"/app/watches/{beat.id}"


def settings_of(service):
    """Name, schedule, grace and priority of every heartbeat."""
    return [[line[1], *line[3:6]] for line in lines_of(service, "heartbeat", "list", EMAIL)]


def test_the_form_makes_a_heartbeat_and_shows_its_address(service, owner):
    owner.get("/app/watches")
    page = owner.page(owner.post("/app/watches/new", FORM).location)
    (line,) = lines_of(service, "heartbeat", "list", EMAIL)
    assert settings_of(service) == [["Mail", "0 3 * * *", "1h", "5"]]
    address = line[-1].replace("http://127.0.0.1:8000", "http://localhost")
    assert page.texts_of("code", id="url") == [address]
    assert all(
        address in text for name in ("in-curl", "in-cron", "in-systemd") for text in page.texts_of("code", id=name)
    )


def test_the_list_begins_with_heartbeats_that_are_down_and_shows_the_latest_pings(service, owner, moved_clock):
    good, bad = (Pinged(service, owner, "--period", "1h", name=name) for name in ("Good", "Bad"))
    Pinged(service, owner, "--period", "1h", name="<b>New</b>")
    for signal in ("", "/start", "/0"):
        good.ping(signal)
    bad.ping("/fail")
    page = owner.page("/app/watches")
    rows = [row.text for row in page.row_links()]
    names = ("Bad", "Up: Good", "<b>New</b>")
    assert [row.startswith(name) for row, name in zip(rows, names, strict=True)] == [True] * 3
    assert "Down since 10:00 · failed · every hour" in rows[0] and "just now" in rows[1]
    assert "Waiting for the first ping" in rows[2] and all("every hour" in row for row in rows)
    strips = [one.attributes["aria-label"] for one in page.elements if one.attributes.get("class") == "pings"]
    assert strips == ["Last ping, 1 failed", "Last 2 pings, none failed", "No pings yet"]


def test_thirty_runs_that_also_say_when_they_start_fill_all_slots(beat, owner, moved_clock):
    for _ in range(31):
        for signal in ("/start", ""):
            beat.ping(signal)
            moved_clock.advance(2)
    page = owner.page("/app/watches")
    (strip,) = [one.attributes["aria-label"] for one in page.elements if one.attributes.get("class") == "pings"]
    assert strip == "Last 30 pings, none failed"


def test_the_form_of_a_heartbeat_stands_behind_edit(owner, beat, path):
    page = owner.page(path)
    assert [form for form in page.forms(path) if "mutes" not in form] == []
    (edit,) = [one["href"] for one in page.all("a") if "edit" in one.get("href", "")]
    assert path in owner.page(edit.partition("#")[0]).forms(path)


def test_uptime_and_run_time_are_listed_and_on_the_page(owner, beat, path, moved_clock):
    for signal, later_s in (("/start", 725), ("", HOUR_S / 2), ("/fail", HOUR_S / 2)):
        beat.ping(signal)
        moved_clock.advance(later_s)
    (row,) = [row.text for row in owner.page("/app/watches").row_links()]
    assert "uptime 50 %" in row and "run time 12 min 5 s" in row
    text = owner.page(path).text
    assert "Uptime, 30 days50 %" in text.replace(" Uptime", "Uptime") and "12 min 5 s · " in text
    assert "Down since 10:42" in text and "failed" in text


def test_a_late_ping_says_by_how_much_and_when_it_came(service, owner, beat, path, moved_clock):
    beat.ping()
    for later_s in (HOUR_S, 10 * MINUTE_S):  # the time of the ping that is missing, and its grace period
        moved_clock.advance(later_s)
        service.work()
    moved_clock.advance(5 * MINUTE_S)
    beat.ping()
    text = owner.page(path).section("Pings")
    assert "Late by 15 min11:15" in text and "Success10:00" in text


def test_a_cron_expression_is_told_in_words_beside_itself(owner, path):
    page = owner.done(path, FORM)
    assert "every day at 03:00 0 3 * * *" in page.text


def test_the_page_shows_the_texts_of_the_pings_as_text_the_newest_first(owner, beat, path):
    beat.ping("/4")
    beat.ping("/3", data="<script>alert(1)</script>\nline 2")
    page = owner.page(path)
    assert 0 < page.text.index("Failed with exit code 3") < page.text.index("Failed with exit code 4")
    assert "<script>alert(1)</script> line 2" in " ".join(page.texts_of("pre")[0].split())
    assert "<script>alert(1)" not in owner.get(path).text


def test_pings_keep_their_outcomes_if_another_one_comes_while_the_page_is_made(
    owner, beat, path, moved_clock, monkeypatch
):
    for number in range(KEPT_PINGS):
        beat.ping("" if number else "/fail")
        moved_clock.advance(2)
    monkeypatch.setattr(watches, "newest_pings", lambda seq: (newest_pings(seq), beat.ping())[0])
    assert "Failed" in owner.page(path).text


def test_saving_changes_the_settings(service, owner, path):
    owner.done(path, FORM)
    assert settings_of(service) == [["Mail", "0 3 * * *", "1h", "5"]]
    page = owner.refused(path, {**FORM, "cron": "x"})
    assert page.value("cron") == "x" and settings_of(service) == [["Mail", "0 3 * * *", "1h", "5"]]


def test_renaming_a_heartbeat_does_not_restart_its_period(service, owner, beat, path, moved_clock):
    beat.ping()
    moved_clock.advance(HOUR_S / 2)
    owner.done(path, {"name": "Other", "period": "1h", "cron": "", "grace": "10m", "priority": "high"})
    (line,) = lines_of(service, "heartbeat", "list", EMAIL)
    assert (line[1], line[7]) == ("Other", "2026-11-21T11:00:00Z")


def test_a_heartbeat_is_paused_resumed_and_deleted_with_a_confirmation(service, owner, path):
    owner.done(f"{path}/switch", {"on": "0"}, leads_to=path)
    page = owner.page("/app/watches")
    (form,) = page.forms("/switch?back=/app/watches")
    resumed = owner.done(form, {"on": "1"}, leads_to="/app/watches")
    assert "Waiting for the first ping" in resumed.text
    assert "This cannot be undone" in owner.page(path).confirmation(f"{path}/delete")
    owner.post(f"{path}/delete")
    assert (settings_of(service), owner.get(path).status_code) == ([], 404)


def test_home_warns_of_heartbeats_that_are_down(owner, beat, path):
    assert "is down Failed" not in owner.page("/app/").text
    beat.ping("/fail")
    page = owner.page("/app/")
    assert "Backup is down Failed · since today 10:00" in page.text
    assert path in [link["href"] for link in page.all("a")]
    beat.ping()
    assert "is down Failed" not in owner.page("/app/").text


def test_the_ping_key_is_created_shown_and_replaced(service, owner):
    with transaction(EVERYBODY):
        Account.change(1, ping_key=None)  # of an older version
    assert "Create ping key" in owner.get("/app/watches").text
    assert owner.post("/app/watches/key").location == "/app/watches"
    (shown,) = owner.page("/app/watches").texts_of("code", id="by-key")
    assert re.fullmatch(r"http://localhost/ping/[0-9A-Za-z]{22}/nightly-backup\?create=1", shown)
    owner.post("/app/watches/key")
    assert owner.page("/app/watches").texts_of("code", id="by-key") != [shown]
