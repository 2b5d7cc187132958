"""Uploads of large pictures at once: the memory, what others notice, and kill -9 in the middle."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from core.pictures import MAX_ACCOUNT_BYTES
from tests.support.picture_files import BOUNDARY, form_with, jpeg_of
from tests.support.processes import memory_mb
from tests.support.server import OWNER, Server
from torture.figure import Figure
from torture.load import MAX_P99_S, SEND, Flood, Others, counted, ms, raw_request
from torture.service import FILE, forget_peak, integrity, logged_faults, rows, seed, started, worker_pid
from wire.picture_formats import MAX_PICTURE_BYTES, cut_picture

UPLOADS, LASTS_S, KILLS = 32, 15.0, 10
MAX_MB = 400.0
LARGE = jpeg_of(MAX_PICTURE_BYTES)
KEPT = MAX_ACCOUNT_BYTES // len(LARGE)  # beyond it, the oldest go
NEWEST = (
    "SELECT n.picture, p.size, p.data FROM notification n LEFT JOIN picture p ON p.notification_seq = n.seq"
    f" WHERE n.title = 'MCP - Door' ORDER BY n.seq DESC LIMIT {KEPT}"
)


def upload(key: str) -> bytes:
    """A request that sends a notification with a picture of 2 MB."""
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", "Authorization": f"Bearer {key}"}
    return raw_request("POST", SEND, {**headers, "Connection": "close"}, form_with(LARGE))


def figures(scratch: Path) -> Iterator[Figure]:
    """32 uploads at once; then a service that is killed again and again while pictures come."""
    uploading, other = seed(scratch / "data", [OWNER, "other@example.org"], keys=UPLOADS)
    with started(scratch / "data") as server:
        yield from at_once(server, uploading.keys, other.keys)
        yield logged_faults(server)
    yield killed(scratch / "data", uploading.keys)


def at_once(server: Server, keys: list[str], others_keys: list[str]) -> Iterator[Figure]:
    """The memory, and what others notice."""
    pid = worker_pid(server)
    forget_peak(pid)
    with Flood(server.port, [[upload(key)] for key in keys], 65_536) as flood, Others(server, *others_keys) as others:
        time.sleep(LASTS_S)
    what, peak_mb = f"{UPLOADS} uploads of 2 MB at once, again and again", memory_mb(pid, "VmHWM")
    told = f"{peak_mb:.0f} MB; {counted(flood.statuses.elements())}"
    most_stored = flood.statuses[200] > flood.statuses.total() / 2
    yield Figure(what, f"peak below {MAX_MB:.0f} MB, most stored", told, peak_mb < MAX_MB and most_stored)
    yield Figure(what, f"others' sends stored, below {ms(MAX_P99_S)} at p99", others.told, others.are_served)


def killed(data_dir: Path, keys: list[str]) -> Figure:
    """Each notification that says it came with a picture has it, whole."""
    for number in range(KILLS):
        with started(data_dir) as server, Flood(server.port, [[upload(key)] for key in keys[:4]], 65_536):
            time.sleep(0.2 + 0.1 * number)
            server.kill()
    file = data_dir / FILE
    newest = rows(file, NEWEST)
    broken = [row for row in newest if row[0] is None or not is_whole(*row)]
    words = f"of the newest {len(newest)} notifications, {len(broken)} without their picture; {integrity(file)}"
    is_good = not broken and len(newest) == KEPT
    return Figure(f"kill -9 {KILLS} times while pictures come", "none is lost or half", words, is_good)


def is_whole(described: str, size: int, data: bytes) -> bool:
    """Whether the picture is the one that was sent."""
    return json.loads(described)[1] == size == len(data) and data == cut_picture(LARGE).data == LARGE
