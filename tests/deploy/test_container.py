"""The container's files, also for Compose and Kubernetes. `make torture ONLY=container` really builds and runs it."""

import http.client
import os
import re
import shutil
import subprocess

import pytest
import yaml

import config
from tests.support.rows import each
from tests.support.server import BIN, PATIENCE_S, ROOT, free_port, wait_until

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
OVERRIDES = ("compose.caddy.yaml", "compose.postgresql.yaml")
KNOWN = {variable.name for variable in config.variables()}
ENVIRON = dict(part.split("=") for part in re.search(r"^ENV (.+)$", DOCKERFILE, re.M)[1].split())


class Loader(yaml.SafeLoader):
    """Reads Compose's own tags, too."""


Loader.add_constructor("!reset", lambda loader, node: loader.construct_sequence(node))


def composed(name):
    return yaml.load((DEPLOY / name).read_text(), Loader)


def test_the_container_serves_from_the_files_that_it_gets(tmp_path, monkeypatch):
    """Only links stand for what the build installs: the interpreter and the packages."""
    left_out = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    app = tmp_path / "app"
    app.mkdir()
    for path in ROOT.iterdir():
        if not any(path.match(one) for one in (*left_out, ".*")):
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, app / path.name)
    (app / ".venv").symlink_to(BIN.parent)
    port = str(free_port())
    environ = {"PATH": os.environ["PATH"], **ENVIRON, "DATA_DIR": str(tmp_path / "data"), "PORT": port}
    command = yaml.safe_load(re.search(r"^CMD (.+)$", DOCKERFILE, re.M)[1])
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=app, env=environ, stdout=log, stderr=log)
    try:
        wait_until(lambda: "Booting worker" in (tmp_path / "log").read_text())
        for path in ("/healthz", "/app/login", "/app/static/manifest.webmanifest"):
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE_S)
            connection.request("GET", path)
            assert connection.getresponse().status == 200, path
            connection.close()
        monkeypatch.setenv("PORT", port)
        *python, check = yaml.safe_load(re.search(r"^HEALTHCHECK CMD (.+)$", DOCKERFILE, re.M)[1])
        exec(check)
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert "/app/setup/" in (tmp_path / "log").read_text()
    assert python == [".venv/bin/python", "-c"]
    with pytest.raises(OSError, match="refused"):
        exec(check)


def test_nothing_is_installed_when_the_container_starts_and_nothing_without_a_hash():
    assert "make" not in DOCKERFILE.replace("`make torture ONLY=container`", "")
    installs = [line for line in DOCKERFILE.splitlines() if "pip install" in line]
    assert len(installs) == 1 and "--require-hashes -r requirements.txt" in installs[0]


def test_compose_opens_the_container_to_this_machine_alone_and_keeps_its_data():
    (bell,) = composed("compose.yaml")["services"].values()
    assert (DEPLOY / bell["build"]["context"] / bell["build"]["dockerfile"]).is_file()
    assert (bell["ports"], bell["volumes"]) == (["127.0.0.1:8000:8000"], [f"data:{ENVIRON['DATA_DIR']}"])
    assert set(composed("compose.yaml")["volumes"]) == {"data"} and bell["read_only"] and bell["cap_drop"] == ["ALL"]
    assert set(bell["environment"]) <= KNOWN and ENVIRON["TMPDIR"] == "/dev/shm"
    assert all(value.startswith(f"${{{name}:-") for name, value in bell["environment"].items())  # deploy/.env wins


@each("name", OVERRIDES)
def test_a_second_file_for_compose_changes_the_same_service_and_restarts_what_it_adds(name):
    services = composed(name)["services"]
    bell = services.pop("bell")
    assert set(bell["environment"]) <= KNOWN and services
    assert all(one["restart"] == "unless-stopped" and re.search(r":\d", one["image"]) for one in services.values())
    mounted = {part.split(":")[0] for one in services.values() for part in one.get("volumes", ())}
    assert {one for one in mounted if not one.startswith("./")} == set(composed(name)["volumes"])
    assert all((DEPLOY / one).is_file() for one in mounted if one.startswith("./"))


def test_only_caddy_reaches_the_container_that_it_stands_before():
    assert composed("compose.caddy.yaml")["services"]["bell"]["ports"] == []
    caddy = composed("compose.caddy.yaml")["services"]["caddy"]
    script = caddy["command"][2].replace("$$", "$")
    (mounted,) = (part.split(":")[1] for part in caddy["volumes"] if part.startswith("./Caddyfile"))
    sed = script.split(">")[0].replace(mounted, str(DEPLOY / "Caddyfile"))
    environ = {"PATH": os.environ["PATH"], "NAME": "bell.example.org"}
    text = subprocess.run(["sh", "-c", sed], env=environ, capture_output=True, text=True, check=True).stdout
    assert "\nbell.example.org {" in text and "\treverse_proxy bell:8000 {" in text
    assert "request_buffers 15100KB\n" in text and "push.example.org {" not in text
    assert (
        sum(a != b for a, b in zip(text.splitlines(), (DEPLOY / "Caddyfile").read_text().splitlines(), strict=True))
        == 4
    )


KUBERNETES = {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}


def test_kubernetes_restarts_by_livez_and_sends_requests_by_healthz():
    pod = KUBERNETES["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    probes = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
    assert probes == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/healthz"}
    assert {one["name"] for one in container["env"]} <= KNOWN
    assert container["volumeMounts"] == [{"name": "data", "mountPath": ENVIRON["DATA_DIR"]}]
    assert container["securityContext"]["readOnlyRootFilesystem"] and pod["terminationGracePeriodSeconds"] > 30
    assert f"\nUSER {pod['securityContext']['runAsUser']}\n" in DOCKERFILE
    assert (
        pod["volumes"][0]["persistentVolumeClaim"]["claimName"]
        == KUBERNETES["PersistentVolumeClaim"]["metadata"]["name"]
    )


def test_the_image_for_kubernetes_is_of_this_version():
    (container,) = KUBERNETES["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"].endswith(f"pocketbell:{config.VERSION}")


@pytest.mark.parametrize("kind", ["Service", "Ingress"])
def test_what_leads_to_the_pod_names_what_is_there(kind):
    labels = KUBERNETES["Deployment"]["spec"]["template"]["metadata"]["labels"]
    service = KUBERNETES["Service"]
    if kind == "Service":
        assert service["spec"]["selector"] == labels
    else:
        (rule,) = KUBERNETES["Ingress"]["spec"]["rules"]
        assert rule["http"]["paths"][0]["backend"]["service"]["name"] == service["metadata"]["name"]
