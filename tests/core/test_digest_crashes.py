"""Digests through crashes, restarts, clocks that are set back and several workers: each event once."""

from contextlib import suppress

import pytest

import models
import push
from store import database, held_notifications
from tests.support.holding import MORNING, digest_of, held, shown, statuses
from tests.support.postgresql import sqlite_only
from tests.support.tables import FULL, alter

# Crashes, restarts, two workers at once


def restarted(owner, make_service, push_service):
    """Open the service again as a new process would."""
    owner.service = make_service(WEBPUSH_HOSTS=push_service.origin)
    return owner.service


def test_held_notifications_survive_a_restart(service, owner, browser, make_service, push_service, night, until):
    held(service.alert(), "a", "b")
    again = restarted(owner, make_service, push_service)
    again.work()
    assert statuses(owner) == {"a": "held", "b": "held"}
    until(MORNING)
    again.work()
    again.work()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


@pytest.mark.parametrize("messages", [("a",), ("a", "b", "c")])
def test_a_crash_after_the_push_repeats_it_under_the_same_tag(
    service, owner, browser, make_service, push_service, night, until, moved_clock, monkeypatch, messages
):
    def take_and_crash(*args, sent=push.send, **more):
        sent(*args, **more)
        raise KeyboardInterrupt

    held(service.alert(), *messages)
    until(MORNING)
    with monkeypatch.context() as patched:
        patched.setattr(push, "send", take_and_crash)
        for _ in range(2):
            with suppress(KeyboardInterrupt):
                service.work()
    assert len(browser.messages) == 1
    again = restarted(owner, make_service, push_service)
    moved_clock.advance(30)
    again.work()
    again.work()
    first, second = browser.messages
    assert first == second
    assert statuses(owner) == dict.fromkeys(messages, "delivered")


def test_a_release_that_cannot_be_written_releases_nothing_and_comes_later(
    service, owner, browser, night, until, works
):
    held(service.alert(), "a", "b")
    until(MORNING)
    alter(service, f"CREATE TRIGGER full BEFORE UPDATE ON held {FULL}")
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "held", "b": "held"}, [])
    alter(service, "DROP TRIGGER full")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_a_failing_release_of_one_account_does_not_delay_others(service, owner, browser, night, morning):
    service.account("other@example.org")
    service.flask("account", "set", "other@example.org", "--quiet-hours", "22:00-07:00")
    held(service.alert(email="other@example.org"), "x")
    held(service.alert(), "a")
    with database.transaction(database.EVERYBODY):
        models.Account.update(time_zone="Atlantis/Lost").where(models.Account.email == "other@example.org").execute()
    morning()
    assert statuses(owner) == {"a": "delivered"}


@pytest.mark.parametrize("back_ms, status", [(1_500, "held"), (86_400_000, "delivered")])
def test_a_clock_that_is_set_back_a_little_ends_no_digest_and_one_set_back_far_releases_it(
    service, owner, works, moved_clock, back_ms, status
):
    hook = service.alert("--frequency", "1h")
    hook.post({"message": "a"})
    moved_clock.set_wall(moved_clock.ms - back_ms)
    works()
    assert statuses(owner) == {"a": status}


@sqlite_only
def test_releasing_many_notifications_writes_no_row_with_their_texts(service, browser):
    """Writing rows with their texts again takes long, while others wait."""
    for statement in (held_notifications.OLDEST.statement, held_notifications.PUT_IN_DIGEST):
        values = (1, "[1]", 1)[: statement.count("?")]
        plan = " ".join(row[3] for row in database.run(f"EXPLAIN QUERY PLAN {statement}", values))
        assert " notification " not in plan and "SCAN held" not in plan
