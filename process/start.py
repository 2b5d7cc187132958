"""The system's side of a start: open files, a free address, glibc's memory. Must not know the settings."""

import contextlib
import ctypes
import errno
import resource
import socket
import threading

from process import clock

# How long to wait for an address in use: the worker of a killed service frees it when it notices, within a second.
MAX_IN_USE_S = 3.0
# Parameters of mallopt(3). Few arenas, as each keeps the memory that was freed in it. A fixed mmap threshold, which
# glibc would otherwise raise: the memory of large bodies goes back to the system.
M_ARENA_MAX = -8
M_MMAP_THRESHOLD = -3


def raise_open_files(wanted: int) -> int:
    """Raise the limit of open files to `wanted`, as far as the system allows, and return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def check_address(host: str, port: int) -> None:
    """Wait until the address is free, or end with one line that names the settings (gunicorn's own does not)."""
    until_s = clock.monotonic_s() + MAX_IN_USE_S
    while error := _refusal(host, port):
        is_in_use = error.args[0] == errno.EADDRINUSE
        if is_in_use and clock.monotonic_s() <= until_s:
            threading.Event().wait(0.1)
        elif is_in_use:
            raise SystemExit(f"Port {port} is already in use. Try another one: PORT={min(port + 1, 65_535)} make run")
        else:
            why = getattr(error, "strerror", None) or "there is no such name"
            raise SystemExit(f'Cannot listen at HOST "{host}" and PORT "{port}": {why}.')


def _refusal(host: str, port: int) -> OSError | UnicodeError | None:
    """The error with which the system refuses to listen at the address, or None."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET  # as gunicorn chooses it
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, UnicodeError) as error:
        return error
    return None


def bound_memory() -> None:
    """Let glibc, where there is one, give memory back to the system."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 131_072)
