"""`./pocketbell`: the commands as a program of its own, from any directory."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from flask.cli import ScriptInfo

import cli
from cli.__main__ import _installed
from config import VERSION
from core import accounts
from tests.support.accounts import OWNER
from tests.support.commands import printed, said
from tests.support.rows import each
from tests.support.server import NO_FILE, PATIENCE_S, ROOT

PYTHON = "#!/bin/sh\necho python\nprintf '%s\\n' \"$@\"\n"  # in the place of Python: it prints its arguments
MAKEFILE = """.venv/installed:
	@echo making; cat; mkdir -p .venv/bin; printf '#!/bin/sh\\ncat\\n' >.venv/bin/python; chmod +x .venv/bin/python
"""


@pytest.fixture
def project(tmp_path):
    """A directory with the script, and a stand-in for .venv."""
    folder = tmp_path / "a project"
    (folder / ".venv/bin").mkdir(parents=True)
    shutil.copy(ROOT / "pocketbell", folder)
    (folder / ".venv/bin/python").write_text(PYTHON)
    (folder / ".venv/bin/python").chmod(0o755)
    return folder


def called(program, *args, cwd="/", stdin="", **environ):
    """Run a program with only PATH from this process's environment."""
    env = {**NO_FILE, **environ}
    return subprocess.run(
        [program, *args], cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S
    )


@pytest.fixture
def owned_here(owned, service):
    """The commands of `./pocketbell` beside a service that has an account, in this process."""

    def run(*args):
        return service.app.test_cli_runner().invoke(cli.pocketbell, args=args, prog_name="pocketbell")

    return run


# --- the script ---------------------------------------------------------------------------------------------


