"""How gunicorn runs the service: one process, many threads; settings and database checked before that starts."""

import logging
import os
import re
import sys

import accounts
import clock
import database
import jobs
from config import load as load_settings

settings = load_settings()

bind = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"
workers = 1  # the quotas are counted in the process
worker_class = "gthread"
threads = settings.threads
timeout = 30
graceful_timeout = 30
keepalive = 20
umask = 0o077
control_socket_disable = True  # it could add workers
forwarded_allow_ips = ",".join(str(network) for network in settings.trusted_proxies)
loglevel = settings.log_level
accesslog = "-"
access_log_format = "%(h)s %(m)s %({pocketbell.route}e)s %(s)s %(B)s %(M)sms"

SECRETS = re.compile(r"sk_[\w]*|/p/[^\s'\"]*|/app/setup/[^\s'\"]*")


class WithoutSecrets(logging.Filter):
    """gunicorn quotes a request that it cannot read: a key or a code may be in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Leave the record in, without what a client sent."""
        message = record.getMessage()
        if message.startswith("Invalid request from"):
            message = "A request that is not valid HTTP was refused."
        record.msg, record.args = SECRETS.sub("…", message), ()
        return True


def on_starting(server):
    """Make or upgrade the database before a worker needs it."""
    os.umask(umask)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=loglevel.upper(), stream=sys.stderr)
    server.log.error_log.addFilter(WithoutSecrets())
    database.open_database(settings.database)


def when_ready(server):
    """Show the way in while there is no account."""
    shown = settings.print_setup_link or sys.stdout.isatty()
    path = accounts.make_setup_link(clock.now_ms(), wanted=shown)
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
