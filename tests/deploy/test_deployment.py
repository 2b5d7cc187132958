"""deploy/: the proxies forward what Pocketbell reads, buffer slow clients; the unit runs what the Procfile runs."""

import http.client
import json
import os
import re
import subprocess
import time
from contextlib import ExitStack
from urllib.parse import urlencode

import pytest

import config
from core import accounts, alerts, heartbeat_checks, idempotency, plans, recent_requests
from models import Account
from process import clock
from process.clock import DAY_MS
from tests.support import certificates
from tests.support.accounts import OWNER, PASSWORD
from tests.support.ntfy_app import Listener, WebSocketListener, add_topic
from tests.support.picture_files import BOUNDARY, form_with, jpeg_of
from tests.support.proxies import NAME, PATH, PROXIES, Proxy, installed, ours
from tests.support.rows import each
from tests.support.server import BIN, PATIENCE_S, ROOT, UNDELAYED_S, bearer, free_port, serving, wait_until
from web import rate_limits
from wire.picture_formats import MAX_PICTURE_BYTES

ORIGIN = f"https://{NAME}"
THREADS = 4
PASSWORD_METHOD = accounts.PASSWORD_METHOD  # of the service: the tests use a cheaper one
LARGEST = config.load({}).max_body_bytes
UNIT = ROOT / "deploy/pocketbell.service"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="gunicorn runs on POSIX alone")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A service with few threads."""
    data_dir = tmp_path_factory.mktemp("behind") / "data"
    with serving(data_dir, THREADS=str(THREADS), BASE_URL=ORIGIN, LOG_LEVEL="debug") as started:
        started.key = started.wait_until_ready().owner_key()
        with started.beside():
            owner = Account.find(OWNER)
            accounts.set_password(owner, accounts.password_hash(PASSWORD))
            started.hook = f"/p/{alerts.create_alert(owner.seq, {'name': 'CI'}, clock.now_ms()).short_code}"
        yield started


@pytest.fixture(scope="module")
def start_proxy(server, tmp_path_factory):
    """Start each proxy once."""
    started = {}
    with ExitStack() as stack:

        def start(kind):
            if kind not in started:
                started[kind] = Proxy(kind, tmp_path_factory.mktemp(kind), server.port)
                stack.callback(started[kind].close)
                wait_until(started[kind].is_ready)
            return started[kind]

        yield start


@pytest.fixture(params=PROXIES)
def proxy(request, start_proxy):
    return start_proxy(request.param)


# --- what passes through a proxy ----------------------------------------------------------------------------


def test_a_send_and_an_event_pass_and_http_2_is_offered(proxy, server):
    message = json.dumps({"title": "t", "body": "b"})
    sent = proxy.request("POST", "/api/v1/notifications/send", message, bearer(server.key))
    assert sent.status == 200 and json.loads(sent.text)["ok"]
    assert sent.headers["Strict-Transport-Security"]
    assert proxy.request("POST", server.hook, '{"a": 1}').status == 200
    with proxy.connect(protocols=("h2", "http/1.1")) as offered:
        assert offered.selected_alpn_protocol() == "h2"


def test_http_leads_to_https_with_the_same_method(proxy):
    plain = http.client.HTTPConnection("127.0.0.1", proxy.http_port, timeout=PATIENCE_S)
    plain.request("POST", "/p/abcdefg?a=b", "{}", {"Host": NAME})
    answer = plain.getresponse()
    plain.close()
    assert (answer.status, answer.headers["Location"]) == (308, f"{ORIGIN}/p/abcdefg?a=b")


def test_an_owner_signs_in_with_a_secure_cookie_and_a_form_from_another_site_is_refused(proxy):
    page = proxy.request("GET", "/app/login")
    cookie = page.headers["Set-Cookie"]
    assert cookie.startswith("__Host-pocketbell=") and "; Secure" in cookie
    csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)[1]
    form = urlencode({"csrf": csrf, "email": OWNER, "password": PASSWORD})
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie.split(";")[0]}
    assert proxy.request("POST", "/app/login", form, kind | {"Origin": "https://elsewhere.example"}).status == 400
    signed_in = proxy.request("POST", "/app/login", form, kind | {"Origin": ORIGIN})
    assert signed_in.status == 303
    home = proxy.request("GET", "/app/", headers={"Cookie": signed_in.headers["Set-Cookie"].split(";")[0]})
    assert home.status == 200 and home.headers["Content-Security-Policy"]


def test_the_limit_of_a_sender_counts_its_true_address_whatever_it_claims(proxy):
    unknown, other = (f"127.0.{PROXIES.index(proxy.kind) + 1}.{last}" for last in (2, 3))
    guesses = proxy.connection(unknown)
    statuses = [
        proxy.request("POST", "/p/0000000", "{}", {"X-Forwarded-For": f"10.0.0.{n}"}, connection=guesses).status
        for n in range(61)
    ]
    guesses.close()
    assert statuses == [404] * 60 + [429]
    claimed = {"X-Forwarded-For": unknown}
    assert proxy.request("POST", "/p/0000000", "{}", claimed, sender=other).status == 404


@each(
    "names, path",
    [
        *(
            ({"ok", "error", "code", "statusCode"}, path)
            for path in ("/p/0000000", "/ping/0/1", "/api/v1/stats", "/mcp")
        ),
        ({"error"}, "/api/webhooks/custom"),
        ({"code", "http", "error"}, "/"),
        ({"error", "errorCode", "errorDescription"}, "/gotify/message"),
    ],
)
def test_a_body_far_too_large_is_refused_in_the_shape_of_its_address(proxy, names, path):
    refused = proxy.request("POST", path, b" " * 2_000_000)
    assert refused.status == 413 and refused.headers["Content-Type"] == "application/json"
    assert set(json.loads(refused.text)) == names


def test_a_notification_may_come_with_a_picture_of_2_megabytes(proxy, server):
    headers = {"Authorization": f"Bearer {server.key}", "Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    taken = proxy.request("POST", "/api/v1/notifications/send", form_with(jpeg_of(MAX_PICTURE_BYTES)), headers)
    assert (taken.status, "/i/" in taken.text) == (200, True)
    refused = proxy.request("POST", "/api/v1/notifications/send", form_with(jpeg_of(MAX_PICTURE_BYTES + 1)), headers)
    assert (refused.status, "image is larger than 2,000,000 bytes." in refused.text) == (413, True)


def test_a_file_for_a_topic_of_ntfys_may_have_15_megabytes(proxy, server):
    headers = {"Authorization": f"Bearer {server.key}", "Filename": "cam.jpg"}
    for path, size in (("/backups", 15_000_000), ("/backups/job-7", 3_500_000)):  # more than elsewhere
        taken = proxy.request("PUT", path, b"\xff" * size, headers)
        assert (taken.status, f"(cam.jpg, {size / 1e6} MB, not kept)" in taken.text) == (200, True)
    refused = proxy.request("PUT", "/backups", b"\xff" * 15_000_001, headers)
    assert (refused.status, json.loads(refused.text)["code"]) == (413, 41301)


@each("path", ["/app/login", "/app/setup/x", "/app/phone", "/app/phone/x"])
def test_a_form_of_a_stranger_that_is_too_large_is_refused_with_a_page(proxy, path):
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    for size, is_chunked in ((17_001, False), (90_000, False), (2_000_000, False), (17_001, True), (2_000_000, True)):
        form = b"email=" + b"x" * (size - 6)
        refused = proxy.request("POST", path, iter([form]) if is_chunked else form, kind)
        assert refused.status == 413 and refused.headers["Content-Type"] == "text/html; charset=utf-8"
        assert refused.headers["Strict-Transport-Security"] and "<title>" in refused.text


def test_a_form_of_16_kb_passes(proxy):
    form = b"email=" + b"x" * (16_384 - 6)
    refused = proxy.request("POST", "/app/login", form, {"Content-Type": "application/x-www-form-urlencoded"})
    assert refused.status == 400 and "Open the page again" in refused.text


def test_the_largest_body_that_pocketbell_takes_passes(proxy, server):
    body = b'{"a":"' + b"b" * (LARGEST - 8) + b'"}'
    assert len(body) == LARGEST and proxy.request("POST", server.hook, body).status == 200


@each("size, times", [(600_000, 10), (LARGEST + 1, 3), (1_090_000, 3)])
def test_a_refusal_before_the_body_is_read_reaches_the_client_through_the_proxy(proxy, size, times):
    for _ in range(times):
        refused = proxy.request("POST", "/api/v1/notifications/send", b" " * size)
        assert (refused.status, json.loads(refused.text)["code"]) == (401, "UNAUTHORIZED")


def test_the_ntfy_apps_streams_pass_unbuffered_and_its_topic_is_in_no_log(proxy, server):
    topic = add_topic(server, server.key)["topic"]
    lines = Listener(server, topic, dial=proxy.connect, host=NAME)
    frames = WebSocketListener(server, topic, dial=proxy.connect, host=NAME)
    assert lines.event()["event"] == "open" and lines.headers["cache-control"] == "no-store"
    assert type(frames.event()).__name__ == "AcceptConnection" and frames.message()["event"] == "open"
    server.send(server.key, "A title", "through a proxy")
    assert lines.message()["message"] == frames.message()["message"] == "through a proxy"
    ended = server.log.count('"message": "stream"')
    lines.close()
    frames.connection.close()
    wait_until(lambda: server.log.count('"message": "stream"') == ended + 2)
    assert [path for path in proxy.directory.rglob("*log*") if path.is_file() and topic in path.read_text()] == []


def test_half_sent_requests_hold_no_thread(proxy, server):
    head = f"POST {server.hook} HTTP/1.1\r\nHost: {NAME}\r\n"
    with ExitStack() as held:
        for half in [head, f'{head}Content-Length: 99\r\n\r\n{{"a":'] * 2 * THREADS:
            held.enter_context(proxy.connect()).sendall(half.encode())
        begun = time.monotonic()
        assert proxy.request("GET", "/healthz").status == 200
        assert time.monotonic() - begun < UNDELAYED_S


@pytest.mark.parametrize("kind", PROXIES)
def test_no_code_link_or_key_is_logged_even_when_the_service_is_down(kind, tmp_path):
    proxy = Proxy(kind, tmp_path, free_port())
    try:
        wait_until(lambda: answers_502(proxy, "/healthz"))
        secrets = ("/p/c0d5ecr", "/a/t0k5ecret", "/app/setup/l1nk5ecret", "/backups?auth=5ecret", "/pb5ecret/json")
        for path in (*secrets, "/app/phone/c0d5ecret", "/gotify/message?token=5ecret", "/ping/u5ecret/fail"):
            secret = {"Referer": f"{ORIGIN}{path}"} | bearer("sk_test_k3y5ecret")
            assert proxy.request("POST", path, "{}", secret).status == 502
            assert answers_502(proxy, "/healthz", secret)
    finally:
        proxy.close()
    assert "502" in proxy.logs and "5ecr" not in proxy.logs


def answers_502(proxy, path, headers=None):
    assert proxy.process.poll() is None, proxy.logs
    try:
        return proxy.request("GET", path, headers=headers).status == 502
    except OSError:
        return False


# --- the files ----------------------------------------------------------------------------------------------


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_caddy_finds_its_file_valid_and_well_formatted(tmp_path):
    caddy, environ = installed("caddy"), {"PATH": PATH, "HOME": str(tmp_path)}
    file = ROOT / "deploy/Caddyfile"
    assert "Valid configuration" in run(caddy, "validate", "--config", file, "--adapter", "caddyfile", env=environ)
    assert run(caddy, "fmt", file, env=environ) == file.read_text()


def test_caddy_finds_the_file_of_the_readme_valid(tmp_path):
    caddy, file = installed("caddy"), tmp_path / "Caddyfile"
    (shown,) = re.findall(r"^```\n(bell\.example\.org \{.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    file.write_text(shown)
    environ = {"PATH": PATH, "HOME": str(tmp_path)}
    assert "Valid configuration" in run(caddy, "validate", "--config", file, "--adapter", "caddyfile", env=environ)
    assert run(caddy, "fmt", file, env=environ) == shown


def test_nginx_finds_its_file_valid(tmp_path):
    nginx, made = installed("nginx"), certificates.make(tmp_path)
    site = tmp_path / "pocketbell.conf"
    text = ours("nginx.conf", ("/var/log/nginx", str(tmp_path)))
    site.write_text(re.sub(r"/etc/letsencrypt/\S+(?=;)", made.file, text))
    main = tmp_path / "nginx.conf"
    main.write_text(f"pid {tmp_path}/pid; events {{}}\nhttp {{ access_log off; include {site}; }}\n")
    assert "test is successful" in run(nginx, "-t", "-c", main, "-e", tmp_path / "main.log")


def unit(name):
    """The values of a setting of the unit."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.M)


