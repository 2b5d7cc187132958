"""One service on one SQLite file: a second one waits for the first, names it, and stops after a minute."""

import fcntl
import os
import re
import signal

import pytest

from store import sqlite_lock
from store.database import DatabaseRefused
from tests.support.server import BIN, PATIENCE_S, finished, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="gunicorn runs on POSIX alone")
WAITS = "is using the database"


def test_a_second_service_names_the_first_beside_which_commands_work_and_takes_its_port_when_it_ends(start):
    first = start().wait_until_ready()
    second = start(PORT=str(first.port))
    wait_until(lambda: WAITS in second.log)
    assert f"(process {first.process.pid}, http://127.0.0.1:{first.port}) {WAITS}" in second.log
    assert "Booting worker" not in second.log and second.process.poll() is None
    assert second.flask("account", "create", "owner@example.org")
    assert first.terminate() == 0
    second.port = first.port
    assert second.wait_until_ready().get("/healthz").status == 200
    assert second.log.count(WAITS) == 1


def test_after_a_reload_or_by_a_link_it_is_the_same_database_unlike_another_and_signals_end_the_wait(start, tmp_path):
    first = start().wait_until_ready()
    first.process.send_signal(signal.SIGHUP)
    wait_until(lambda: first.log.count("Booting worker") == 2)
    assert start("another").wait_until_ready().get("/healthz").status == 200
    (tmp_path / "link").symlink_to(first.data_dir)
    for number, statuses in ((signal.SIGTERM, (0, -signal.SIGTERM)), (signal.SIGINT, (-signal.SIGINT,))):
        second = start("link")
        wait_until(lambda second=second: f"(process {first.process.pid}, " in second.log)
        second.process.send_signal(signal.SIGHUP)  # which changes nothing
        second.process.send_signal(number)
        assert second.process.wait(PATIENCE_S) in statuses
        assert WAITS in second.log and "Traceback" not in second.log


def test_after_kill_9_of_the_master_the_next_service_waits_for_its_worker_and_after_that_of_all_for_nothing(start):
    first = start().wait_until_ready()
    worker = int(re.search(r"Booting worker with pid: (\d+)", first.log)[1])
    os.kill(worker, signal.SIGSTOP)  # or it would see within a second that it is alone
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    second = start()
    wait_until(lambda: f"(process {first.process.pid}, " in second.log)
    os.kill(worker, signal.SIGKILL)
    second.wait_until_ready().kill()
    wait_until(second.takes_no_more)  # its worker, too, has ended
    assert WAITS not in start().wait_until_ready().log


def test_an_unnamed_holder_of_the_lock_is_just_starting(tmp_path):
    with (tmp_path / "bell.db.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(DatabaseRefused, match=r"Another Pocketbell \(just starting\) is using"):
            sqlite_lock.take(tmp_path / "bell.db", "", tell=str, looks=1)


def test_the_command_line_prints_the_address_of_the_service_that_runs(start):
    server = start(BASE_URL="https://bell.example.org").wait_until_ready()
    del server.environ["PORT"], server.environ["BASE_URL"]  # the shell of the command line has neither
    assert server.flask("account", "create", "a@example.org").startswith("https://bell.example.org/app/setup/")
    server.environ["BASE_URL"] = "https://own.example.org"
    assert server.flask("alert", "create", "a@example.org", "CI").startswith("https://own.example.org/p/")
    assert server.terminate() == 0
    del server.environ["BASE_URL"]
    assert server.flask("alert", "create", "a@example.org", "CI").startswith("http://127.0.0.1:8000/p/")


def test_the_command_line_and_doctor_know_the_port_of_the_service_that_runs(start):
    server = start(HOST="0.0.0.0").wait_until_ready()
    del server.environ["PORT"], server.environ["HOST"]
    assert server.flask("account", "create", "a@example.org").startswith(f"http://localhost:{server.port}/app/setup/")
    result = finished(server.start, [BIN / "flask", "doctor"], server.environ)
    examined = result.stdout.decode()
    assert f"ok   service         http://localhost:{server.port}/healthz answers." in examined
    assert "it listens on every address" in examined and "bad" not in examined and result.stderr == b""


def test_a_second_service_gives_up_after_a_minute_and_names_the_first_to_its_owner_alone(tmp_path, monkeypatch):
    told, pauses, database = [], [], tmp_path / "pocketbell.db"
    monkeypatch.setattr(sqlite_lock, "_pause", lambda: pauses.append(sqlite_lock.LOOKS_EVERY_S))
    monkeypatch.setattr(sqlite_lock, "_kept_open", kept_open := [])
    sqlite_lock.take(database, "http://127.0.0.1:8000", told.append)
    with pytest.raises(DatabaseRefused) as stopped:
        sqlite_lock.take(database, "", told.append)
    (file,) = kept_open
    os.close(file)
    who = f"Another Pocketbell (process {os.getpid()}, http://127.0.0.1:8000) is using the database {database}"
    assert (told, str(stopped.value)) == ([f"{who}: waiting for it to stop."], f"{who}: stop it first.")
    assert round(sum(pauses)) == 60 and (tmp_path / "pocketbell.db.lock").stat().st_mode & 0o077 == 0