def test_the_script_passes_every_argument_on_as_it_is(project):
    done = called(project / "pocketbell", "send", "a b", "", "$HOME", "it's\nhere")
    assert done.stdout.split("\n", 2) == [
        "python",
        str(project / "cli/__main__.py"),
        "send\na b\n\n$HOME\nit's\nhere\n",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_the_script_finds_the_project_from_anywhere_and_through_symlinks(project, tmp_path):
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (elsewhere / "absolute").symlink_to(project / "pocketbell")
    (elsewhere / "relative").symlink_to("../a project/pocketbell")
    (elsewhere / "chain").symlink_to("relative")
    (tmp_path / "folder").symlink_to(project)
    expected = ["python", str(project / "cli/__main__.py")]
    calls = [
        (project / "pocketbell", "/"),
        ("./pocketbell", project),
        ("../a project/pocketbell", elsewhere),
        (elsewhere / "absolute", "/"),
        ("./relative", elsewhere),
        (elsewhere / "chain", "/"),
        (tmp_path / "folder/pocketbell", "/"),
    ]
    seen = [called(program, cwd=cwd, CDPATH="/:/tmp").stdout.splitlines() for program, cwd in calls]
    assert seen == [expected] * len(calls)


def test_the_script_is_found_by_its_name_where_path_has_a_link_to_it(project, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/pocketbell").symlink_to(project / "pocketbell")
    done = called("sh", "-c", "pocketbell", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.stdout.splitlines() == ["python", str(project / "cli/__main__.py")]


def test_the_script_installs_the_environment_and_passes_input_and_output_on(project):
    shutil.rmtree(project / ".venv")
    (project / "Makefile").write_text(MAKEFILE)
    done = called(project / "pocketbell", "account", "create", stdin="a password")
    assert (done.returncode, done.stdout) == (0, "a password")
    assert done.stderr.splitlines()[0].startswith(f"Installing the packages into {project}/.venv")
    assert "making" in done.stderr and "a password" not in done.stderr


def test_where_a_platform_has_installed_the_packages_the_script_uses_its_python(project, tmp_path):
    shutil.rmtree(project / ".venv")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").write_text(PYTHON.replace("echo python", '[ "$1" != -c ] || exit 0'))
    (tmp_path / "bin/python3").chmod(0o755)
    done = called(project / "pocketbell", "send", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert (done.stdout.splitlines(), done.stderr) == ([str(project / "cli/__main__.py"), "send"], "")


def test_the_script_explains_a_failed_installation(project):
    shutil.rmtree(project / ".venv")
    (project / "Makefile").write_text(".venv/installed:\n\t@false\n")
    done = called(project / "pocketbell", "account", "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == 'Pocketbell is not installed. Run "make run" first.'


# --- the program, in a process of its own -------------------------------------------------------------------


def test_relative_settings_start_at_the_project_and_a_named_file_where_it_is_called(service, tmp_path):
    service.account(OWNER)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    data_dir = os.path.relpath(service.data_dir, ROOT)
    done = called(ROOT / "pocketbell", "backup", "copy.db", cwd=elsewhere, DATA_DIR=data_dir)
    assert done.stdout.startswith(f"Wrote {elsewhere}/copy.db (") and done.stderr == ""
    assert [path.name for path in elsewhere.iterdir()] == ["copy.db"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_help_that_cannot_be_written_is_an_error_in_one_line_whatever_the_settings_are():
    command = f"{sys.executable} {ROOT}/cli/__main__.py --help >/dev/full"
    done = called("sh", "-c", command, THREADS="many", FLASK_APP="none")
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")


# --- the program, in this process ---------------------------------------------------------------------------


def without_application(*args):
    """What the program prints, which must not make the application: its settings may be wrong."""
    info = ScriptInfo(create_app=pytest.fail)
    result = CliRunner().invoke(cli.pocketbell, args, obj=info, prog_name="pocketbell")
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_the_version_and_a_help_about_pocketbell_alone_are_printed_without_settings_or_a_database():
    assert without_application("--version") == f"Pocketbell {VERSION}\n"
    shown = without_application("--help")
    assert shown.startswith("Usage: pocketbell [OPTIONS] COMMAND [ARGS]...")
    named = {line.split()[0] for line in shown.split("Commands:\n")[1].splitlines()}
    assert named == set(cli.pocketbell.commands) and "flask" not in shown.lower()


def test_a_missing_package_asks_to_run_make():
    with pytest.raises(SystemExit) as ended, _installed():
        raise ModuleNotFoundError(name="cronsim")
    assert ended.value.code == 'Error: The package cronsim is not in .venv. Run "make run" first.'


def test_the_script_has_all_of_flasks_commands(service, owned_here):
    assert cli.pocketbell.commands == service.app.cli.commands
    assert printed(owned_here("account", "list")).startswith(OWNER)


@each(
    "command",
    [("key", "list"), ("key", "list", "a", "b"), ("nonsense",), ("--nonsense",), ("account", "delete", OWNER)],
)
def test_wrong_usage_names_the_program(owned_here, command):
    result = owned_here(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: pocketbell ") and "flask" not in result.stderr


@each("quoted", ["\x1b[31m", "--\x1b[31m", "\x9b31m", "a\rb", "a\u202eb"])
def test_wrong_usage_quotes_no_control_character(owned_here, quoted):
    for command in (
        [quoted],
        ["key", quoted],
        ["key", "list", OWNER, quoted],
        ["account", "create", "--plan", quoted],
    ):
        stderr = owned_here(*command).stderr
        assert "Error: " in stderr and stderr.replace("\n", "").isprintable()


def test_where_there_is_no_data_the_command_that_makes_some_is_named(owned_here, service):
    service.settings.database.unlink()
    assert said(owned_here("account", "list")).endswith("or start there with: ./pocketbell account create.")


@each("when", [KeyboardInterrupt(), OSError(5, "Input/output error"), OSError(13, "Permission denied", "/a\nb")])
def test_a_command_that_is_interrupted_or_fails_leaves_no_traceback(owned_here, monkeypatch, when):
    def fail(email):
        raise when

    monkeypatch.setattr(accounts, "find_account", fail)
    result = owned_here("key", "list", OWNER)
    expected = {
        "KeyboardInterrupt": (128 + signal.SIGINT, "\n"),
        "OSError": (1, "Error: Input/output error\n"),
        "PermissionError": (1, "Error: Permission denied: /a b\n"),
    }
    assert (result.exit_code, result.stderr) == expected[type(when).__name__]
