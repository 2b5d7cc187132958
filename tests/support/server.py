"""The service as it really runs: gunicorn in its own process, spoken to over sockets. For tests and measurements."""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from tests.support.accounts import OWNER

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
# Of a process that reads no settings file: one beside the program must not reach a test.
NO_FILE = {"PATH": os.environ.get("PATH", ""), "POCKETBELL_ENV": os.devnull, "FLASK_SKIP_DOTENV": "1"}
SHARED = "POCKETBELL_TEST_SHARED"  # names the directory that the processes of a run share
PATIENCE_S = 60  # for what takes a second on a machine that has nothing else to do
UNDELAYED_S = 20  # a busy machine answers within it; to wait for every silent or half-sent request takes a minute


def wait_until(happens, within_s=PATIENCE_S):
    """Poll until `happens()` returns something true, and return it."""
    deadline = time.monotonic() + within_s
    while not (result := happens()):
        assert time.monotonic() < deadline, f"it did not happen within {within_s} s"
        time.sleep(0.01)
    return result


def free_port():
    """A free port below the range for outgoing connections, so that nothing takes it before gunicorn."""
    for port in random.sample(range(15_000, 32_000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port")


def started(command, environ, stdout, stderr, before=None, folder=ROOT):
    """Start a command of ours, which appends what it prints to these files; `before` runs in the new process."""
    with stdout.open("ab") as out, stderr.open("ab") as err:
        return subprocess.Popen(
            command,
            env=environ,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=before,
        )


def finished(start, command, environ):
    """Start a command of ours with `start`, wait for its end, and return what it printed."""
    with tempfile.TemporaryDirectory() as directory:
        stdout, stderr = Path(directory) / "stdout", Path(directory) / "stderr"
        status = start(command, environ, stdout, stderr).wait(PATIENCE_S)
        return subprocess.CompletedProcess(command, status, stdout.read_bytes(), stderr.read_bytes())


class Server:
    """One gunicorn on a data directory."""

    start = staticmethod(started)  # in tests, a Fork (forks.py)
    bin = BIN

    def __init__(self, data_dir, before=None, under=(), **environ):
        """`before` runs in the new process; `under` is a command that starts it, such as strace."""
        self.data_dir, self.port, self.answered = data_dir, free_port(), 0
        self.environ = {**NO_FILE, "DATA_DIR": str(data_dir), "PORT": str(self.port)}
        self.environ |= environ
        data_dir.mkdir(exist_ok=True)
        self.log_path = data_dir.parent / f"log-{self.port}"
        command = [*under, self.bin / "gunicorn", "--config", "gunicorn.conf.py", "--no-control-socket", "app:app"]
        start = started if under else self.start
        self.process = start(command, self.environ, self.log_path, self.log_path, before=before)

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def wait_until_ready(self):
        wait_until(self.is_ready)
        return self

    def is_ready(self):
        assert self.process.poll() is None, self.log
        try:
            return self.get("/healthz").status == 200
        except OSError:
            return False

    def takes_no_more(self):
        """Whether it accepts no connections, for example because it is about to stop."""
        try:
            self.get("/healthz")
        except OSError:
            return True
        return False

    def request(self, method, path, body=None, headers=None, timeout=PATIENCE_S):
        """One request on a new connection; the answer has `status`, `headers`, `text`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            answer.text = answer.read().decode()
            self.answered += 1
            return answer
        finally:
            connection.close()

    def get(self, path, key=None):
        return self.request("GET", path, headers=bearer(key))

    def send(self, key, title="t", body="b"):
        message = json.dumps({"title": title, "body": body})
        return self.request("POST", "/api/v1/notifications/send", message, bearer(key))

    def raw(self, data, half_close=True):
        """Send raw bytes, and return everything that came back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            try:
                connection.sendall(data)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has answered and closed already
            return received(connection)

    def flask(self, *args):
        """Run a command, which must succeed, and return what it printed."""
        done = finished(self.start, [self.bin / "flask", *args], self.environ)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    @contextmanager
    def beside(self):
        """Open the database in this process for the length of the block, beside the service, as a command would."""
        from store import database

        url = self.environ.get("DATABASE_URL")
        database.open_database(database.ServerUrl(url, 1) if url else self.data_dir / "pocketbell.db")
        try:
            yield
        finally:
            database.close()

    def owner_key(self, plan="scale", email=OWNER, hashed=None):
        """A key of a new account, with a password if `hashed` is its hash."""
        from core import accounts
        from process import clock
        from store.database import EVERYBODY, transaction

        with self.beside():
            with transaction(EVERYBODY):
                account = accounts.create_account(email, plan, "UTC", clock.now_ms(), hashed)
            return accounts.create_key(account.seq, "test", clock.now_ms())[1]

    def new_key(self, key, name="another"):
        """Another key of the account that has this one."""
        made = self.request("POST", "/api/v1/api-keys/generate", json.dumps({"name": name}), bearer(key))
        return json.loads(made.text)["apiKey"]["fullKey"]

    def subscribe(self, key, browser):
        """Add a browser at the stand-in push service to the account as a device."""
        device = json.dumps({"kind": "webpush", "subscription": browser.subscription})
        assert self.request("POST", "/api/v1/devices", device, bearer(key)).status == 201

    def listed_ids(self, key):
        """The ids of all notifications in the history."""
        ids, cursor = [], ""
        while True:
            page = json.loads(self.get(f"/api/v1/notifications?limit=100&cursor={cursor}", key).text)
            ids += [one["id"] for one in page["notifications"]]
            cursor = page["pagination"]["nextCursor"]
            if page["pagination"]["isDone"]:
                return ids

    def terminate(self):
        """Send SIGTERM, wait for the end, and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_S)

    def kill(self):
        """Kill master and worker at once with SIGKILL."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def bearer(key):
    return {"Authorization": f"Bearer {key}"} if key else {}


def received(connection):
    answer = b""
    try:
        while part := connection.recv(65536):
            answer += part
    except OSError:
        pass
    return answer


def status_of(answer):
    """The status in a raw answer; None when there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


def in_threads(number, work):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    return threads


def join(threads):
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@contextmanager
def serving(data_dir, **environ):
    server = Server(data_dir, **environ)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()
