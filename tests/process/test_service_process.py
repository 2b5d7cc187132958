"""The service as it really runs: gunicorn in its own process, spoken to over sockets."""

import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from core import accounts
from models import Account, ApiKey
from store import database
from tests.support.accounts import OTHER, OWNER
from tests.support.forks import fill_disk, hasten
from tests.support.rows import each
from tests.support.server import (
    BIN,
    PATIENCE_S,
    ROOT,
    bearer,
    free_port,
    in_threads,
    join,
    received,
    serving,
    status_of,
    wait_until,
)

LARGEST = 20_000  # MAX_BODY_BYTES of the service that most tests share
LINK = re.compile(r"http://\S+(/app/setup/[\w-]+)")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The service that most tests share."""
    environ = {"MAX_BODY_BYTES": str(LARGEST), "SCRIPT_NAME": "/evil"}
    with serving(tmp_path_factory.mktemp("shared") / "data", **environ) as shared:
        shared.key = shared.wait_until_ready().owner_key()
        yield shared


# --- the way in ---------------------------------------------------------------------------------------------


def test_make_run_prints_a_link_to_the_set_up_page_that_is_void_at_the_next_start_and_with_an_account(start):
    first = start(PRINT_SETUP_LINK="1").wait_until_ready()
    link, earlier = LINK.search(first.log)[0], LINK.search(first.log)[1]
    assert link.startswith(f"http://127.0.0.1:{first.port}/")
    page = first.get(earlier)
    assert page.status == 200 and 'name="password"' in page.text
    assert first.terminate() == 0

    second = start(PRINT_SETUP_LINK="1").wait_until_ready()
    assert second.get(earlier).status == 404
    later = LINK.search(second.log)[1]
    assert second.get(later).status == 200
    second.owner_key()
    assert second.get(later).status == 404
    assert second.terminate() == 0

    third = start(PRINT_SETUP_LINK="1").wait_until_ready()
    assert "/app/setup/" not in third.log and "account create" not in third.log


def test_a_start_without_a_terminal_names_the_commands_and_prints_no_link(server):
    assert "With PRINT_SETUP_LINK=1 a start prints a link" in server.log
    assert "/app/setup/" not in server.log.partition('"message": "request"')[0]  # before it answers


def test_the_first_account_is_made_by_its_address_and_each_start_prints_a_link_until_it_has_a_password(start):
    first = start(FIRST_ACCOUNT=OWNER).wait_until_ready()
    earlier = LINK.search(first.log)[1]
    assert f"set the password of {OWNER}" in first.log and first.get(earlier).status == 200
    with first.beside():
        assert Account.find(OWNER)
    first.terminate()
    second = start(FIRST_ACCOUNT=OWNER, PRINT_SETUP_LINK="1").wait_until_ready()
    link = LINK.search(second.log)[1]
    assert (second.get(earlier).status, second.get(link).status) == (404, 200)
    with second.beside():
        accounts.set_password(Account.find(OWNER), accounts.password_hash("a long password"))
    second.terminate()
    third = start(FIRST_ACCOUNT=OWNER).wait_until_ready()
    assert "/app/setup/" not in third.log


# --- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, value", [("THREADS", "many"), ("WEB_CONCURRENCY", "2"), ("DATABASE_URL", "pg://u:pw")]
)
def test_a_wrong_setting_stops_it_before_any_worker_with_one_line(start, name, value):
    stopped = start(**{name: value})
    assert stopped.process.wait(timeout=PATIENCE_S) == 1
    (line,) = stopped.log.splitlines()
    assert name in line and "u:pw" not in line


def test_an_address_where_nobody_can_listen_stops_it_and_names_the_settings(start):
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        taken = start(PORT=str(port), before=hasten)
        assert taken.process.wait(PATIENCE_S) == 1
    said = f"Port {port} is already in use. Try another one: PORT={port + 1} make run"
    assert taken.log.splitlines()[-1] == said
    for name in ("nosuch.invalid", "a" * 70):
        unknown = start(HOST=name)
        assert unknown.process.wait(PATIENCE_S) == 1 and "Traceback" not in unknown.log
        assert unknown.log.splitlines()[-1].startswith(f'Cannot listen at HOST "{name}" and PORT "{unknown.port}": ')


def test_a_database_that_cannot_be_used_stops_it_before_any_worker_without_a_traceback(start, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pocketbell.db").write_bytes(b"This is no database. " * 100)
    stopped = start()
    assert stopped.process.wait(timeout=PATIENCE_S) == 1
    assert "Traceback" not in stopped.log and "Booting worker" not in stopped.log
    assert "pocketbell.db" in stopped.log.splitlines()[-1]
    (tmp_path / "data" / "pocketbell.db.lock").rename(tmp_path / "lock")
    (tmp_path / "data" / "pocketbell.db.lock").mkdir()
    stopped = start()
    assert stopped.process.wait(timeout=PATIENCE_S) == 1
    assert stopped.log.splitlines()[-1].endswith("/pocketbell.db.lock: Is a directory.")


def test_a_secret_that_cannot_be_read_stops_it_before_any_worker(start, tmp_path):
    (tmp_path / "data" / "secret_key").mkdir(parents=True)
    stopped = start()
    assert stopped.process.wait(timeout=PATIENCE_S) == 1
    assert "Booting worker" not in stopped.log
    assert stopped.log.splitlines()[-1].endswith("/secret_key: Is a directory.")


# --- stopping and crashing ----------------------------------------------------------------------------------


def test_sigterm_answers_requests_in_progress_and_then_ends(start, push_service, monkeypatch):
    server = start(WEBPUSH_HOSTS=push_service.origin)
    key = server.wait_until_ready().owner_key()
    browser = push_service.browser()
    server.subscribe(key, browser)
    goes_on, receive = threading.Event(), push_service.receive
    monkeypatch.setattr(push_service, "receive", lambda *push: goes_on.wait(PATIENCE_S) and receive(*push))
    answers = []
    threads = in_threads(6, lambda n: answers.append(server.send(key)))
    wait_until(lambda: len(browser.pushes) == 6)
    server.process.terminate()
    wait_until(server.takes_no_more)
    goes_on.set()
    assert server.process.wait(PATIENCE_S) == 0
    join(threads)
    assert [answer.status for answer in answers] == [200] * 6
    assert {json.loads(answer.text)["notification"]["status"] for answer in answers} == {"delivered"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
@each(
    "sent, passed_on, is_serving",
    [(signal.SIGTERM, signal.SIGTERM, False), (signal.SIGINT, signal.SIGQUIT, True)],  # Ctrl-C
)
def test_a_stop_reaches_a_worker_that_was_only_just_forked_and_one_that_gets_two_signals(
    start, sent, passed_on, is_serving
):
    server = start()
    if is_serving:
        server.wait_until_ready()
    master = Path(f"/proc/{server.process.pid}")
    worker = int(wait_until((master / f"task/{master.name}/children").read_text))
    status = Path(f"/proc/{worker}/status")
    os.kill(worker, signal.SIGSTOP)
    wait_until(lambda: "\nState:\tT" in status.read_text())
    os.killpg(server.process.pid, sent)
    wait_until(lambda: int(re.search(r"ShdPnd:\t(\w+)", status.read_text())[1], 16) & 1 << passed_on - 1)
    os.kill(worker, signal.SIGCONT)
    assert server.process.wait(PATIENCE_S / 3) == 0 and "Traceback" not in server.log


def test_after_kill_9_all_that_was_acknowledged_is_there_and_pending_muted_and_snoozed_messages_come(
    start, push_service, tmp_path
):
    server = start(WEBPUSH_HOSTS=push_service.origin).wait_until_ready()
    key, browser = server.owner_key(), push_service.browser()
    server.subscribe(key, browser)
    snoozed = json.loads(server.send(key, body="a").text)["notification"]["id"]
    browser.then(503, Retry_After="1")
    assert json.loads(server.send(key, body="d").text)["notification"]["status"] == "pending"
    for path, sent in ((f"notifications/{snoozed}/snooze", {"forS": 60}), ("mutes", {"what": "all", "forS": 60})):
        answer = server.request("POST", f"/api/v1/{path}", json.dumps(sent), bearer(key))
        assert answer.status in (200, 201), answer.text
    for body in "bc":
        server.send(key, body=body)
    other = server.owner_key(email=OTHER)
    acknowledged = killed_while_it_writes(server, other)
    with closing(sqlite3.connect(tmp_path / "data" / "pocketbell.db")) as file, file:
        file.execute("UPDATE snooze SET until = 1")
        file.execute("UPDATE mute SET until = created_at + 1")
    again = start(WEBPUSH_HOSTS=push_service.origin).wait_until_ready()
    assert set(acknowledged) <= set(again.listed_ids(other))
    wait_until(lambda: len(browser.messages) == 4)
    assert {one["notification"]["body"] for one in browser.messages[1:]} == {"a", "d", "t: b\nt: c"}


def killed_while_it_writes(server, key):
    """Kill the service while four clients send; the ids of what was acknowledged."""
    acknowledged, enough = [], threading.Event()

    def write(n):
        try:
            while True:
                answer = server.send(key)
                if answer.status == 200:
                    acknowledged.append(json.loads(answer.text)["notification"]["id"])
                if len(acknowledged) >= 40:
                    enough.set()
        except (OSError, http.client.HTTPException, ValueError):
            return  # killed while this one was asked for

    writers = in_threads(4, write)
    assert enough.wait(PATIENCE_S)
    server.kill()
    join(writers)
    return acknowledged


def test_a_killed_worker_is_replaced_and_nothing_is_lost_and_no_signal_adds_one(start):
    server = start().wait_until_ready()
    key = server.owner_key()
    sent = json.loads(server.send(key).text)["notification"]["id"]
    booted = re.findall(r"Booting worker with pid: (\d+)", server.log)
    os.kill(server.process.pid, signal.SIGTTIN)
    wait_until(lambda: "Handling signal: ttin" in server.log)
    os.kill(int(booted[0]), signal.SIGKILL)
    wait_until(lambda: f"(pid:{booted[0]})" in server.log and server.log.count("Booting worker") > 1)
    server.wait_until_ready()
    assert server.listed_ids(key) == [sent] and server.log.count("Booting worker") == 2


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux says on which cores a process runs")
def test_all_threads_of_the_service_run_on_one_core(server):
    join(in_threads(8, lambda n: server.send(server.key)))
    worker = re.findall(r"Booting worker with pid: (\d+)", server.log)[-1]
    tasks = [int(task.name) for task in Path(f"/proc/{worker}/task").iterdir()]
    assert len(tasks) > 3
    (used,) = {frozenset(os.sched_getaffinity(task)) for task in tasks}
    assert len(used) == 1 and used <= os.sched_getaffinity(0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_senders_behind_a_listed_proxy_take_turns(server):
    worker = re.findall(r"Booting worker with pid: (\d+)", server.log)[-1]
    os.kill(int(worker), signal.SIGSTOP)
    wait_until(lambda: "\nState:\tT" in Path(f"/proc/{worker}/status").read_text())
    senders, asked = ["198.51.100.1"] * 3 + ["198.51.100.2"], []
    for sender in senders:
        asked.append(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S))
        asked[-1].sendall(f"GET /no HTTP/1.0\r\nX-Forwarded-For: {sender}\r\n\r\n".encode())
    os.kill(int(worker), signal.SIGCONT)
    for connection in asked:
        assert received(connection)
        connection.close()
    told = [json.loads(line)["client"] for line in access_lines(server.log)]
    assert told[-4:] == [senders[0], senders[3], *senders[1:3]]


def test_a_disk_that_is_full_gives_a_5xx_and_nothing_acknowledged_is_lost(start, tmp_path):
    database.open_database(tmp_path / "data/pocketbell.db")
    database.close()
    stopped = start(before=partial(fill_disk, 10_000))
    assert stopped.process.wait(PATIENCE_S) == 1
    assert stopped.log.splitlines()[-1].endswith("/pocketbell.db cannot be used: disk I/O error; is its disk full?")

    full = start(before=partial(fill_disk, 400_000))
    key = full.wait_until_ready().owner_key()
    answers = [full.send(key, body="b" * 9_000) for _ in range(30)]
    acknowledged = {json.loads(a.text)["notification"]["id"] for a in answers if a.status == 200}
    assert {answer.status for answer in answers} == {200, 503}
    full.kill()

    again = start().wait_until_ready()
    assert acknowledged <= set(again.listed_ids(key))
    assert again.send(key).status == 200


# --- what the log holds -------------------------------------------------------------------------------------


def access_lines(log):
    """The lines about requests."""
    return [line for line in log.splitlines() if line.startswith("{") and json.loads(line)["message"] == "request"]


LOGGED = [
    ("GET", "/healthz", "/healthz", "200"),
    ("GET", "/api/v1/stats?token=q5ecret", "/api/v1/stats", "200"),
    ("GET", "/api/v1/notifications?search=q5ecret&cursor=q5ecret", "/api/v1/notifications", "400"),
    ("DELETE", "/api/v1/api-keys/1d5ecret", "/api/v1/api-keys/<key_id>", "404"),
    ("DELETE", "/api/v1/devices/1d5ecret", "/api/v1/devices/<device_id>", "404"),
    ("GET", "/app/setup/l1nk5ecret", "/app/setup/<token>", "404"),
    ("GET", "/app/phone/c0d5ecret", "/app/phone/<code>", "404"),
    ("GET", "/p/c0d5ecr", None, None),
    ("GET", "/ping/u5ecret/fail", "/ping/<ping_id>/<signal>", "404"),
    ("POST", "/a/t0ken5ecret", "/a/<path:token>", "404"),
    ("GET", "/no/such/pl4ce", None, "404"),
    ("PUT", "/api/v1/stats", None, "405"),
    ("POST", "/api/v1/nothing", "-", "404"),
]


KEY_IN_IT = "sk_test_" + "c0ffee00" * 6
MALFORMED = [
    "\x00\r\n\r\n",
    f"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization Bearer {KEY_IN_IT}\r\n\r\n",
    f"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization\x01: Bearer {KEY_IN_IT}\r\n\r\n",
    f"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY_IN_IT}\x00\r\n\r\n",
    f"GET /healthz HTTP/1.1\r\nHost: x\r\nX {KEY_IN_IT}: y\r\n\r\n",
    f"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n {KEY_IN_IT}\r\n\r\n",
    f"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: {KEY_IN_IT}\r\n\r\n",
    f"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {KEY_IN_IT}\r\n\r\n",
    f"GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: {KEY_IN_IT}\r\n\r\n",
    f"{KEY_IN_IT}\r\n\r\n",
    f"{KEY_IN_IT.upper()} / HTTP/1.1\r\nHost: x\r\n\r\n",
    f"GET /{KEY_IN_IT}\r\n\r\n",
    f"GET /{KEY_IN_IT} more HTTP/1.1\r\nHost: x\r\n\r\n",
    f"GET /healthz {KEY_IN_IT}\r\n\r\n",
    f"GET /healthz HTTP/9.9{KEY_IN_IT}\r\n\r\n",
    f"GET /{'x' * 9000}{KEY_IN_IT} HTTP/1.1\r\n\r\n",
    f"GET / HTTP/1.1\r\nHost: x\r\nX: {'x' * 9000}{KEY_IN_IT}\r\n\r\n",
    f"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{KEY_IN_IT}\r\n",
    f"PRI * HTTP/2.0\r\n\r\n{KEY_IN_IT}\r\n\r\n",
]


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A service that has ended and whose log said as much as it can, with what it was asked and answered.

    `lines` are the access log's for the requests of LOGGED, in order, `names` the ids that their answers had.
    """
    with serving(tmp_path_factory.mktemp("logged") / "data", LOG_LEVEL="debug") as server:
        server.key, server.lines, server.names = server.wait_until_ready().owner_key(), [], []
        for method, path, *_ in LOGGED:
            wait_until(lambda: len(access_lines(server.log)) == server.answered)
            sent = {**bearer(server.key), "X-Forwarded-For": "198.51.100.9, 203.0.113.7"}
            server.names.append(server.request(method, path, headers=sent).headers.get("X-Request-Id"))
            server.lines += wait_until(lambda: access_lines(server.log)[server.answered - 1 :])
        server.send(server.key, "t1tle5ecret\nbreak", "b0dy5ecret")
        server.request("POST", "/api/v1/notifications/send", '{"title": "t1tle5ecret"', bearer(server.key))
        for path in ("/p%2Fc0d5ecr", "/%70/c0d5ecr"):
            server.request("POST", path, "{}")
        for path in (f"/api/v1/api-keys/{KEY_IN_IT}", f"/p/{KEY_IN_IT}", "/c0d5ecr"):
            server.get(path, server.key)
        server.statuses = {text: status_of(server.raw(text.encode("latin-1"))) for text in MALFORMED}
        server.last_key = server.new_key(server.key, "used last")
        with closing(sqlite3.connect(server.data_dir / "pocketbell.db", timeout=PATIENCE_S)) as other:
            other.execute("DROP TABLE notification_day")
        server.failed = server.send(server.last_key, "t1tle5ecret", "b0dy5ecret")
        assert server.terminate() == 0
        yield server


