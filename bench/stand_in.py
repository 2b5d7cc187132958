"""Runs a stand-in for a push service in a process of its own, so that its CPU is not counted as the service's."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import measure


@contextmanager
def running(module: str, *arguments: object) -> Iterator[dict[str, Any]]:
    """Run `python -m MODULE ARGUMENT …` until the block ends; yields the JSON that it prints first, and its pid."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=measure.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdin and process.stdout
        yield {**json.loads(process.stdout.readline()), "pid": process.pid}
        process.stdin.close()
        process.wait(10)
    finally:
        if process.poll() is None:
            process.kill()
