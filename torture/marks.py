"""Secrets with marks in every place that takes one, at the most verbose log level, and where they come out again."""

import base64
import json
import os
import re
import signal
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from tests.support.apns_service import ApnsService
from tests.support.certificates import make
from tests.support.fcm_service import FcmService
from tests.support.push_service import PushService
from tests.support.server import Server, wait_until
from torture import client
from torture.client import (
    PASSWORD,
    Answer,
    Browser,
    Connection,
    account,
    alerts_of,
    asked,
    command,
    send,
    started,
    tell,
    worker_pid,
)
from torture.figure import Figure

EMAIL = "owner@example.org"
LINE_OF_OLD = re.compile(r"127\.0\.0\.1 [A-Z-]+ \S+ \d{3} ")
LOCKED_S = 8.0


class Mark(NamedTuple):
    """A secret, and the places where it may appear: in the database, in an answer to its owner's form."""

    name: str
    text: str
    is_credential: bool = True
    is_kept: bool = False


class Marks:
    """All marks, and all answers."""

    def __init__(self) -> None:
        self.all, self.answers = list[Mark](), list[tuple[str, Answer]]()

    def add(self, name: str, text: str, is_credential: bool = True, is_kept: bool = False) -> str:
        """Remember a secret and return it."""
        self.all.append(Mark(name, text, is_credential, is_kept))
        return text

    def found_in(self, text: str) -> list[str]:
        """The names of the secrets in a text: literally, percent-encoded, or in another case."""
        lowered = text.lower()
        return [one.name for one in self.all if one.text.lower() in lowered or quote(one.text, "").lower() in lowered]

    def hear(self, target: str, answer: Answer) -> None:
        """Keep an answer."""
        self.answers.append((target, answer))

    @property
    def in_errors(self) -> list[str]:
        """Secrets in refusals and errors; a page may show its owner what was typed."""
        typed = {one.name for one in self.all if not one.is_credential or "short code" in one.name}
        found = list[str]()
        for target, answer in self.answers:
            if answer.status < 400:
                continue
            heads = "".join(f"{name}: {value}\n" for name, value in answer.headers if name.lower() != "set-cookie")
            names = set(self.found_in(heads + answer.text)) - (typed if target.startswith("/app") else set())
            found += [f"{name} in the answer {answer.status} to {target[:60]}" for name in names]
        return found


class Watch:
    """Watches the command lines of the service's processes and of all children of this process."""

    def __init__(self, server: Server) -> None:
        self.server, self.seen, self.ends = server, set[str](), threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        while not self.ends.wait(0.02):
            for pid in (
                self._children(os.getpid()) + self._children(self.server.process.pid) + [self.server.process.pid]
            ):
                with suppress(OSError):
                    self.seen.add(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " "))

    def _children(self, pid: int) -> list[int]:
        children = list[int]()
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                children += [int(one) for one in (task / "children").read_text().split()]
        return children

    def close(self) -> None:
        """Stop watching."""
        self.ends.set()
        self.thread.join()


def figures(scratch: Path) -> Iterator[Figure]:
    """Use everything, break what can be broken, and look for the marks."""
    certificates, marks = make(scratch), Marks()
    with ExitStack() as stack:
        apns, fcm = stack.enter_context(closing(ApnsService(certificates))), FcmService(certificates)
        push = stack.enter_context(closing(PushService()))
        stack.callback(fcm.close)
        service_account = fcm.service_account()
        environ = {
            "APNS_URL": apns.url,
            "APNS_KEY": apns.key_pem,
            "APNS_KEY_ID": apns.key_id,
            "APNS_TOPIC": apns.topic,
        }
        environ |= {"FCM_URL": fcm.origin, "FCM_SERVICE_ACCOUNT": json.dumps(service_account)}
        environ |= {"APNS_TEAM_ID": apns.team_id, "SSL_CERT_FILE": certificates.ca_file, "LOG_LEVEL": "debug"}
        server = stack.enter_context(started(scratch, "marks", WEBPUSH_HOSTS=push.origin, **environ))
        marks.add("APNs key", apns.key_pem.splitlines()[1])
        marks.add("FCM key", service_account["private_key"].splitlines()[3])
        client.observers.append(marks.hear)
        stack.callback(client.observers.clear)
        watch = stack.enter_context(closing(Watch(server)))
        yield from told(Owner(server, marks), apns, fcm, push, watch)


