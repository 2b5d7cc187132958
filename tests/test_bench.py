"""`make bench`: the servers to compare with."""

import runpy
import sys

import pytest

from bench import peers
from core import delivery
from tests.support.forks import Fork
from tests.support.rows import each
from tests.support.server import Server


def test_without_the_programs_it_says_which_variable_is_not_set(tmp_path, monkeypatch):
    for name in ("NTFY", "GOTIFY"):
        monkeypatch.delenv(name, raising=False)
    seen = [(row.seen, row.ok) for row in peers.rows(tmp_path)]
    assert seen == [("not tried: NTFY is not set", None), ("not tried: GOTIFY is not set", None)]


def test_the_bare_server_ends_without_a_fault(tmp_path, monkeypatch):
    executed = []
    monkeypatch.setattr("os.execv", lambda program, command: executed.extend(command))
    runpy.run_module("bench.hello", run_name="__main__")
    monkeypatch.setattr(Server, "start", lambda _, command, *more, before: Fork(executed, *more))
    hello = Server(tmp_path / "data").wait_until_ready()
    assert hello.terminate() == 0 and "Traceback" not in hello.log


@each("variant", ["unstored", "one-commit"])
def test_the_service_answers_a_send_with_each_other_way_to_store_it(owner, monkeypatch, variant):
    monkeypatch.setattr(delivery, "deliver", None)
    monkeypatch.setattr("gunicorn.app.wsgiapp.run", lambda: delivery.deliver.__name__)
    monkeypatch.setattr(sys, "argv", ["bench/variant.py", variant, "gunicorn"])
    with pytest.raises(SystemExit, match=variant.replace("-", "_")):
        runpy.run_module("bench.variant", run_name="__main__")
    assert sys.argv == ["gunicorn"] and owner.send().status_code == 200
    assert len(owner.listed()) == (variant == "one-commit")