def test_systemd_accepts_the_unit(tmp_path):
    analyze, file = installed("systemd-analyze"), tmp_path / UNIT.name
    file.write_text(ours(UNIT.name, ("/opt/pocketbell/.venv/bin", str(BIN)), ("/opt/pocketbell", str(ROOT))))
    assert UNIT.name not in run(analyze, "verify", "--man=no", file)


def test_the_unit_exposes_little(tmp_path):
    assert "SystemCallFilter=sched_setaffinity" in UNIT.read_text().splitlines()  # else no core is kept to
    told = run(installed("systemd-analyze"), "security", "--offline=true", "--threshold=25", "--no-pager", UNIT)
    assert float(re.search(r"exposure level for pocketbell\.service: ([\d.]+)", told)[1]) <= 2.5


def test_every_starter_checks_the_settings_and_runs_the_same_command():
    command = re.search(r"exec (gunicorn .+)$", (ROOT / "Procfile").read_text(), re.M)[1]
    assert f"exec $(BIN)/{command}\n" in (ROOT / "Makefile").read_text()
    assert unit("ExecStart") == [f"/opt/pocketbell/.venv/bin/{command}"]
    options = command.removeprefix("gunicorn --config gunicorn.conf.py").split()
    assert "".join(f', "{option}"' for option in options) in (ROOT / "cli/service.py").read_text()
    assert unit("ExecStartPre") == ["/opt/pocketbell/.venv/bin/python config.py"]


