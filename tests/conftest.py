"""What a run does around its tests. The fixtures that all rooms share are in fixtures.py."""

import functools
import gc
import itertools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests.support import postgresql

MEMORY, MIN_ROOM = Path("/dev/shm"), 4e9  # a run takes 1 GB


def keep_in_memory():
    """Let the files of the tests be in memory, if there is room for them, so that no write waits for a disk."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MIN_ROOM
    if "TMPDIR" not in os.environ and has_room and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:  # tests run programs
        os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None


keep_in_memory()
gc.disable()  # until all tests are collected: none of them is garbage, and it would look through them again and again
postgresql.begin_run()


@pytest.hookimpl(trylast=True)  # after xdist
def pytest_configure(config):
    """Have the fixtures where tests run: the process that hands them out to workers need not import the service.

    The workers start when it is ready.
    """
    if not config.pluginmanager.has_plugin("dsession"):
        config.pluginmanager.import_plugin("tests.fixtures")


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """Let each worker begin at another place, so that one reads what another one has compiled.

    In a fresh clone to compile all tests takes a worker 4 s of the processor.
    """
    outcome = yield
    if isinstance(collector, pytest.Directory) and (found := outcome.get_result().result):
        place = len(found) * worker_number(collector.config) // number_of_workers(collector.config)
        outcome.get_result().result = [*found[place:], *found[:place]]


def pytest_runtest_protocol(item, nextitem):
    """Let a worker report of a test that passes its call alone, a fifth of the messages that others send."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            if report.passed:
                report.keywords = {}  # the larger part of the message
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def number_of_workers(config):
    return getattr(config, "workerinput", {}).get("workercount", 1)


def worker_number(config):
    """0 for the first worker, and where there are none."""
    return int(getattr(config, "workerinput", {}).get("workerid", "gw0").removeprefix("gw"))


def let_no_sources_be_read():
    """Let Hypothesis try no constants of ours: to find them in our sources takes each worker half a second.

    Where a word of ours matters, the test's own strategy has it. To be called before Hypothesis' hook for collected
    tests, which reads the sources.
    """
    if drawing := sys.modules.get("hypothesis.internal.conjecture.providers"):
        drawing._get_local_constants = functools.cache(drawing.Constants)


def pytest_collection_modifyitems(config, items):
    """Let every worker begin with its share of the browser's tests, and the first one with those of processes.

    They take longest, and wait meanwhile. Of this list each worker gets a piece of equal size; one that has done it
    takes from the end of another's.
    """
    let_no_sources_be_read()
    items.sort(key=lambda item: item.path)  # as every worker must have them
    rooms = {"process": [], "browser": []}
    others = []
    for item in items:
        rooms.get(item.path.parent.name, others).append(item)
    workers = number_of_workers(config)
    items[:], rest = [], iter(others)
    total = sum(map(len, (*rooms.values(), others)))
    for worker in range(workers):
        first = rooms["browser"][worker::workers] + (rooms["process"] if worker == 0 else [])
        size = (total - len(items)) // (workers - worker)
        items += [*first, *itertools.islice(rest, max(0, size - len(first)))]
    items += rest


def pytest_collection_finish():
    """Spare the garbage collector the thousands of collected tests from now on, and let it run seldom.

    If it ran eight times as often, it would take a fifteenth of the CPU time.
    """
    gc.freeze()
    gc.set_threshold(400_000, 20, 20)
    gc.enable()
