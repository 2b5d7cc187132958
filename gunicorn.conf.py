"""How gunicorn runs the service: one process, many threads; settings and database checked before that starts."""

import contextlib
import json
import logging
import os
import re
import sys
from urllib.parse import unquote

from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import ThreadWorker

import accounts
import clock
import database
import jobs
from config import load as load_settings
from errors import Refused, rest_body


class ThreadedWorker(ThreadWorker):
    """gunicorn's threads; a request that is not HTTP is refused in our shape and without quoting it."""

    def handle_error(self, req, client, addr, exc):
        """Answer what could not be read; a key or a code may be in it."""
        if not isinstance(exc, ParseException):
            super().handle_error(req, client, addr, exc)
            return
        body = json.dumps(rest_body(Refused(400, "The request is not valid HTTP."))).encode()
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        with contextlib.suppress(OSError):
            client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)


settings = load_settings()

bind = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"
workers = 1  # the quotas are counted in the process
worker_class = ThreadedWorker
threads = settings.threads
timeout = 30
graceful_timeout = 30
keepalive = 20
umask = 0o077
control_socket_disable = True  # it could add workers
forwarded_allow_ips = ",".join(str(network) for network in settings.trusted_proxies)
forwarder_headers = ""  # SCRIPT_NAME, say: no proxy of ours sends it, and others might pass it on
loglevel = settings.log_level
accesslog = "-"
access_log_format = "%(h)s %(m)s %({pocketbell.route}e)s %(s)s %(B)s %(M)sms"

SECRETS = re.compile(r"sk_[\w]*|/p/[^\s'\"]*|/app/setup/[^\s'\"]*")


class WithoutSecrets(logging.Filter):
    """gunicorn names addresses in its own log lines: a short code or a link may be in one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Leave the record in, without them."""
        message = record.getMessage()
        if "%" in message:  # a path as it was sent; what is written otherwise means the same
            message = "".join(c if c.isprintable() or c in "\n\t" else " " for c in unquote(message))
        record.msg, record.args = SECRETS.sub("…", message), ()
        return True


def on_starting(server):
    """Make or upgrade the database before a worker needs it."""
    if server.cfg.workers != 1:
        raise SystemExit(
            "GUNICORN_CMD_ARGS asks for more than one worker: only 1 can count the quotas (use THREADS)."
        )
    os.umask(umask)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=loglevel.upper(), stream=sys.stderr)
    server.log.error_log.addFilter(WithoutSecrets())
    database.open_database(settings.database)


def when_ready(server):
    """Show the way in while there is no account."""
    shown = settings.print_setup_link or sys.stdout.isatty()
    try:
        path = accounts.make_setup_link(clock.now_ms(), wanted=shown)
    except database.WriteFailed as error:
        raise SystemExit(f"The database {settings.database} cannot be written: {error}.") from None
    if path:
        print(
            f"\n  Open this link to make your account (good once, for 24 hours):\n\n  {settings.public_url}{path}\n",
            flush=True,
        )
    elif not accounts.any_account():
        server.log.info("There is no account yet: `flask account create` makes one.")
    database.database.close()  # a connection must not be carried into the worker


def post_worker_init(worker):
    """Start the background jobs in the process that serves."""
    jobs.worker.start()


def worker_exit(server, worker):
    """End the background jobs and write what is kept in memory."""
    jobs.worker.stop()
