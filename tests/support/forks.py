"""Processes forked from one that has imported the service: the imports are four fifths of what a start costs.

Such a process does everything else that a command of ours does. What imports change, and what happens before them, is
tested with commands; so do torture and bench everything.
"""

import importlib.metadata
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time

from process import clock
from tests.support.server import BIN, PATIENCE_S, ROOT, wait_until

context = multiprocessing.get_context("forkserver")
# What a service imports at its start, and LATER, when it pushes or uses PostgreSQL or Redis; forks have it already.
OURS = ["app", "process.gunicorn_worker", "process.logs", "process.start", "store.sqlite_lock"]
OTHERS = ["dotenv", "encodings.idna", "flask.cli", "gunicorn.app.wsgiapp"]
LATER = ["providers.webpush_crypto", "psycopg_pool", "redis"]
context.set_forkserver_preload(["tests.support.compiled", *OURS, *OTHERS, *LATER, __name__])


class Fork:
    """A process that does what our `gunicorn` or `flask` does with these arguments, used like `subprocess.Popen`.

    Not from several threads: one that looks whether it lives could take the status that another one waits for.
    """

    def __init__(self, command, environ, stdout, stderr, stdin=os.devnull, before=None):
        """The streams are the paths of files, or None for what is closed; it appends to the first two.

        A terminal opened this way becomes the process's own. `before` is called first in it, so it must be picklable.
        """
        begins, ours = context.Pipe(duplex=False)
        arguments = ([str(part) for part in command], environ, (stdin, stdout, stderr), ours, before)
        self._process = context.Process(target=_run, args=arguments, daemon=True)
        self._process.start()
        self.pid = self._process.pid
        ours.close()
        with begins:
            begins.recv()  # from now on its group can be killed, and the files are there

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("a fork", timeout)
        return self.poll()

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


def hasten():
    """Let a fork's monotonic clock run a hundred times as fast; to be given to it as `before`."""
    clock.monotonic_s = lambda: 100 * time.monotonic()


def fill_disk(at):
    """Let a fork write no file of more than `at` bytes; to be given to it as `before`."""
    sys.dont_write_bytecode = True  # a compiled file that is cut short would break later starts
    resource.setrlimit(resource.RLIMIT_FSIZE, (at, at))


def _run(command, environ, streams, starter, before):
    os.setsid()
    os.chdir(ROOT)
    for number, (name, path) in enumerate(zip(("stdin", "stdout", "stderr"), streams, strict=True)):
        if path is None:
            os.close(number)
            setattr(sys, name, None)  # as Python begins then
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
            os.dup2(os.open(path, flags, 0o600), number)
    if sys.stdin:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing has put another file in its place
    starter.send(None)
    starter.close()
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = command
    if before:
        before()
    sys.modules.pop("app", None)  # it reads the settings
    if command[0].endswith("flask"):
        importlib.metadata.entry_points = lambda group: ()  # to look for other packages' commands takes 10 ms
        from flask.cli import main
    else:
        from gunicorn.app.wsgiapp import run as main
    sys.exit(main())


PROGRAM = """#!/bin/sh
cd DIRECTORY
env -0 >environ && printf '%s\\0' "$@" >called && mv called arguments
read -r status <status
cat stdout && cat stderr >&2
exit "$status"
"""


class ForkedProgram:
    """A program in the place of `./pocketbell`, which lets a fork of ours do its work. For one call at a time."""

    def __init__(self, parent):
        self.directory = parent / "program"
        self.directory.mkdir()
        os.mkfifo(self.directory / "status")
        self.path = self.directory / "pocketbell"
        self.path.write_text(PROGRAM.replace("DIRECTORY", str(self.directory)))
        self.path.chmod(0o755)

    def run_line(self, line):
        """Run a line of a shell script, which may call the program and must succeed."""
        shell = subprocess.Popen(["/bin/sh", "-euc", line], start_new_session=True)
        try:
            wait_until(lambda: self._serves() or shell.poll() is not None)
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
        assert shell.wait() == 0, line

    def _serves(self):
        """Do what the program was called for, if it was."""
        if (self.directory / "arguments").exists():
            arguments, environ = (self._read(name) for name in ("arguments", "environ"))
            for name in ("arguments", "stdout", "stderr"):
                (self.directory / name).unlink(missing_ok=True)
            variables = dict(one.split("=", 1) for one in environ)
            streams = self.directory / "stdout", self.directory / "stderr"
            status = Fork([BIN / "flask", *arguments], variables, *streams).wait(PATIENCE_S)
            (self.directory / "status").write_text(f"{status}\n")

    def _read(self, name):
        """What stands in a file before each NUL."""
        return (self.directory / name).read_text().split("\0")[:-1]