def told(owner: "Owner", apns: ApnsService, fcm: FcmService, push: PushService, watch: Watch) -> Iterator[Figure]:
    """Do everything in turn; the rows."""
    server, marks = owner.server, owner.marks
    owner.register(apns, fcm, push)
    owner.use_everything()
    yield counted_lines(server, marks, "requests that were answered, and lines in the access log", 0, 0, 0)
    owner.break_providers(apns, fcm, push)
    time.sleep(0.5)  # the last log line may come after its answer
    lines, answers = access_lines(server), len(marks.answers) + server.answered
    malformed = owner.send_malformed()
    yield counted_lines(server, marks, f"the same of {malformed} that are no HTTP", lines, answers, owner.resets)
    owner.lock_database()
    for name, token in (
        ("APNs token of ours", next(iter(apns.tokens), "")),
        ("FCM access token", next(iter(fcm.access), "")),
    ):
        assert marks.add(name, token), name
    yield from in_database(server, marks)
    owner.break_database()
    owner.kill_worker()
    server.terminate()
    watch.close()
    yield from came_out(server, marks, watch, owner.errors)


def came_out(server: Server, marks: Marks, watch: Watch, errors: list[str]) -> Iterator[Figure]:
    """The rows about where marks were found."""
    found = [f"{names}: {line[:300]}" for line in server.log.splitlines() if (names := marks.found_in(line))]
    what = f"{len(marks.all)} marked secrets in {len(server.log.splitlines())} lines of the log at LOG_LEVEL=debug"
    yield row(what, found)
    found = [f"{names}: {line[:200]}" for line in watch.seen if (names := marks.found_in(line))]
    yield row(f"the same in {len(watch.seen)} command lines of the service's and the commands' processes", found)
    errors_seen = sum(answer.status >= 400 for _, answer in marks.answers)
    yield row(f"the same in {errors_seen} error answers", marks.in_errors)
    found = [f"{names}: {line[:200]}" for line in errors if (names := marks.found_in(line))]
    yield row(f"the same in what {len(errors)} refused commands print", found)
    not_json = [line for line in server.log.splitlines() if line.strip() and not client.strict_json(line.encode())]
    for line in not_json[:3]:
        tell("no JSON", line[:200])
    seen = f"{len(not_json)} of {len(server.log.splitlines())} are not"
    yield Figure("every line of the log is JSON", "all", seen, not not_json)


def row(what: str, found: list[str]) -> Figure:
    """A row that must find nothing."""
    for line in found[:10]:
        tell("found", line)
    return Figure(what, "0 hits", str(len(found)), not found)


def access_lines(server: Server) -> int:
    """The number of log lines about requests."""
    return sum(is_access_line(line) for line in server.log.splitlines())


def is_access_line(line: str) -> bool:
    """Whether a log line is about a request: an object with method, route and status, or these words in order."""
    if not line.startswith("{"):
        return LINE_OF_OLD.match(line) is not None
    try:
        return {"method", "route", "status"} <= json.loads(line).keys()
    except ValueError:
        return False


def counted_lines(
    server: Server, marks: Marks, what: str, lines_before: int, answers_before: int, resets: int
) -> Figure:
    """The log must have as many lines as there were answers, once it is complete."""
    answers = len(marks.answers) + server.answered - answers_before
    with suppress(AssertionError):
        wait_until(lambda: access_lines(server) - lines_before >= answers, 3)
    time.sleep(0.3)
    lines = access_lines(server) - lines_before
    seen = f"{answers} answers, {lines} lines; {resets} connections were reset, perhaps with an answer on its way"
    return Figure(what, "as many lines as answers", seen, answers <= lines <= answers + resets)


