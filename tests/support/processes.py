"""What the kernel says of a process: its children, its CPU time, its memory."""

import os
import re
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def children(pid):
    """The process ids of a process's children."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_s(pid):
    """The CPU time of a process with all its threads, user and system, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def memory_mb(pid, name="VmRSS"):
    """The resident memory of a process; `VmHWM` is its peak."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0
