"""`make bench`: the servers to compare with; for `ONLY=peers`, what is read of strace and which rows count."""

import sys

import pytest

from bench import peers
from bench.client import Load
from bench.peers import GOTIFY, NTFY, NTFY_TUNED, OURS
from tests.support.server import Server, serving

STRACE = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 76.32    0.002011         402       105           fdatasync
 23.68    0.000624         208         3         1 fsync
------ ----------- ----------- --------- --------- ----------------
100.00    0.002635         329       108         1 total
"""


def slices(*pairs):
    """Slices with these messages per second, and µs of CPU each."""
    return [Load(per_s, cpu_us, 1.0, 2.0, 0.0) for per_s, cpu_us in pairs]


def test_without_the_programs_it_says_which_variable_is_not_set(tmp_path, monkeypatch):
    for name in ("NTFY", "GOTIFY"):
        monkeypatch.delenv(name, raising=False)
    seen = [(row.seen, row.ok) for row in peers.rows(tmp_path)]
    assert seen == [("not tried: NTFY is not set", None), ("not tried: GOTIFY is not set", None)]


def test_the_syncs_of_a_summary_are_counted():
    assert peers.counted_syncs(STRACE) == 108
    assert peers.counted_syncs("") == 0


def test_rates_and_cpu_are_compared_by_round_with_durable_servers_only():
    seen = {
        OURS: slices((300, 60), (100, 60), (900, 60)),
        NTFY: slices((100, 100), (100, 100), (300, 100)),
        NTFY_TUNED: slices((9_000, 1), (9_000, 1), (9_000, 1)),
        GOTIFY: slices((300, 50), (100, 50), (900, 50)),
    }
    judged = [(row.what, row.seen, row.ok) for row in peers.compared(32, seen)]
    assert judged == [
        ("sends/s / ntfy's, 32 clients", "3", True),
        ("CPU of a send / ntfy's, 32 clients", "0.6", True),
        ("sends/s / Gotify's, 32 clients", "1", False),
        ("CPU of a send / Gotify's, 32 clients", "1.2", False),
    ]
    assert [(row.what, row.ok) for row in peers.compared(1, seen)] == [
        ("sends/s / ntfy's, 1 client", True),
        ("sends/s / Gotify's, 1 client", False),
    ]
    assert list(peers.compared(8, seen)) == []


@pytest.mark.parametrize(
    "name, syncs, ends",
    [
        (NTFY, 3.0, "20 MB; 3.00 syncs a message; 5.0% refused"),
        (NTFY_TUNED, None, "20 MB; syncs not counted; 5.0% refused; answers before the write"),
    ],
)
def test_a_servers_figures_are_medians_and_mark_early_answers(name, syncs, ends):
    seen = [Load(per_s, 200.0, 1.0, 9.5, 0.05) for per_s in (900, 1_100, 1_000)]
    row = peers.figures(name, 8, seen, syncs, 20.1)
    assert (row.what, row.ok) == (f"{name}, 8 clients", None)
    assert row.seen == f"1,000 sends/s; 200 µs CPU each; p50 1.0 ms, p99 9.5; {ends}"


def test_the_bare_server_ends_without_a_fault(tmp_path):
    hello = Server(tmp_path / "data", under=(sys.executable, "-m", "bench.hello")).wait_until_ready()
    assert hello.terminate() == 0 and "Traceback" not in hello.log


@pytest.mark.parametrize("variant", ["unstored", "one-commit"])
def test_the_service_answers_a_send_with_each_other_way_to_store_it(tmp_path, variant):
    under = (sys.executable, "-m", "bench.variant", variant)
    with serving(tmp_path / "data", under=under) as server:
        key = server.wait_until_ready().owner_key()
        assert server.send(key, "a", "b").status == 200
        assert len(server.listed_ids(key)) == (variant == "one-commit")