def in_database(server: Server, marks: Marks) -> Iterator[Figure]:
    """The database's files must contain no caller's credential, but everything that was sent."""
    data = b"".join(path.read_bytes() for path in server.data_dir.glob("*.db*"))
    found = [one.name for one in marks.all if not one.is_kept and one.text.encode() in data]
    yield row("keys, password, session, link and idempotency marks in the database's files", found)
    missing = [one.name for one in marks.all if one.is_kept and one.text.encode() not in data]
    seen = f"{len(missing)} are not there {missing or ''}"
    yield Figure("the other marks were really taken: they are in the database", "0 missing", seen, not missing)


class Owner:
    """The owner, who uses the service and breaks it."""

    def __init__(self, server: Server, marks: Marks) -> None:
        self.server, self.marks, self.port = server, marks, server.port
        self.errors, self.resets = list[str](), 0
        self.key = account(server, EMAIL)
        marks.add("API key", self.key[8:])
        marks.add("password", PASSWORD)
        self.browser = Browser(server.port).sign_in(EMAIL)
        marks.add("session cookie", self.browser.cookie.partition("=")[2][-40:])
        marks.add("session token", session_token(self.browser.cookie))
        self.alert, self.code = alerts_of(self.browser, 1)[0]
        marks.add("short code", self.code, is_kept=True)
        link = command(server, "account", "create", "second@example.org").stdout
        found = re.search(r"/app/setup/([\w-]+)", link)
        assert found, link
        self.link = marks.add("one-time link", found[1])
        with sqlite3.connect(server.data_dir / "pocketbell.db") as database:
            (vapid,) = database.execute("SELECT value FROM server_key WHERE name = 'vapid'").fetchone()
        database.close()
        marks.add("VAPID key", vapid, is_kept=True)

    def register(self, apns: ApnsService, fcm: FcmService, push: PushService) -> None:
        """Register a device of each kind."""
        self.phones = apns.phone(), fcm.phone(), push.browser()
        iphone, android, browser = self.phones
        browser.endpoint += "-3ndp01nt5ecret"
        push.browsers[browser.endpoint.removeprefix(push.origin)] = browser
        self.marks.add("APNs device", iphone.token, is_credential=False, is_kept=True)
        self.marks.add("FCM device", android.token, is_credential=False, is_kept=True)
        self.marks.add("endpoint", "3ndp01nt5ecret", is_credential=False, is_kept=True)
        for name in ("p256dh", "auth"):
            self.marks.add(
                f"subscription's {name}", browser.subscription["keys"][name], is_credential=False, is_kept=True
            )
        for kind, named in (("apns", {"token": iphone.token}), ("fcm", {"token": android.token})):
            self.rest("POST", "/devices", {"kind": kind, **named})
        self.rest("POST", "/devices", {"kind": "webpush", "subscription": browser.subscription})

    def rest(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a REST request."""
        return asked(self.port, method, f"/api/v1{path}", body, self.key, **headers)

    def use_everything(self) -> None:
        """Use REST, webhooks, pages and commands."""
        for name in ("title", "body", "payload", "template", "search", "project", "name"):
            kept = name not in ("search",)
            self.marks.add(f"{name} mark", f"{name}-5ecretm4rk", is_credential=False, is_kept=kept)
        idempotency = self.marks.add("Idempotency-Key", "1demp0tency-5ecret", is_credential=False, is_kept=True)
        message = {"title": "title-5ecretm4rk", "body": "body-5ecretm4rk"}
        for _ in range(2):
            answer = self.rest("POST", "/notifications/send", message, Idempotency_Key=idempotency)
        assert answer.json["notification"]["status"] == "delivered", answer
        self.rest("POST", "/notifications/send", {**message, "body": 1})
        self.rest("POST", "/notifications/send", message, Idempotency_Key="1demp0tency-5ecret \xe9")
        self.rest("GET", "/notifications?search=search-5ecretm4rk&limit=2")
        self.rest("GET", f"/notifications?cursor={self.key}&search=search-5ecretm4rk")
        self.rest("POST", "/devices", {"kind": "apns", "token": f"{self.phones[0].token}x"})
        self.rest("POST", "/api-keys/generate", {"name": "name-5ecretm4rk"})
        for path in ("/alerts", "/stats", "/api-keys", "/devices", f"/{self.key}"):
            self.rest("GET", path)
        self.rest("DELETE", f"/api-keys/{self.key}")
        self.use_webhooks()
        self.use_pages()
        self.use_commands()

    def use_webhooks(self) -> None:
        """Send valid and invalid events and metrics."""
        event = {"title": "title-5ecretm4rk", "payload": "payload-5ecretm4rk"}
        assert asked(self.port, "POST", f"/p/{self.code}", event).status == 200
        asked(self.port, "POST", f"/p/{self.code}", '{"payload-5ecretm4rk": ')
        for path in (
            f"/p/{self.code}x",
            f"/p/{self.code}/x",
            f"/%70/{self.code}",
            f"/p%2F{self.code}",
            f"//p/{self.code}",
        ):
            asked(self.port, "POST", path, event)
        asked(self.port, "GET", f"/p/{self.code}?token={self.key}")
        metric = {
            "metricId": "m",
            "metricName": "name-5ecretm4rk",
            "value": 1,
            "metadata": {"a": "payload-5ecretm4rk"},
        }
        body = {"projectId": "project-5ecretm4rk", "metrics": [metric]}
        assert asked(self.port, "POST", "/api/webhooks/custom", body, self.key).status == 200
        asked(
            self.port,
            "POST",
            "/api/webhooks/custom",
            {**body, "metrics": [{**metric, "value": "payload-5ecretm4rk"}]},
            self.key,
        )

    def use_pages(self) -> None:
        """Open pages and submit forms, valid and invalid."""
        pages = (
            "",
            "notifications?search=search-5ecretm4rk",
            "alerts",
            f"alerts/{self.alert}",
            "keys",
            "devices",
            "quiet",
        )
        for page in (
            *pages,
            "settings",
            "metrics",
            "metrics/one?project=project-5ecretm4rk&metric=m",
            "no/such/place",
        ):
            self.browser.get(f"/app/{page}")
        self.browser.get(f"/app/alerts/{self.alert}/qr.svg")
        self.browser.form(f"/app/alerts/{self.alert}", title="template-5ecretm4rk {{ title }}", body="{{ payload }}")
        self.browser.form(
            f"/app/alerts/{self.alert}", title="template-5ecretm4rk {{ a | no_such }}", body="", payload="{"
        )
        draft = {"title": "template-5ecretm4rk", "body": "", "payload": '{"a": "payload-5ecretm4rk"'}
        self.browser.script(f"/app/alerts/{self.alert}/preview", draft)
        self.browser.form("/app/keys", name="name-5ecretm4rk" * 20)
        self.browser.form("/app/devices/token", kind="fcm", token=f"{self.phones[1].token}\x01", name="n")
        self.browser.form("/app/settings/password", current=PASSWORD, new=PASSWORD[:5])
        self.browser.form("/app/settings/time-zone", time_zone="Mars/Olympus")
        self.browser.get(f"/app/setup/{self.link}")
        asked(self.port, "GET", f"/app/setup/{self.link}x")
        other = Browser(self.port)
        other.get("/app/login?next=/app/setup/" + self.link)
        other.form("/app/login", email="nobody@example.org", password=PASSWORD)
        other.form("/app/login", email=EMAIL, password=f"{PASSWORD}-")
        other.csrf = "wrong"
        other.form("/app/login", email=EMAIL, password=PASSWORD)
        asked(self.port, "POST", "/app/devices/resync", {"subscription": self.phones[2].subscription}, self.key)

    def use_commands(self) -> None:
        """Run commands, valid and invalid."""
        key = command(self.server, "key", "create", EMAIL, "by command").stdout.strip()
        self.marks.add("API key of a command", key[8:])
        address = command(self.server, "alert", "create", EMAIL, "by command").stdout.strip()
        self.marks.add("short code of a command", address.rpartition("/")[2], is_kept=True)
        for args in (
            ["key", "list", EMAIL],
            ["alert", "list", EMAIL],
            ["device", "list", EMAIL],
            ["account", "list"],
        ):
            done = command(self.server, *args)
            self.errors.append(done.stderr)
        alert = command(self.server, "alert", "list", EMAIL).stdout.split("\t")[0]
        new = command(self.server, "alert", "rotate", EMAIL, alert).stdout.strip()
        self.marks.all = [one for one in self.marks.all if one.name != "short code of a command"]
        self.marks.add("rotated short code", new.rpartition("/")[2], is_kept=True)
        wrong = (
            ["key", "revoke", EMAIL, "no-such-id"],
            ["alert", "rotate", EMAIL, "no-such-id"],
            ["key", "list", "nobody"],
        )
        for args in (*wrong, ["device", "remove", EMAIL, "no-such-id"]):
            self.errors.append(command(self.server, *args).stderr)
        done = command(self.server, "account", "set", EMAIL, "--password-stdin", stdin=f"{PASSWORD[:6]}\n")
        self.errors.append(done.stdout + done.stderr)
        self.errors.append(command(self.server, "backup", str(self.server.data_dir / "copy.db")).stderr)
        (self.server.data_dir / "copy.db").unlink(missing_ok=True)

    def break_providers(self, apns: ApnsService, fcm: FcmService, push: PushService) -> None:
        """Use providers that quote the token, the payload or a credential, close the connection, or redirect."""
        iphone, android, browser = self.phones
        endpoint = browser.endpoint.encode()
        for number in range(5):
            words = (iphone.token, "title-5ecretm4rk", "InternalServerError", "x" * 50, iphone.token.upper())[number]
            iphone.then(500, words) if number < 3 else iphone.then(403, words)
            android.then(
                503 if number % 2 else 403, message=android.token, error_code=android.token, html=number == 2
            )
            browser.then(
                (500, 403, 429, 301, 0)[number], b'{"reason": "' + endpoint + b'"}', Location=endpoint.decode()
            )
            send(self.server, self.key, "title-5ecretm4rk", "body-5ecretm4rk")
            self.browser.get("/app/devices")

    def send_malformed(self) -> int:
        """Send requests that are not HTTP, with secrets in every part; the number of answers."""
        before = len(self.marks.answers)
        for secret in (
            self.key,
            self.code,
            PASSWORD.replace(" ", "-"),
            self.link,
            f"/p/{self.code}",
            f"/app/setup/{self.link}",
        ):
            for text in malformed(secret):
                self._send_bytes(text.encode("latin-1"))
        return len(self.marks.answers) - before

    def _send_bytes(self, data: bytes) -> None:
        """Send bytes and hear every answer: the rest of one request is taken for the next."""
        with closing(Connection(self.port, 5)) as connection, suppress(TimeoutError):
            connection.send(data)
            connection.half_close()
            while answer := connection.answer():
                self.marks.hear("", answer)
            self.resets += connection.was_reset

    def lock_database(self) -> None:
        """Let another process lock the database for a while."""
        locked = sqlite3.connect(self.server.data_dir / "pocketbell.db", isolation_level=None)
        locked.execute("BEGIN IMMEDIATE")

        def use() -> None:
            send(self.server, self.key, "title-5ecretm4rk", "body-5ecretm4rk", timeout=60)
            asked(self.port, "POST", f"/p/{self.code}", {"payload": "payload-5ecretm4rk"}, timeout=60)

        threads = [threading.Thread(target=use) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(LOCKED_S)
        locked.execute("ROLLBACK")
        locked.close()
        for thread in threads:
            thread.join()

    def break_database(self) -> None:
        """Drop a table, so that every send is a server error."""
        with sqlite3.connect(self.server.data_dir / "pocketbell.db", timeout=10) as database:
            database.execute("DROP TABLE notification_day")
        database.close()
        for _ in range(10):
            answer = send(self.server, self.key, "title-5ecretm4rk", "body-5ecretm4rk")
            asked(self.port, "POST", f"/p/{self.code}", {"payload": "payload-5ecretm4rk"})
            self.browser.get("/app/")
        assert answer.status == 500, answer

    def kill_worker(self) -> None:
        """Kill the worker in the middle of requests, in two ways."""
        for number in (signal.SIGABRT, signal.SIGKILL):
            threads = [threading.Thread(target=self._send_in_vain) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(0.02)
            os.kill(worker_pid(self.server), number)
            for thread in threads:
                thread.join()
            self.server.wait_until_ready()

    def _send_in_vain(self) -> None:
        with suppress(Exception):
            for _ in range(20):
                send(self.server, self.key, "title-5ecretm4rk", "body-5ecretm4rk", timeout=5)


def malformed(secret: str) -> Iterator[str]:
    """Requests that are refused while they are parsed, and some that are just valid."""
    yield f"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization Bearer {secret}\r\n\r\n"
    yield f"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization\x01: Bearer {secret}\r\n\r\n"
    yield f"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\x00\r\n\r\n"
    yield f"GET /healthz HTTP/1.1\r\nHost: x\r\nX {secret}: y\r\n\r\n"
    yield f"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n {secret}\r\n\r\n"
    for name in ("Content-Length", "Transfer-Encoding", "Expect", "Host", "Connection", "Cookie", "X-Forwarded-For"):
        yield f"POST /healthz HTTP/1.1\r\n{name}: {secret}\r\n\r\n"
    yield f"{secret}\r\n\r\n"
    yield f"{secret} / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield f"GET /{secret}\r\n\r\n"
    yield f"GET /{secret} more HTTP/1.1\r\nHost: x\r\n\r\n"
    yield f"GET {secret} HTTP/1.1\r\nHost: x\r\n\r\n"
    yield f"GET http://{secret}/{secret}?{secret} HTTP/1.1\r\nHost: x\r\n\r\n"
    yield f"GET /healthz HTTP/9.9{secret}\r\n\r\n"
    yield f"GET /{'x' * 9000}{secret} HTTP/1.1\r\n\r\n"
    yield f"GET /%{secret}%0d%0a{secret}?{secret}#{secret} HTTP/1.1\r\nHost: x\r\n\r\n"
    yield f"GET / HTTP/1.1\r\nHost: x\r\nX: {'x' * 9000}{secret}\r\n\r\n"
    yield f"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{secret}\r\n"
    chunks = f"5;{secret}\r\nabcde\r\n0\r\n{secret}\r\n\r\n"
    yield f"POST /p/0000000 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"
    yield f"POST /p/0000000 HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{secret}"
    yield f"PRI * HTTP/2.0\r\n\r\n{secret}\r\n\r\n"
    yield f"PROXY TCP4 {secret} 127.0.0.1 1 2\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"


def session_token(cookie: str) -> str:
    """The session's token in the cookie."""
    text = cookie.partition("=")[2]
    is_packed, payload = text.startswith("."), text.lstrip(".").partition(".")[0]
    data = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    return str(json.loads(zlib.decompress(data) if is_packed else data)["token"])
