"""PgBouncer before PostgreSQL: its session mode does, its transaction mode is refused."""

import os
import shutil
import subprocess

import pytest

from store import database, server_notes
from store.database import DatabaseRefused, ServerUrl
from tests.support import postgresql as servers
from tests.support.server import free_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


@pytest.fixture
def behind_pgbouncer(engine, tmp_path):
    """Makes a new database, and a PgBouncer in this mode before it, whose address it returns."""
    if not PROGRAM:
        pytest.skip("PgBouncer is not installed")
    started = []

    def start(mode):
        port, name = free_port(), f"pooled_{os.getpid()}_{mode}"
        host_and_port = servers.new_database(name).rpartition("@")[2].partition("/")[0]
        server_port = host_and_port.partition(":")[2]
        settings = tmp_path / f"{mode}.ini"
        settings.write_text(
            f"[databases]\n{name} = host=127.0.0.1 port={server_port} user={servers.USER}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n"
        )
        as_user = ["-u", servers.USER] if os.getuid() == 0 else []  # it refuses to run as root
        started.append(subprocess.Popen([PROGRAM, "-q", *as_user, settings], stderr=subprocess.DEVNULL))
        return ServerUrl(f"postgresql://{servers.USER}@127.0.0.1:{port}/{name}", 2)

    yield start
    database.close()
    for process in started:
        process.terminate()
        process.wait()


def test_in_session_mode_it_does(behind_pgbouncer):
    database.open_database(behind_pgbouncer("session"))
    server_notes.try_writing()


def test_in_transaction_mode_it_is_refused_because_locks_and_settings_belong_to_a_connection(behind_pgbouncer):
    with pytest.raises(DatabaseRefused, match="a pooler in transaction mode is before it"):
        database.open_database(behind_pgbouncer("transaction"))
