"""How gunicorn runs the service: one process, many threads; settings and database checked before that starts."""

import contextlib
import ctypes
import errno
import gc
import logging
import os
import resource
import socket
import sys
import threading

from config import load as load_settings
from core import accounts, jobs, proxies
from process import clock, cpu_affinity, service_lock
from process.gunicorn_worker import JsonLogger, ThreadedWorker
from process.logs import JsonLines
from store import database
from web import request_body

settings = load_settings()


def open_files(wanted):
    """How many files may be open: as many as are wanted, if the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(allowed, 240 + 5 * threads)


bind = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"
workers = 1  # the quotas are counted in the process
worker_class = ThreadedWorker
waiting = request_body.large_bodies.most_waiting + accounts.hash_turns.most_waiting
threads = settings.threads + waiting  # who waits there holds none of THREADS
timeout = 30
graceful_timeout = 30
keepalive = 20
worker_connections = min(1000, open_files(2048) - 200 - 4 * threads)  # beside them databases, providers, log
umask = 0o077
control_socket_disable = True  # it could add workers
forwarded_allow_ips = ",".join(proxies.with_mapped(settings.trusted_proxies))
forwarder_headers = ""  # SCRIPT_NAME, say: no proxy of ours sends it, and others might pass it on
loglevel = settings.log_level
accesslog = "-"
logger_class = JsonLogger


IN_USE_S = 3.0  # where a service was killed: its worker sees within a second that it is alone, and leaves the address
M_ARENA_MAX = -8  # of mallopt: each thread's own heap keeps what was freed in it
M_MMAP_THRESHOLD = -3  # and once set it stays: large bodies go back to the system when they are freed


def check_address():
    """Wait for an address in use, and stop with one line where nobody can listen; gunicorn's names no settings."""
    until_s = clock.monotonic_s() + IN_USE_S
    while error := refused_address():
        if error.args[0] != errno.EADDRINUSE or clock.monotonic_s() > until_s:
            why = getattr(error, "strerror", None) or "there is no such name"
            raise SystemExit(f'HOST is "{settings.host}" and PORT "{settings.port}": nobody can listen there: {why}.')
        threading.Event().wait(0.1)


def refused_address():
    """Why the system does not let us listen, if it does not."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET  # as gunicorn takes it
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((settings.host, settings.port))
    except (OSError, UnicodeError) as error:
        return error
    return None


def take_lock(server):
    """Wait for another service on this database to end."""
    try:
        service_lock.take(settings.database, settings.local_url, server.log.warning)
    except OSError as error:
        raise SystemExit(f"The database {settings.database} cannot be used: {error.strerror}.") from None


def on_starting(server):
    """Make or upgrade the database before a worker needs it."""
    if server.cfg.workers != 1:
        raise SystemExit(
            "GUNICORN_CMD_ARGS asks for more than one worker: only 1 can count the quotas (use THREADS)."
        )
    os.umask(umask)
    take_lock(server)
    check_address()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=loglevel.upper(), handlers=[handler])
    database.open_database(settings.database)


def when_ready(server):
    """Show the way in while there is no account."""
    if settings.wipes_disk:
        server.log.critical(
            "This platform (DYNO is set) wipes the disk at each restart, and the database with it:"
            " every account, key and notification will be lost. Use a machine whose disk stays (docs/deployment.md)."
        )
    shown = settings.print_setup_link or sys.stdout.isatty()
    try:
        path = accounts.make_setup_link(clock.now_ms(), wanted=shown)
    except database.WriteFailed as error:
        raise SystemExit(f"The database {settings.database} cannot be written: {error}.") from None
    if path:
        words = "Open this link to create your account (it works once, within 24 hours):"
        print(f"\n  {words}\n\n  {settings.public_url}{path}\n", flush=True)
    elif not accounts.any_account():
        server.log.info("There is no account yet: `flask account create` makes one.")
    database.close()  # a connection must not be carried into the worker


def pre_request(worker, req):
    """Log nothing: gunicorn's own hook logs the path at debug, and a secret may be in it."""


def post_worker_init(worker):
    """Start the background jobs in the process that serves."""
    cpu_affinity.keep_to_one()
    worker.wsgi.open()
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 131_072)
    gc.freeze()  # what is there now stays: the collector need not look at it again and again
    jobs.worker.start()


def worker_exit(server, worker):
    """End the background jobs and write what is kept in memory."""
    jobs.worker.stop()
