"""The program as pipx and `uv tool` install it: every file that it needs, and the data in the user's own folder."""

import http.client
import os
import shutil
import subprocess
import sys
import tomllib

import pytest

import installed
from cli import pocketbell
from config import VERSION
from tests.support.server import NO_FILE, PATIENCE_S, ROOT, free_port, wait_until
from tests.support.tables import mode

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
NOT_INSTALLED = {"bench", "deploy", "tests", "tools", "torture"}  # of the folders
PAGES = ("/healthz", "/app/login", "/docs/readme", "/docs/pictures/home.png", "/docs", "/openapi.json")


def test_every_folder_of_the_program_is_installed():
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.glob("*.*"))}
    hidden = {name for name in folders if name.startswith(".")} | {"data", "dist", "__pycache__"}
    assert folders - hidden - NOT_INSTALLED == {one[1:] for one in WHEEL["include"] if "." not in one}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Call the program with these words, where its files were copied, with a home of its own."""
    place, home = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("home")
    (inside,) = WHEEL["sources"].values()
    for pattern in WHEEL["include"]:
        for path in ROOT.glob(pattern[1:]):
            copied = place / inside / path.name
            copied.parent.mkdir(exist_ok=True)
            shutil.copytree(path, copied) if path.is_dir() else shutil.copy2(path, copied)
    module, function = PYPROJECT["project"]["scripts"]["pocketbell"].split(":")
    script = place / "pocketbell"
    script.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n")
    script.chmod(0o755)
    environ = {"PATH": NO_FILE["PATH"], "HOME": str(home), "PYTHONPATH": str(place)}

    def start(*words, **more):
        return subprocess.Popen(
            [script, *words], cwd="/", env={**environ, **more}, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    start.data = home / ".local/share/pocketbell"
    return start


def answer(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def test_the_installed_program_keeps_its_data_and_settings_at_home(program):
    port = free_port()
    program.data.mkdir(parents=True, mode=0o700)
    (program.data / ".env").write_text(f"PORT={port}\n")
    service = program("serve")
    try:
        wait_until(lambda: answer(port, "/healthz") or service.poll())
        assert {path: answer(port, path) for path in PAGES} == dict.fromkeys(PAGES, 200)
    finally:
        service.terminate()
        stdout, _ = service.communicate(timeout=PATIENCE_S)
    assert service.returncode == 0 and f"http://127.0.0.1:{port}/app/setup/" in stdout
    assert {"pocketbell.db", "secret_key"} <= {path.name for path in (program.data / "data").iterdir()}


def test_the_folder_for_the_data_is_the_users_own_and_without_a_home_its_setting_is_named(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr("cli.__main__.main", lambda *places: called.append(places))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    before = os.umask(0o022)  # the service in this process has another
    installed.main()
    os.umask(before)
    assert called == [(ROOT, tmp_path / ".local/share/pocketbell")] and mode(called[0][1]) == 0o700
    monkeypatch.setenv("HOME", "/dev/null")
    with pytest.raises(SystemExit, match=r"There is no folder for Pocketbell's data: .* Set XDG_DATA_HOME\.$"):
        installed.main()


# --- the manual page ----------------------------------------------------------------------------------------


def leaves(group, *path):
    for name, command in group.commands.items():
        yield from leaves(command, *path, name) if hasattr(command, "commands") else [((*path, name), command)]


def test_the_manual_page_has_every_command_with_its_options_and_their_help(flask):
    page = flask("man").stdout.replace("\\-", "-")
    assert page.startswith(".TH ") and f'"Pocketbell {VERSION}"' in page
    sections = {" ".join(part.split("\n")[0].split(" ")): part for part in page.split("\n.SS ")[1:]}
    for path, command in leaves(pocketbell):
        (section,) = (text for head, text in sections.items() if f" {' '.join(path)} [OPTIONS]" in head)
        for option in command.params:
            assert getattr(option, "help", None) is None or option.help.split("\n")[0][:20] in section, option.name
            assert not option.opts[0].startswith("-") or option.opts[0] in section
        assert command.help.split("\n")[0] in section


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff")
def test_groff_finds_nothing_wrong_with_the_manual_page(flask):
    page = flask("man").stdout
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
