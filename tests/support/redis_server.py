"""A Redis on a free port, for tests that need a real one; and what stands in for it where it cannot misbehave so."""

import contextlib
import os
import shutil
import socket
import subprocess

import pytest

from tests.support.server import free_port, wait_until


class RedisServer:
    """redis-server that keeps nothing on the disk."""

    def __init__(self, *options, port=None):
        program = shutil.which("redis-server")
        if program is None:
            assert os.environ.get("REQUIRE_POSTGRESQL") != "1", "there is no redis-server"
            pytest.skip("there is no redis-server on this machine")
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        usual = ("--bind", "127.0.0.1", "--save", "", "--rdbcompression", "no", "--port", str(self.port))
        self._command = [program, *usual, *options]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers)

    def _answers(self):
        assert self.process.poll() is None, "redis-server ended"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=20):
            return True
        return False

    def ask(self, *command):
        """What Redis says to a command, as the lines of the protocol."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            parts = [str(part).encode() for part in command]
            sent = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
            connection.sendall(b"*%d\r\n%b" % (len(parts), sent))
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """End it at once, as a machine does that fails."""
        self.process.kill()
        self.process.wait()
