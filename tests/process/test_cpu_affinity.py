"""Services keep to one core: each to its own, as long as there are enough."""

import os
import subprocess
import sys
import threading
import uuid
from contextlib import ExitStack

import pytest

from core import accounts
from process import cpu_affinity
from tests.support.server import ROOT

CLAIM = """
import os, sys
from process import cpu_affinity
cpu_affinity.NAME = sys.argv[1]
cpu_affinity.keep_to_one()
print(*os.sched_getaffinity(0), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start():
    """Starts a process that keeps to one core, and returns both. These processes see only each other."""
    name = f"pocketbell-test-{uuid.uuid4()}"
    with ExitStack() as running:

        def start_one():
            process = running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", CLAIM, name],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            running.callback(process.kill)
            return process, int(process.stdout.readline())

        yield start_one


linux = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux says where a thread runs")


@linux
def test_services_share_the_cores_evenly_the_first_takes_the_last_and_that_of_one_that_is_killed_is_free(start):
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    started = [start() for _ in range(2 * len(allowed))]
    assert [core for _, core in started] == allowed * 2
    killed, core = started[-1]
    killed.kill()
    killed.wait()
    assert start()[1] == core


@linux
def test_a_password_is_checked_on_any_core_and_all_else_is_done_on_one(monkeypatch):
    for name in ("_allowed", "_claim"):
        monkeypatch.setattr(cpu_affinity, name, getattr(cpu_affinity, name))
    seen = []

    def work():
        seen.append(os.sched_getaffinity(0))
        cpu_affinity.keep_to_one()
        seen.append(os.sched_getaffinity(0))
        with pytest.raises(ValueError, match="wrong"), accounts.hashing(accounts.WITH_LINK, ""):
            seen.append(os.sched_getaffinity(0))
            raise ValueError("wrong")
        seen.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=work)  # a thread's cores are its own
    thread.start()
    thread.join()
    allowed, one = seen[0], seen[1]
    assert seen == [allowed, one, allowed, one] and len(one) == 1 and one <= allowed


def test_without_cpu_affinity_support_the_service_works(monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refused, raising=False)
    cpu_affinity.keep_to_one()
    with accounts.hashing(accounts.WITH_LINK, ""), cpu_affinity.any_of_them():
        assert not cpu_affinity._allowed
