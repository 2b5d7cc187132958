"""Mutes by command: what is named how, what is printed, what is refused."""

import json

import pytest

from tests.support.accounts import OWNER
from tests.support.commands import lines_of, printed, said
from tests.support.mutes import key_id
from tests.support.rows import each
from tests.support.times import DAY_MS, HOUR_S

MUTE = ("mute", OWNER)


def mutes(owner):
    return owner.get("/mutes").json["mutes"]


def test_everything_is_muted_for_a_duration_and_unmuted(service, owner, moved_clock):
    assert printed(service.flask(*MUTE, "all", "1h")) == "Muted everything until today 11:00."
    (muted,) = mutes(owner)
    assert (muted["what"], muted["until"], muted["mode"]) == ("all", moved_clock.ms + HOUR_S * 1000, "hold")
    assert printed(service.flask("unmute", OWNER, "all")) == "Ended 1 mute of everything."
    assert mutes(owner) == []
    assert said(service.flask("unmute", OWNER, "all")) == "Error: Everything is not muted."


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_sender_is_muted_by_its_id_or_its_name(service, owner, by):
    of = {
        "alert": (service.alert(name="Disk full").id, "Disk full"),
        "key": (key_id(owner), "test"),
        "heartbeat": (
            owner.post("/heartbeats", {"name": "Nightly", "periodS": 3600}).json["heartbeat"]["id"],
            "Nightly",
        ),
        "rule": (owner.post("/rules", {"project": "p", "metric": "cpu", "when": "> 1"}).json["rule"]["id"], "cpu"),
    }
    for what, (id_, name) in of.items():
        written = f"{what}:{id_ if by == 'id' else name}"
        assert printed(service.flask(*MUTE, written, "2h")) == f"Muted the {what} {name} until today 12:00."
        assert (mutes(owner)[0]["what"], mutes(owner)[0]["subject"]) == (what, id_)
        assert printed(service.flask("unmute", OWNER, written)) == f"Ended 1 mute of {written}."


def test_options_say_until_when_and_how(service, owner, moved_clock):
    service.flask("account", "set", OWNER, "--timezone", "Europe/Berlin")
    result = service.flask(*MUTE, "all", "--until", "2026-11-22T07:00", "--history", "--urgent-too")
    assert printed(result) == "Muted everything until tomorrow 07:00."
    (muted,) = mutes(owner)
    assert muted["until"] == moved_clock.ms + 20 * HOUR_S * 1000 == 1_795_327_200_000
    assert (muted["mode"], muted["urgentPasses"]) == ("history", False)


def test_the_mutes_are_listed(service, owner, moved_clock):
    service.alert(name="Disk")
    service.flask(*MUTE, "alert:Disk", "1h", "--urgent-too")
    service.flask(*MUTE, "all", "1d")
    both = mutes(owner)
    assert lines_of(service, "mutes", OWNER) == [
        [both[0]["id"], "all", "-", "hold", "passes", "2026-11-22T10:00:00Z", "-"],
        [both[1]["id"], "alert", "Disk", "hold", "muted", "2026-11-21T11:00:00Z", "-"],
    ]
    assert json.loads(service.flask("mutes", OWNER, "--json").stdout) == both
    moved_clock.advance(DAY_MS / 1000)
    assert lines_of(service, "mutes", OWNER) == []


def test_one_that_comes_again_is_said_listed_and_ended(service, owner):
    result = service.flask(*MUTE, "all", "--cron", "0 2 * * sun", "2h")
    assert printed(result) == "Muted everything Sundays at 02:00 for 2 h."
    (muted,) = mutes(owner)
    assert lines_of(service, "mutes", OWNER) == [
        [muted["id"], "all", "-", "hold", "passes", "2026-11-22T04:00:00Z", "0 2 * * sun"]
    ]
    assert json.loads(service.flask("mutes", OWNER, "--json").stdout) == [muted]
    assert printed(service.flask("unmute", OWNER, "all")) == "Ended 1 mute of everything."


def test_unmute_ends_every_mute_of_a_sender_and_no_other(service, owner):
    service.alert(name="Disk")
    for what, duration in (("alert:Disk", "1h"), ("alert:Disk", "2h"), ("all", "1h")):
        printed(service.flask(*MUTE, what, duration))
    assert printed(service.flask("unmute", OWNER, "alert:Disk")) == "Ended 2 mutes of alert:Disk."
    assert [one["what"] for one in mutes(owner)] == ["all"]


def test_unmute_ends_the_mute_of_a_key_that_was_revoked(service, owner):
    printed(service.flask(*MUTE, "key:test", "1h"))
    owner.delete(f"/api-keys/{key_id(owner)}")
    assert printed(service.flask("unmute", OWNER, "key:test")) == "Ended 1 mute of key:test."
    assert lines_of(service, "mutes", OWNER) == []


UNTIL, AGAIN = ("--until", "2026-11-22T07:00"), ("--cron", "0 2 * * *")


@each("args", [("all",), ("all", "1h", *UNTIL), (), ("all", *AGAIN), ("all", *AGAIN, *UNTIL)])
def test_a_mute_needs_either_a_duration_or_an_end_and_one_that_comes_again_a_duration(service, owner, args):
    refused = service.flask(*MUTE, *args)
    assert (refused.exit_code, "Use --cron with a DURATION" in refused.output) == (2, "--cron" in args)
    assert mutes(owner) == []
