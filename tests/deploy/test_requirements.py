"""requirements.txt: what requirements.in asks for and all that this needs, exactly, each with its hashes."""

import re
import subprocess

import pytest

from tests.support.rows import each
from tests.support.server import ROOT

NAME = r"[A-Za-z0-9._-]+"
ASKED = re.findall(rf"^({NAME})==(\S+)$", (ROOT / "requirements.in").read_text(), re.M)
LOCKED = re.findall(
    rf"^({NAME})==(\S+)(?: ; [^\\\n]+)? \\\n((?:    --hash=\S+(?: \\)?\n)+)",
    (ROOT / "requirements.txt").read_text(),
    re.M,
)


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_line_that_is_no_comment_is_a_package_with_its_hashes():
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == sum(1 + hashes.count("--hash") for *_, hashes in LOCKED)


def test_every_requirement_is_locked_at_its_version():
    locked = {normal(name): version for name, version, _ in LOCKED}
    assert ASKED and {normal(name): version for name, version in ASKED}.items() <= locked.items()


@each("name, version, hashes", LOCKED)
def test_a_package_has_sha_256_hashes_alone(name, version, hashes):
    assert re.fullmatch(r"(?:--hash=sha256:[0-9a-f]{64}(?: \\ )?)+", re.sub(r"\s+", " ", hashes.strip()))


@each("name", ["pycurl", "cryptography", "aiohttp", "cffi", "markupsafe"])
def test_a_package_with_binaries_has_the_hashes_of_other_machines_too(name):
    """Linux and macOS, Intel and ARM, and each Python from 3.11 on: more than this machine alone would need."""
    (hashes,) = (hashes for one, _, hashes in LOCKED if normal(one) == name)
    assert hashes.count("--hash") > 15


def test_the_container_is_built_on_an_image_with_a_digest():
    (image,) = re.findall(r"^FROM (.*)$", (ROOT / "deploy/Dockerfile").read_text(), re.M)
    assert re.fullmatch(r"python:3\.1[1-9]\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", image)


PIP = """#!/bin/sh
[ "$3" = freeze ] && printf 'Flask==3.1.3\\nhttp_ece==1.2.1\\npy.vapid==1.9\\nPyYAML==6.0.3\\n'
[ "$1" != -m ] || echo "$(umask) $*" >> pip.log
[ "$1" != -c ] || echo .venv/lib
"""  # in the place of Python: it tells what is installed and where, and notes what it is to do


@pytest.fixture
def environment(tmp_path):
    """A virtual environment with that Python."""
    for folder in ("bin", "lib"):
        (tmp_path / ".venv" / folder).mkdir(parents=True)
    (tmp_path / ".venv/bin/python").write_text(PIP)
    (tmp_path / ".venv/bin/python").chmod(0o755)
    return tmp_path / ".venv"


@pytest.mark.parametrize("change", ["none", "upgrade", "move"])
def test_make_installs_anew_after_an_upgrade_of_python_or_a_move_of_the_directory(tmp_path, environment, change):
    (tmp_path / "requirements.txt").touch()
    (environment / "installed").touch()
    (environment / "bin/gunicorn").write_text("#!/nowhere/python" if change == "move" else "#!/bin/sh")
    if change == "upgrade":
        (environment / "lib").rmdir()
    command = ["make", "--dry-run", "-f", ROOT / "Makefile", ".venv/installed"]
    planned = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert [" -m venv .venv\n" in planned, " -m pip install " in planned] == [change != "none"] * 2


@pytest.mark.parametrize("is_for_developers", [False, True])
def test_make_removes_the_packages_of_an_earlier_version_and_lets_the_services_user_read_the_others(
    tmp_path, environment, is_for_developers
):
    (tmp_path / "requirements.txt").write_text("flask==3.1.4 \\\n    --hash=sha256:00\npyyaml==6.0.3 \\\n")
    if is_for_developers:  # what they need besides is in no list
        (environment / "installed-dev").touch()
    subprocess.run(
        ["sh", "-c", f"umask 077 && make --silent -f {ROOT}/Makefile .venv/installed"], cwd=tmp_path, check=True
    )
    install, *others = (tmp_path / "pip.log").read_text().splitlines()
    assert install.startswith("0022 -m pip install ")
    removed = [line.partition("uninstall --quiet --yes ")[2] for line in others if "uninstall" in line]
    assert removed == ([] if is_for_developers else ["http-ece py-vapid"])


def test_make_installs_nothing_without_a_hash():
    (line,) = re.findall(r"INSTALL\) [^\n]*-r requirements\.txt", (ROOT / "Makefile").read_text())
    assert "--require-hashes" in line