def test_every_line_of_the_log_is_one_json_object_with_time_level_and_message(logged):
    lines = [json.loads(line) for line in logged.log.splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    assert {line["status"] for line in lines if line.get("client") and line["method"] == "-"} == {400}


def test_the_access_log_has_one_line_for_each_request(logged):
    assert [json.loads(line)["method"] for line in logged.lines] == [method for method, *_ in LOGGED]
    ids = [json.loads(line).get("request_id") for line in access_lines(logged.log)]
    named = [one for one in ids if one]
    assert len(named) == len({*named}) >= logged.answered


@each("index", range(len(LOGGED)))
def test_a_line_of_the_access_log_has_the_route_and_the_status(logged, index):
    _, path, route, status = LOGGED[index]
    line = json.loads(logged.lines[index])
    assert route in (None, line["route"]) and status in (None, str(line["status"]))
    assert line["client"] == "203.0.113.7" and line["ms"] >= 0 and line["bytes"] > 0
    assert logged.names[index] == (None if path.startswith("/p/") else line["request_id"])


def test_no_key_query_link_code_id_or_payload_is_in_the_log_even_at_its_most_talkative_and_no_http_is_no_fault(
    logged,
):
    assert {text: status for text, status in logged.statuses.items() if status and status >= 500} == {}
    secret = rf"5ecr|pl4ce|c0ffee00|{logged.key[16:]}|{logged.last_key[16:]}"
    assert [line for line in logged.log.splitlines() if re.search(secret, line, re.IGNORECASE)] == []
    assert [line for line in logged.lines if "sk_test_" in line or "?" in line] == []


def test_a_fault_is_logged_without_the_request(logged):
    assert (logged.failed.status, json.loads(logged.failed.text)["code"]) == (500, "INTERNAL_ERROR")
    assert "notification_day" in logged.log and "notification_day" not in logged.failed.text
    faults = [json.loads(line) for line in logged.log.splitlines() if "notification_day" in line]
    assert logged.failed.headers["X-Request-Id"] in [fault.get("request_id") for fault in faults]


def test_when_a_key_was_last_used_is_written_at_the_end(logged):
    with logged.beside():
        assert ApiKey.get(name="used last").last_used_at


# --- bodies over the wire -----------------------------------------------------------------------------------


def message_of(size):
    """A valid body of exactly this many bytes."""
    body = json.dumps({"title": "t", "body": "b", "padding": ""}).encode()
    return body[:-2] + b"x" * (size - len(body)) + body[-2:]


def chunked(body, chunk=4096):
    parts = [body[at : at + chunk] for at in range(0, len(body), chunk)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def head(server, *fields, path="/api/v1/notifications/send"):
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {server.key}", "Connection: close", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


CHUNKED = "Transfer-Encoding: chunked"
SIZES = [(LARGEST, 200), (LARGEST + 1, 413), (1_500_000, 413)]


@each("size, status, chunk", [(*size, chunk) for size in SIZES for chunk in (None, 1_000, LARGEST)])
def test_a_body_of_exactly_the_limit_gets_through_and_a_larger_one_is_413(server, size, status, chunk):
    body = message_of(size)
    sent = head(server, CHUNKED) + chunked(body, chunk) if chunk else head(server, f"Content-Length: {size}") + body
    assert status_of(server.raw(sent)) == status


def test_a_body_that_is_announced_over_the_limit_is_refused_before_it_is_sent(server):
    answer = server.raw(head(server, "Content-Length: 999999999"), half_close=False)
    assert status_of(answer) == 413 and json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "VALIDATION_ERROR"


WRONG_BODIES = [
    *((CHUNKED, body) for body in (b"zz\r\n{}\r\n0\r\n\r\n", b"-2\r\n{}\r\n0\r\n\r\n", b"1\r\n{}\r\n0\r\n\r\n")),
    *((CHUNKED, body) for body in (b"2\r\n{}\r\n", b"5\r\n{}", b"f" * 9_000 + b"\r\n{}\r\n0\r\n\r\n", b"")),
    *((f"Content-Length: {length}", b"{}") for length in (500, -1, "two", "", "9" * 5_000, "2, 2")),
    *(
        ("Content-Length: 2\r\nContent-Length: 3", b"{}"),
        (f"Content-Length: 2\r\n{CHUNKED}", b"2\r\n{}\r\n0\r\n\r\n"),
    ),
    *((f"Transfer-Encoding: {coding}", b"{}") for coding in ("gzip", "chunked, chunked", "nonsense")),
]


@each("field, body", WRONG_BODIES)
def test_a_body_that_is_not_what_was_announced_is_a_400(server, field, body):
    answer = server.raw(head(server, field) + body)
    assert status_of(answer) in (400, 501), answer[:80]


def test_a_body_that_is_not_taken_does_not_become_the_next_request(server):
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    fields = ["Host: x", "Authorization: Bearer wrong", f"Content-Length: {len(smuggled)}"]
    request = "\r\n".join(["POST /api/v1/notifications/send HTTP/1.1", *fields]).encode() + b"\r\n\r\n" + smuggled
    answer = server.raw(request)
    assert status_of(answer) == 401 and b'"status":"ok"' not in answer


def test_a_connection_ends_when_a_long_body_was_refused_unread(server):
    """A proxy may send its next request at once; what it has still to send of the last one must not be in its way."""
    fields = "Host: x\r\nAuthorization: Bearer wrong\r\nContent-Length: 90000"
    refused = f"POST /api/v1/notifications/send HTTP/1.1\r\n{fields}\r\n\r\n".encode() + b" " * 90_000
    answers = server.raw(refused + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert status_of(answers) == 401 and answers.count(b"HTTP/1.1 ") == 1 and b"\r\nConnection: close\r\n" in answers


# --- what runs beside the requests --------------------------------------------------------------------------


def test_another_process_sees_when_a_key_was_last_used_soon_after(server):
    key = server.new_key(server.key, "watched")

    with server.beside():
        assert ApiKey.get(name="watched").last_used_at is None
        server.get("/api/v1/stats", key)
        wait_until(lambda: ApiKey.get(name="watched").last_used_at)


# --- the Procfile -------------------------------------------------------------------------------------------


def procfile(name):
    lines = (ROOT / "Procfile").read_text().splitlines()
    return next(line.removeprefix(f"{name}: ") for line in lines if line.startswith(f"{name}: "))


OURS_FIRST = {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}", "POCKETBELL_ENV": os.devnull}


def run_line(tmp_path, name, **environ):
    """Run a line of the Procfile as a platform does."""
    return subprocess.Popen(
        ["sh", "-c", procfile(name)],
        env={**OURS_FIRST, "DATA_DIR": str(tmp_path / "data"), **environ},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def test_the_procfiles_web_line_serves_everywhere_with_one_worker_whatever_the_platform_asks_for(tmp_path):
    port = free_port()
    process = run_line(tmp_path, "web", PORT=str(port), WEB_CONCURRENCY="4")
    try:

        def answers():
            assert process.poll() is None, process.stdout.read()
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
                connection.request("GET", "/healthz")
                return connection.getresponse().status == 200
            except OSError:
                return False

        wait_until(answers)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
    assert (output.count(b"Booting worker"), b"http://0.0.0.0:%d" % port in output) == (1, True)


def test_the_procfile_leaves_the_number_of_processes_alone_where_redis_counts_for_them(tmp_path):
    process = run_line(tmp_path, "web", WEB_CONCURRENCY="4", REDIS_URL="redis://localhost")
    said = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 1 and said.startswith(b'WEB_CONCURRENCY is "4": it takes only 1 unless DATABASE_URL')


def test_the_procfiles_release_line_checks_the_settings_and_makes_no_database(tmp_path):
    process = run_line(tmp_path, "release", WEB_CONCURRENCY="4")
    assert (process.wait(timeout=PATIENCE_S), (tmp_path / "data").exists()) == (0, False)
    process.stdout.close()


# --- what gunicorn would take from the environment itself ----------------------------------------------------


def test_make_run_explains_wrong_settings_that_gunicorn_reads_too(tmp_path):
    wrong = {"FORWARDED_ALLOW_IPS": "localhost", "WEB_CONCURRENCY": "abc"}
    run = next(line for line in (ROOT / "Makefile").read_text().splitlines() if "gunicorn --config" in line)
    done = subprocess.run(
        ["sh", "-c", run.strip().removeprefix("@").replace("$(BIN)", str(BIN))],
        env={**OURS_FIRST, "DATA_DIR": str(tmp_path), **wrong},
        cwd=ROOT,
        capture_output=True,
    )
    assert done.returncode == 1 and done.stdout == b""
    said = {line.partition(": it takes ")[0] for line in done.stderr.decode().splitlines()}
    assert said == {f'{name} is "{value}"' for name, value in wrong.items()}


@pytest.mark.parametrize(
    "asked, named",
    [
        ("--workers=3", "WEB_CONCURRENCY"),
        ("--certfile=README.md --keyfile=README.md", "TLS"),
        ("--proxy-protocol", "PROXY protocol"),
        ("--bind unix:nowhere/socket", "Unix socket"),
        ("--env SCRIPT_NAME=/bell", "SCRIPT_NAME"),
    ],
)
def test_gunicorns_arguments_cannot_contradict_the_settings(start, asked, named):
    stopped = start(GUNICORN_CMD_ARGS=asked)
    assert stopped.process.wait(PATIENCE_S) == 1
    assert named in stopped.log and "Traceback" not in stopped.log


def test_no_header_of_a_proxy_and_no_script_name_of_the_environment_moves_the_addresses_of_the_pages(server):
    moved = {"SCRIPT_NAME": "/evil", "SCRIPT-NAME": "/evil", "X-Script-Name": "/evil", "X-Forwarded-Prefix": "/evil"}
    for name, prefix in moved.items():
        assert server.request("GET", "/evil/app/login", headers={name: prefix}).status == 404
        page = server.request("GET", "/app/login", headers={name: prefix})
        assert page.status in (200, 404) and "/evil" not in page.text
    assert 'href="/app/static/app.css?v=' in server.get("/app/login").text