def test_the_unit_starts_when_the_clock_is_set():
    assert "time-sync.target" in unit("After")[0].split() and "time-sync.target" in unit("Wants")[0].split()


def test_systemd_waits_longer_than_gunicorn_does():
    graceful = re.search(r"^graceful_timeout = (\d+)$", (ROOT / "gunicorn.conf.py").read_text(), re.M)[1]
    assert int(unit("TimeoutStopSec")[0]) > int(graceful)


def test_the_proxies_close_kept_connections_before_gunicorn_does():
    keepalive = int(re.search(r"^keepalive = (\d+)$", (ROOT / "gunicorn.conf.py").read_text(), re.M)[1])
    assert int(re.search(r"keepalive_timeout (\d+)s;", ours("nginx.conf"))[1]) < keepalive
    assert int(re.search(r"keepalive (\d+)s", ours("Caddyfile"))[1]) < keepalive


# --- SECURITY.md --------------------------------------------------------------------------------------------


def test_the_page_on_security_states_the_numbers_that_hold():
    page = (ROOT / "SECURITY.md").read_text()
    days = sorted(plan.history_days for plan in plans.PLANS.values())
    for stated in (
        f"at most {alerts.MAX_KEPT_BYTES // 1024} KB",
        "{}, {} or {:,} days".format(*days),
        f"| {accounts.SESSION_LIFE_MS // DAY_MS} days after the last visit",
        f"valid once, for {accounts.LINK_LIFE_MS // 3_600_000} hours",
        f"as SHA-256 | {idempotency.LIFE_MS // 3_600_000} hours, even",
        f"a heartbeat's newest {heartbeat_checks.KEPT_PINGS} pings",
        f"its latest {recent_requests.MAX_KEPT} requests".replace("30", "thirty"),
        f"may ask for {rate_limits.UNKNOWN_CODES.amount} unknown",
        f"{rate_limits.ALERT_EVENTS.amount} a minute; {rate_limits.FLOOD.amount} a minute pause",
        f"{rate_limits.SIGN_IN_TRIES.amount} for an account and {rate_limits.TRIES_OF_SENDER.amount} in all",
        f"all senders together, {rate_limits.TRIES_OF_STRANGERS.amount} for an account",
        "N = 2^17" if PASSWORD_METHOD.startswith("scrypt:131072:") else "another hash",
    ):
        assert stated in re.sub(r"\s+", " ", page)


def test_the_page_on_security_names_every_table():
    """A new table needs a word on that page; then add its name here."""
    told = "account alarm alert alert_payload alert_requests answer api_key button delivery device fallback firing"
    told += " follower heartbeat heartbeat_change held idempotency_key mail mail_limit metric metric_rule"
    told += " metric_series mute notification notification_copy notification_day one_time_link phone_link picture"
    told += " ping session silent_change snooze"
    of_the_service = {"server_key", "server_note"}
    tables = re.findall(r"^CREATE TABLE (\w+)", (ROOT / "schema.sql").read_text(), re.M)
    assert {*tables} == {*told.split(), *of_the_service}
