"""gunicorn's configuration: mostly one process, with many threads. Settings, address, database are checked first."""

import gc
import logging
import os
import signal
import sys
from pathlib import Path

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nohup ignores it
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until gunicorn handles it: no traceback
if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until gunicorn handles it: a reload does not end the start

from config import SHORT_SECRET, VERSION
from config import load as load_settings
from core import accounts, long_poll, proxies, scheduler
from core.server_secret import server_secret
from models import Account
from process import clock, cpu_affinity, start
from process.gunicorn_worker import ThreadedWorker
from process.logs import JsonLines, JsonLogger
from store import database, engine, sqlite_lock
from store.sqlite import copy_before
from web import request_body

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)

settings = load_settings()

bind = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"
workers = settings.workers  # more than one only where Redis counts the rate limits for all of them
worker_class = ThreadedWorker
turns = (request_body.large_bodies, request_body.large_uploads, accounts.hash_turns, accounts.zone_turns)
most_waiting = sum(one.most_waiting for one in turns) + long_poll.MAX_WAITING
threads = settings.threads + most_waiting  # requests that wait, for a turn or an answer, have threads beside THREADS
timeout = 30
graceful_timeout = 30
keepalive = 20
limit_request_line = 8190  # the most that gunicorn takes: ntfy's clients may send a message in the address
open_files = max(start.raise_open_files(2048), 280 + 5 * threads)
worker_connections = min(1000, open_files - 240 - 4 * threads)  # the rest: database, providers, log, streams
umask = 0o077
control_socket_disable = True  # through it, more workers could be added
forwarded_allow_ips = ",".join(proxies.with_mapped(settings.trusted_proxies))
forwarder_headers = ""  # our proxies send no SCRIPT_NAME and the like, and other proxies may pass on a client's
loglevel = settings.log_level
accesslog = "-"
logger_class = JsonLogger


def take_lock(server):
    """Wait until no other service uses this database, unless several may because Redis counts for them."""
    if settings.redis_url:
        return
    if not isinstance(settings.database, Path):
        from store import postgresql_lock

        postgresql_lock.take(settings.database, server.log.warning)
        postgresql_lock.keep(settings.database, lambda: os.kill(os.getpid(), signal.SIGTERM))
        return
    try:
        sqlite_lock.take(settings.database, settings.local_url, server.log.warning, note=settings.addresses)
    except OSError as error:
        where = error.filename or settings.database  # its directory or its lock file
        raise SystemExit(f"DATA_DIR or DATABASE_URL cannot be used: {where}: {error.strerror}.") from None


def on_starting(server):
    """Check the address, and create or upgrade the database before the worker starts."""
    if server.cfg.workers != settings.workers:
        raise SystemExit(
            "GUNICORN_CMD_ARGS asks for other workers than WEB_CONCURRENCY. The rate limits need a single one, unless"
            " PostgreSQL and Redis are used: use THREADS instead."
        )
    if server.cfg.is_ssl:
        raise SystemExit("GUNICORN_CMD_ARGS asks for TLS, which is for a proxy in front (docs/deployment.md).")
    if server.cfg.proxy_protocol != "off":
        raise SystemExit("GUNICORN_CMD_ARGS asks for the PROXY protocol: use X-Forwarded-For (docs/deployment.md).")
    if any(isinstance(address, str) for address in server.cfg.address):
        raise SystemExit(
            "GUNICORN_CMD_ARGS asks for a Unix socket, which does not tell a client's address: use HOST and PORT."
        )
    if "SCRIPT_NAME" in server.cfg.env:
        raise SystemExit("GUNICORN_CMD_ARGS sets SCRIPT_NAME: Pocketbell needs a host name of its own, no path.")
    os.umask(umask)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=loglevel.upper(), handlers=[handler])
    take_lock(server)
    start.check_address(settings.host, settings.port)
    open_database(server)
    server.log.info("Starting Pocketbell %s with schema %s.", VERSION, engine.SCHEMA_VERSION)


def open_database(server):
    """Create the database, or upgrade it and say so; check the file of the secret."""
    began_s = clock.monotonic_s()
    before = database.open_database(settings.database)
    if 0 < before < engine.SCHEMA_VERSION:
        path, took_s = settings.database, clock.monotonic_s() - began_s
        copied = f"; copy at {copy_before(path, before)}" if isinstance(path, Path) else ""
        server.log.info("Upgraded schema %s to %s in %.1f s%s", before, engine.SCHEMA_VERSION, took_s, copied)
    if not settings.secret_key:
        server_secret(settings.data_dir)


def when_ready(server):
    """Print the set-up link if there is no account yet."""
    if settings.wipes_disk:
        server.log.critical(
            "This platform (DYNO is set) wipes the disk at each restart: every account, key and notification will be"
            " lost. Use PostgreSQL (docs/scaling.md), or a machine with a persistent disk (docs/deployment.md)."
        )
    if settings.has_short_secret:
        server.log.warning(SHORT_SECRET)
    try:
        path, aim = first_link()
    except database.WriteFailed as error:
        raise SystemExit(f"The database {settings.database} cannot be written: {error}.") from None
    if path:
        words = f"Open this link to {aim} (it works once, within 24 hours):"
        print(f"\n  {words}\n\n  {settings.public_url}{path}\n", flush=True)
    elif not Account.exists():
        server.log.info(
            "There is no account yet. Create one with: ./pocketbell account create, or flask account create."
            " With PRINT_SETUP_LINK=1 a start prints a link that creates it, with FIRST_ACCOUNT one for that address."
        )
    os.register_at_fork(after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING))
    database.close()  # a connection must not be used after a fork
    gc.freeze()  # the worker's collector would write to the memory that both share, and so copy it


def first_link():
    """The path of the link that leads to the first account, if one is to be printed, and what it is for."""
    if email := settings.first_account:
        return accounts.make_first_link(email, clock.now_ms()), f"set the password of {email}"
    shown = settings.print_setup_link or sys.stdout.isatty()
    return accounts.make_setup_link(clock.now_ms(), wanted=shown), "create your account"


def nworkers_changed(server, new, old):
    """Let no signal (TTIN) add a process: the settings say how many may count the rate limits."""
    if new > settings.workers:
        server.num_workers = settings.workers


def pre_fork(server, worker):
    """Block stop signals until the new worker can handle them: the handlers that it inherits would lose them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)


def post_worker_init(worker):
    """Prepare the worker process: signals, CPU, database, memory, background jobs."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    cpu_affinity.keep_to_one()
    worker.wsgi.open()
    worker.sender_of = proxies.sender
    engine.make_way, engine.pass_on = worker.make_way, worker.baton.pass_on
    engine.let_others, engine.go_beside = worker.baton.let_others, worker.baton.go_beside
    long_poll.goes_on = lambda: worker.alive  # the end of the service waits for the requests that are being answered
    start.bound_memory()
    gc.freeze()  # everything loaded so far stays, so the garbage collector need not scan it
    scheduler.background.start()


def worker_exit(server, worker):
    """Stop the streams and the background jobs, which write their state in memory."""
    worker.wsgi.streams.finish()
    scheduler.background.stop()
