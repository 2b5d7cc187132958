"""`make bench`: the servers to compare with."""

import sys

import pytest

from bench import peers
from tests.support.server import Server, serving


def test_without_the_programs_it_says_which_variable_is_not_set(tmp_path, monkeypatch):
    for name in ("NTFY", "GOTIFY"):
        monkeypatch.delenv(name, raising=False)
    seen = [(row.seen, row.ok) for row in peers.rows(tmp_path)]
    assert seen == [("not tried: NTFY is not set", None), ("not tried: GOTIFY is not set", None)]


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
