"""The container: deploy/Dockerfile is really built and run, where buildah, podman and a runtime are.

Where no registry is, the base is Debian's own root file system, with its Python. Needs root, and Debian's and
PyPI's servers.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from tests.support.proxies import PATH, program
from tests.support.server import PATIENCE_S, ROOT, free_port, wait_until
from torture.figure import Figure

PROGRAMS = ("buildah", "podman", "runc")
# Of this machine, which may reach PyPI through a proxy of its own.
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
BASE = f"""FROM scratch
ADD base.tar /
COPY ca-certificates.crt {CERTIFICATES}
ENV PIP_CERT={CERTIFICATES} PIP_DEFAULT_TIMEOUT=180
"""
IMAGE, NAME, MAX_STOP_S = "localhost/pocketbell", "pocketbell-torture", 2.0
LEFT_OUT = (".git", ".venv*", "data", "tests", "torture", "bench", "__pycache__", ".*_cache")


def figures(scratch: Path) -> Iterator[Figure]:
    """The build, then the life of a container."""
    missing = [one for one in PROGRAMS if not program(one)]
    if missing or os.geteuid():
        yield Figure("build and run deploy/Dockerfile", "works", f"not tried: {missing or 'not root'}", None)
        return
    with tempfile.TemporaryDirectory(prefix="pocketbell-images-") as place:
        images = Images(Path(place))
        context = scratch / "clone"
        shutil.copytree(ROOT, context, ignore=shutil.ignore_patterns(*LEFT_OUT))
        subprocess.run(["chmod", "-R", "go-rwx", context], check=True)  # a clone that was made under umask 077
        began = time.monotonic()
        base = images.build(context)
        took_s = time.monotonic() - began
        size = images.podman("images", "--format", "{{.Size}}", IMAGE).stdout.strip()
        told = f"{took_s:.0f} s, {size}, base {base}"
        yield Figure("build deploy/Dockerfile", "works", told, True)
        yield from _life(images)


class Images:
    """Images and containers in a folder of their own, so that nothing of this machine's is touched."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.store = ("--storage-driver", "overlay", "--root", str(place / "store"), "--runroot", str(place / "run"))
        (place / "containers.conf").write_text("[containers]\ndefault_ulimits = []\n")
        self.environ = {**os.environ, "PATH": PATH, "CONTAINERS_CONF": str(place / "containers.conf")}

    def run(self, *command: str, cwd: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program on this folder."""
        return subprocess.run(command, cwd=cwd, env=self.environ, input=stdin, capture_output=True, text=True)

    def buildah(self, *words: str, cwd: Path | None = None) -> None:
        """Build, or raise what it said last."""
        done = self.run("buildah", *self.store, *words, cwd=cwd)
        if done.returncode:
            raise RuntimeError(f"{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def podman(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run podman, whose runtime needs no systemd."""
        runtime = ("--cgroup-manager", "cgroupfs", "--runtime", program("runc"))
        return self.run("podman", *self.store, *runtime, *words, stdin=stdin)

    def build(self, context: Path) -> str:
        """Build the image, and return the base on which."""
        dockerfile = context / "deploy/Dockerfile"
        words = ["bud", "--isolation", "chroot", "--network", "host", "--format", "docker", "-t", IMAGE]
        words += ["--ignorefile", str(context / "deploy/Dockerfile.dockerignore"), "-f", str(dockerfile)]
        own = next(line.split()[1] for line in dockerfile.read_text().splitlines() if line.startswith("FROM "))
        if self.run("buildah", *self.store, "pull", own).returncode == 0:
            self.buildah(*words, str(context))
            return own
        self._make_base()
        self.buildah(*words, "--from", "localhost/base", str(context))
        return "of Debian's packages, since no registry answers"

    def _make_base(self) -> None:
        include = "--include=python3-venv,python-is-python3,ca-certificates"
        command = ["mmdebstrap", "--variant=minbase", include, "bookworm", "base.tar", "http://deb.debian.org/debian"]
        subprocess.run(command, cwd=self.place, env=self.environ, check=True, capture_output=True)
        shutil.copy(CERTIFICATES, self.place / "ca-certificates.crt")
        (self.place / "Dockerfile").write_text(BASE)
        self.buildah("bud", "--isolation", "chroot", "-t", "localhost/base", ".", cwd=self.place)

    @contextmanager
    def container(self, port: int) -> Iterator[None]:
        """Start one as deploy/compose.yaml does; it is removed at the end."""
        files = str(min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        words = ["--network=host", "--read-only", "--read-only-tmpfs=false", "--cap-drop=all"]
        words += ["--security-opt=no-new-privileges", f"--ulimit=nofile={files}:{files}", "--ulimit=nproc=1000:1000"]
        started = self.podman(
            "run", "-d", "--name", NAME, *words, "--no-healthcheck", "-v", "data:/data", "-e", f"PORT={port}", IMAGE
        )
        try:
            if started.returncode:
                raise RuntimeError(started.stderr)
            yield
        finally:
            self.podman("rm", "--force", "--time", "0", NAME)

    def inside(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in the container."""
        return self.podman("exec", "-i", NAME, *words, stdin=stdin)


def _answers(port: int, path: str) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _life(images: Images) -> Iterator[Figure]:
    port = free_port()
    with images.container(port):
        try:
            wait_until(lambda: _answers(port, "/healthz"))
        finally:
            said = images.podman("logs", NAME)
        is_link = "/app/setup/" in said.stdout
        yield Figure("start, read-only", "healthy, with the link for the first account", f"link: {is_link}", is_link)
        user = images.inside("id", "-u").stdout.strip()
        written = images.inside("touch", "/app/x").stderr.strip()
        holds = user == "999" and "Read-only" in written
        yield Figure("its user", "999, and writes nothing", f"{user}, {written}", holds)
        checked = images.inside(*_health_check())
        told = f"{checked.returncode} {checked.stderr}"
        yield Figure("HEALTHCHECK with another PORT", "status 0", told, not checked.returncode)
        made = images.inside("./pocketbell", "account", "create", "a@example.org", "--password-stdin", stdin="x" * 20)
        began = time.monotonic()
        images.podman("stop", "--time", "30", NAME)
        took = time.monotonic() - began
        status = images.podman("inspect", "--format", "{{.State.ExitCode}}", NAME).stdout.strip()
        holds = status == "0" and took < MAX_STOP_S
        yield Figure("stop", f"status 0 in {MAX_STOP_S:.0f} s", f"{status} in {took:.1f} s", holds)
        images.podman("start", NAME)
        wait_until(lambda: _answers(port, "/healthz"))
        listed = images.inside("./pocketbell", "account", "list").stdout
        yield Figure("start again", "the account is there", made.stderr or listed.strip(), "a@example.org" in listed)


def _health_check() -> list[str]:
    (command,) = re.findall(r"^HEALTHCHECK CMD (.+)$", (ROOT / "deploy/Dockerfile").read_text(), re.M)
    return list(json.loads(command))
