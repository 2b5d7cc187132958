"""The commands for heartbeats."""

import re

from tests.support.heartbeats import EMAIL, Pinged
from tests.support.rows import each


def create(service, *options, name="Backup"):
    return service.flask("heartbeat", "create", EMAIL, name, *options)


def test_create_prints_the_address_alone(service, owner):
    address = r"http://127\.0\.0\.1:8000/ping/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n"
    assert re.fullmatch(address, create(service, "--period", "1h").output)
    assert re.fullmatch(address, create(service, "--cron", "0 3 * * *", "--grace", "10m", "--priority", "5").output)


def test_list_prints_a_line_each_newest_first(service, beat, moved_clock):
    other = Pinged(service, beat.caller, "--cron", "0  3 * * *", "--grace", "1h30m", "--priority", "low", name="a\tb")
    beat.ping()
    assert beat.run("list") == (
        f"{other.id}\ta b\tnew\t0 3 * * *\t1h 30m\t2\t-\t-\t{other.url}\n"
        f"{beat.id}\tBackup\tup\t1h\t10m\t4\t2026-11-21T10:00:00Z\t2026-11-21T11:00:00Z\t{beat.url}\n"
    )


def test_set_changes_the_given_fields(beat):
    assert beat.run("set", beat.id, "--cron", "*/5 * * * *") == "Backup: */5 * * * *, grace 10m, priority 4.\n"
    assert beat.run("set", beat.id, "--period", "2h", "--name", "B") == "B: 2h, grace 10m, priority 4.\n"
    assert beat.run("set", beat.id, "--grace", "1h", "--priority", "min") == "B: 2h, grace 1h, priority 1.\n"


def test_pause_resume_and_delete_say_so_in_a_line(service, beat):
    assert beat.run("pause", beat.id) == "Paused the heartbeat Backup.\n"
    assert beat.state == "paused"
    assert beat.run("resume", beat.id) == "Resumed the heartbeat Backup.\n"
    assert beat.run("delete", beat.id) == "Deleted the heartbeat Backup.\n"
    assert (beat.run("list"), service.client.get(beat.path).status_code) == ("", 404)


def test_the_uuid_of_the_address_does_for_the_id(beat):
    assert beat.run("pause", beat.path.removeprefix("/ping/")) == "Paused the heartbeat Backup.\n"


@each("period", ["1m", "60s", "366d", "1d 2h", "1h30m", "90S"])
def test_a_period_is_from_a_minute_to_a_year(service, owner, period):
    assert create(service, "--period", period).exit_code == 0


@each(
    "cron", ["* * * * *", "0 0 29 2 *", "0 0 L * *", "0 0 * * MON#1", "0 9-17/2 * JAN-MAR mon-fri", "0 0 * 2 MON#5"]
)
def test_expressions_of_debians_cron_are_accepted(service, owner, cron):
    assert create(service, "--cron", cron).exit_code == 0
