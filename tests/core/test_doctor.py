"""`pocketbell doctor` says whether each part is well and, if not, what to do."""

import dataclasses
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from core import doctor
from process import clock
from store import database
from tests.support.checks import seen
from tests.support.memory import open_service
from tests.support.pages import make_account
from tests.support.postgresql import sqlite_only
from tests.support.rows import each
from tests.support.server import ROOT, free_port


class Neighbour(BaseHTTPRequestHandler):
    """Another server, whose clock shows `date`."""

    date, body, status = "Sat, 21 Nov 2026 10:00:00 GMT", b"welcome", 200

    def do_GET(self):
        self.send_response_only(self.status)
        self.send_header("Date", self.date)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args):
        pass


@pytest.fixture
def neighbour():
    handler = type("Handler", (Neighbour,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    handler.origin = f"http://127.0.0.1:{server.server_port}"
    yield handler
    server.shutdown()
    server.server_close()


def test_the_doctor_prints_a_line_for_each_part_and_exits_with_1_if_anything_is_bad(service):
    result = service.flask("doctor")
    assert [line[5:21].strip() for line in result.output.splitlines()] == list(doctor.checks())
    assert result.exit_code == 1 and "bad  service" in result.output


@each(
    "check, variables, level, part",
    [
        ("HOST", {}, "ok", "alone"),
        ("HOST", {"HOST": "0.0.0.0"}, "look", "proxy"),
        ("SECRET_KEY", {"SECRET_KEY": "x" * 15}, "look", ""),
        ("SECRET_KEY", {"SECRET_KEY": "x" * 16}, "ok", ""),
        ("SECRET_KEY", {}, "ok", "not set: Pocketbell made its own."),
        ("service", {"HOST": "::1"}, "bad", "http://[::1]:"),
        ("service", {"HOST": "0.0.0.0"}, "bad", "http://localhost:"),
        ("public address", {}, "look", ""),
        ("public address", {"BASE_URL": "http://bell.example.org"}, "bad", "is not https"),
        ("public address", {"BASE_URL": "https://127.0.0.1:9"}, "bad", "does not answer"),
        ("APNs", {}, "ok", "not configured"),
        ("FCM", {}, "ok", "not configured"),
    ],
)
def test_a_setting_is_well_a_warning_or_bad_and_no_secret_is_told(service, check, variables, level, part):
    seen_level, words = seen(service, check, **variables)
    assert seen_level == level and part in words and variables.get("SECRET_KEY", "?") not in words


def test_findings_on_one_setting_do_not_hide_findings_on_another(service):
    environ = {"DYNO": "web.1", "HOST": "::", "SECRET_KEY": "x"}
    found = [seen(service, check, **environ)[0] for check in ("settings", "HOST", "SECRET_KEY")]
    assert found == ["bad", "look", "look"]


@sqlite_only
def test_a_directory_that_others_may_look_into_is_bad(service):
    service.data_dir.chmod(0o755)
    assert seen(service, "disk") == (
        "bad",
        f"other users can read {service.data_dir} (mode 0755): chmod 700 {service.data_dir}",
    )


@sqlite_only
def test_a_disk_that_is_nearly_full_is_bad(service, monkeypatch):
    monkeypatch.setattr(doctor, "MIN_FREE_BYTES", 10**18)
    level, words = seen(service, "disk")
    assert level == "bad" and "MB are free" in words


@sqlite_only
def test_a_damaged_database_is_bad(service):
    database.run("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    with service.settings.database.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 4096)
    level, words = seen(service, "database")
    assert level == "bad" and "restore a backup" in words


def test_a_database_server_that_takes_fewer_connections_than_the_processes_may_open_is_bad(service, monkeypatch):
    assert (database.most_connections() or 0) > 0 if database.is_shared() else database.most_connections() is None
    monkeypatch.setattr(database, "most_connections", lambda: 20)
    one = {"DATABASE_URL": "postgresql://bell:hunter2pw@db/bell"}
    two = one | {"REDIS_URL": "redis://127.0.0.1:1", "WEB_CONCURRENCY": "2"}
    for variables, most, says in ((one, 19, "the process"), (two, 10, "2 processes")):  # one has a lock, too
        assert seen(service, "database", **variables, DATABASE_CONNECTIONS=str(most))[0] == "ok"
        level, words = seen(service, "database", **variables, DATABASE_CONNECTIONS=str(most + 1))
        assert (
            level == "bad" and f"postgresql://db/bell takes 20 connections, and {says} of this machine may" in words
        )


def test_a_missing_account_and_an_account_without_a_password_are_warnings(service, owner):
    assert seen(service, "accounts")[1].startswith("owner@example.org has no password: ./pocketbell account set")


def test_an_account_with_a_password_is_ok(service):
    make_account(service)
    assert seen(service, "accounts")[0] == "ok"


@pytest.fixture
def server_clock(monkeypatch):
    """A database server whose clock is this many seconds behind ours."""

    def behind(seconds):
        monkeypatch.setattr(database, "clock_ms", lambda: clock.now_ms() - seconds * 1000)

    behind(0)
    return behind


def test_a_clock_that_is_behind_the_history_is_bad(service, owner, moved_clock):
    owner.send()
    moved_clock.advance(-3600)
    level, words = seen(service, "clock")
    assert level == "bad" and "behind the newest notification" in words


@each("seconds, words", [(6, "by PostgreSQL's it is 6 s ahead"), (-90, "it is 90 s behind")])
def test_a_clock_that_differs_from_the_database_servers_is_bad(service, server_clock, seconds, words):
    server_clock(seconds)
    level, said = seen(service, "clock")
    assert level == "bad" and words in said


def test_the_database_server_says_what_time_it_is(service):
    assert (
        database.clock_ms() is None
        if not database.is_shared()
        else abs(database.clock_ms() / 1000 - time.time()) < 60
    )


@each("advance_s, level, words", [(0, "ok", "right"), (90, "bad", "90 s ahead"), (-90, "bad", "90 s b")])
def test_the_clock_is_compared_with_a_push_service(
    service, neighbour, moved_clock, server_clock, advance_s, level, words
):
    neighbour.date = "Sat, 21 Nov 2026 10:00:00 GMT"
    moved_clock.ms = 1_795_255_200_000 + advance_s * 1000
    found = seen(service, "clock", WEBPUSH_HOSTS=f"*.push.example.com,{neighbour.origin}")
    assert found[0] == level and words in found[1]


def test_an_uncheckable_clock_is_a_warning(service, server_clock):
    assert seen(service, "clock", WEBPUSH_HOSTS=f"http://127.0.0.1:{free_port()}")[0] == "look"


@each(
    "status, body, level, words",
    [
        (200, b'{"status":"ok"}', "ok", "answers."),
        (200, b"welcome", "bad", "something else (status 200)"),
        (200, b"[1]", "bad", "something else"),
        (404, b"", "bad", "something else (status 404)"),
    ],
)
def test_the_service_is_asked_whether_it_is_well(service, neighbour, status, body, level, words):
    neighbour.status, neighbour.body = status, body
    found = seen(service, "service", PORT=neighbour.origin.rsplit(":", 1)[1])
    assert found[0] == level and words in found[1]


def test_a_contact_that_apple_refuses_is_a_warning(service):
    service.account("owner@localhost")
    assert seen(service, "Web Push")[0] == "look"


def test_a_device_whose_provider_is_not_configured_is_bad(service, owner):
    service.flask("device", "add", "owner@example.org", "fcm", "token")
    level, words = seen(service, "FCM")
    assert level == "bad" and "1 of the devices need it" in words


def test_credentials_that_the_providers_accept_are_ok(every_provider):
    assert seen(every_provider, "APNs") == ("ok", "Apple's push service accepts the credentials.")
    assert seen(every_provider, "FCM") == ("ok", "Google's push service accepts the credentials.")


def test_credentials_that_a_provider_refuses_are_bad(every_provider):
    """Apple's team has another id."""
    settings = every_provider.settings
    apns = dataclasses.replace(settings.providers["apns"], team_id="ZZZZZZZZZZ")
    open_service(every_provider.app, dataclasses.replace(settings, providers=settings.providers | {"apns": apns}))
    level, words = seen(every_provider, "APNs")
    assert level == "bad" and "APNS_ settings" in words


def test_a_check_that_fails_itself_does_not_stop_the_others(service, monkeypatch):
    def fails(settings):
        raise ZeroDivisionError("sk_test_secret")

    monkeypatch.setitem(doctor.CHECKS, "disk", fails)
    assert seen(service, "disk") == ("bad", "this check failed: ZeroDivisionError")
    assert seen(service, "database")[0] == "ok"


def test_every_check_on_the_deployment_page_exists():
    page = (ROOT / "docs/deployment.md").read_text()
    shown = re.findall(r"^(ok  |look|bad ) (.{16})", page, re.M)
    assert [mark.strip() for mark, _ in shown] == ["ok", "look", "bad"]
    assert {check.strip() for _, check in shown} <= set(doctor.checks())


def test_nothing_that_is_secret_is_printed(every_provider, apns):
    words = " ".join(finding.words for finding in doctor.examine(every_provider.settings))
    assert apns.key_pem.splitlines()[1] not in words
    assert every_provider.settings.providers["fcm"].service_account["private_key"].splitlines()[1] not in words
