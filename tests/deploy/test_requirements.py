"""requirements.txt: what requirements.in asks for and all that this needs, exactly, each with its hashes."""

import re

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


def test_make_installs_nothing_without_a_hash():
    (line,) = re.findall(r"INSTALL\) [^\n]*-r requirements\.txt", (ROOT / "Makefile").read_text())
    assert "--require-hashes" in line
