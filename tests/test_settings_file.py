"""The settings file: which one is read, what a line may be, and which sentence names a wrong one."""

import os
import subprocess
import sys

import pytest

import config
from core import doctor
from tests.support.rows import each
from tests.support.server import BIN, ROOT


@pytest.fixture
def file(tmp_path):
    return tmp_path / "bell.env"


def load(file, text, **environ):
    """The settings with a settings file that says this."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return config.load({"POCKETBELL_ENV": str(file), **environ})


def refusal(file, text, **environ):
    """The lines with which a settings file is refused, without its path."""
    with pytest.raises(config.SettingError) as refused:
        load(file, text, **environ)
    return refused.value.code.replace(f"{file}, ", "").splitlines()


@each(
    "line, field, value",
    [
        ("PORT=8100", "port", 8100),
        ("  export PORT=8100  # as nginx has it", "port", 8100),
        ("PORT='8100'", "port", 8100),
        ('PORT="8100" # quoted', "port", 8100),
        ("PORT=8100\r", "port", 8100),
        ("\ufeffPORT=8100", "port", 8100),
        ("PORT=", "port", 8000),
        ("PORT=8100\nPORT=8200", "port", 8200),
        ("# PORT=8100\n\n", "port", 8000),
        ("SECRET_KEY=a$b#c=d", "secret_key", "a$b#c=d"),
        ("SECRET_KEY='a \"b\" # c'", "secret_key", 'a "b" # c'),
        ("SECRET_KEY=two words", "secret_key", "two words"),
        ("SECRET_KEY=two'words'", "secret_key", "two'words'"),
        ("PGHOST=db\nTZ=UTC\nHOSTNAME=bell\nCOMPOSE_FILE=x", "host", "127.0.0.1"),
    ],
)
def test_a_line_of_the_file_sets_a_setting(file, line, field, value):
    assert getattr(load(file, line), field) == value


def test_the_environment_wins_over_the_file_unless_it_is_empty(file):
    settings = load(file, "PORT=8100\nHOST=::1", PORT="8200", HOST="")
    assert (settings.port, settings.host) == (8200, "::1")


def test_a_wrong_value_in_the_file_is_no_fault_if_the_environment_sets_another(file):
    assert load(file, "PORT=none", PORT="8200").port == 8200


NOT_A_LINE = "this is not NAME=value, with the whole value in quotes or none of it."


@each(
    "line, sentence",
    [
        ("SECRET_KEY hush", NOT_A_LINE),
        ("SECRET_KEY = hush", NOT_A_LINE),
        ("SECRET_KEY='hush", NOT_A_LINE),
        ("SECRET_KEY='hush' hush", NOT_A_LINE),
        ('SECRET_KEY="hu\\sh"', NOT_A_LINE),
        ("1KEY=hush", NOT_A_LINE),
        ("BASE_URI=hush", "BASE_URI is not a setting: did you mean BASE_URL?"),
        ("port=hush", "port is not a setting: did you mean PORT?"),
        ("HOSTS=hush", "HOSTS is not a setting: did you mean HOST?"),
        ("REDIS_PASSWORD=hush", "REDIS_PASSWORD is not a setting: see README.md, Settings."),
        ("POCKETBELL_ENV=hush", "POCKETBELL_ENV is not a setting: see README.md, Settings."),
        ("METRICS_TOKEN=hush", "METRICS_TOKEN is not understood: it takes at least 16 visible ASCII characters."),
    ],
)
def test_a_wrong_line_is_named_without_its_value(file, line, sentence):
    assert refusal(file, f"# mine\n{line}\n") == [f"line 2: {sentence}"]


def test_every_wrong_line_is_named_at_once(file):
    assert len(refusal(file, "PROT\nBASE_URI=x\n")) == 2
    said = refusal(file, "PORT=none\nHOST=ok\nTHREADS=none", MAX_BODY_BYTES="1")
    assert [line.partition(" is ")[0] for line in said] == ["line 1: PORT", "line 3: THREADS", "MAX_BODY_BYTES"]


@each("text, said", [(None, "cannot be read: No such file or directory."), (b"\xff", "is not UTF-8.")])
def test_a_named_file_that_cannot_be_read_is_an_error(file, text, said):
    if text is None:
        with pytest.raises(config.SettingError, match=said):
            config.load({"POCKETBELL_ENV": str(file)})
    else:
        assert refusal(file, text) == [f"The settings file {file} {said}"]


def test_the_file_beside_the_program_is_read_unless_another_is_named_and_fine_settings_pass_the_check(tmp_path):
    for name in ["process", "providers", "settings", "store", "wire", "models.py", "migrations", "schema.sql"]:
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "config.py").write_bytes((ROOT / "config.py").read_bytes())
    (tmp_path / ".env").write_text("PORT=none\n")
    command = [BIN / "python", "-B", tmp_path / "config.py"]
    refused = subprocess.run(command, env={}, cwd="/", capture_output=True, text=True, timeout=30)
    sentence = f'{tmp_path}/.env, line 1: PORT is "none": it takes a port, a whole number from 1 to 65535.\n'
    assert (refused.returncode, refused.stderr) == (1, sentence)
    fine = {"POCKETBELL_ENV": os.devnull, "THREADS": "8"}
    passed = subprocess.run(command, env=fine, cwd="/", capture_output=True, timeout=30)
    assert (passed.returncode, passed.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
@each("mode, level", [(0o600, "ok"), (0o640, "ok"), (0o644, "look")])
def test_doctor_names_a_settings_file_that_everybody_can_read(file, mode, level):
    settings = load(file, "")
    file.chmod(mode)
    assert doctor.checks()["settings"](settings)[0] == level
