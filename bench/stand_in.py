"""Runs the stand-in for push services in a process of its own, so that its CPU is not counted as the service's."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import measure


@contextmanager
def running(scratch: Path, delay_ms: int) -> Iterator[dict[str, Any]]:
    """Run `provider.py` until the block ends; yields its `url`, `ca_file` and `pid`."""
    command = [sys.executable, "-m", "bench.provider", str(scratch), str(delay_ms)]
    with subprocess.Popen(command, cwd=measure.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        yield {**json.loads(process.stdout.readline()), "pid": process.pid}
        process.stdin.close()
