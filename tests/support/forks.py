"""Processes forked from one that has imported the service: the imports are four fifths of what a start costs.

Such a process does everything else that a command of ours does. What imports change, and what happens before them, is
tested with commands; so do torture and bench everything.
"""

import importlib.metadata
import multiprocessing
import os
import signal
import subprocess
import sys
import time

from process import clock
from tests.support.server import ROOT

context = multiprocessing.get_context("forkserver")
# What a start imports; the forks have it already.
OURS = ["app", "process.cpu_affinity", "process.gunicorn_worker", "process.service_lock"]
OTHERS = ["dotenv", "flask.cli", "gunicorn.app.wsgiapp", "gunicorn.arbiter"]
context.set_forkserver_preload([*OURS, *OTHERS, __name__])


class Fork:
    """A process that does what our `gunicorn` or `flask` does with these arguments, used like `subprocess.Popen`.

    Not from several threads: one that looks whether it lives could take the status that another one waits for.
    """

    def __init__(self, command, environ, stdout, stderr, stdin=os.devnull, before=None):
        """The streams are the paths of files; it appends to the first two. `before` runs first, and is pickled."""
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
    """Let a fork's monotonic clock run a hundred times as fast: to be called before all else."""
    clock.monotonic_s = lambda: 100 * time.monotonic()


def _run(command, environ, streams, starter, before):
    os.setsid()
    os.chdir(ROOT)
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY, 0o600), number)
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
