"""The files for Heroku, Render and Fly: what their documentation demands, and settings and routes that exist."""

import json
import os
import re
import subprocess
import tomllib

import yaml

import app
import config
from tests.support.forks import Fork
from tests.support.rows import each
from tests.support.server import BIN, NO_FILE, PATIENCE_S, ROOT, free_port, wait_until

APP_JSON = json.loads((ROOT / "app.json").read_text())
(RENDER,) = yaml.safe_load((ROOT / "render.yaml").read_text())["services"]
FLY = tomllib.loads((ROOT / "fly.toml").read_text())
PROCFILE = dict(re.findall(r"^(\w+): (.+)$", (ROOT / "Procfile").read_text(), re.M))
GUNICORN = "--config gunicorn.conf.py --no-control-socket app:app"  # its arguments
KNOWN = {variable.name for variable in config.variables()}
ROUTES = {route.rule for route in app.ROUTES if route.method == "GET"}
GRACE_S = int(re.search(r"^graceful_timeout = (\d+)$", (ROOT / "gunicorn.conf.py").read_text(), re.M)[1])


def test_heroku_knows_each_key_of_app_json_and_pocketbell_each_variable():
    assert set(APP_JSON) <= {
        *("name", "description", "keywords", "website", "repository", "logo", "success_url", "scripts", "env"),
        *("formation", "addons", "buildpacks", "environments", "stack", "image"),
    }
    assert re.fullmatch(r"[a-zA-Z-_.]{1,30}", APP_JSON["name"])
    assert set(APP_JSON["env"]) <= KNOWN and set(APP_JSON["formation"]) <= set(PROCFILE)
    assert all(set(one) <= {"description", "value", "required", "generator"} for one in APP_JSON["env"].values())
    assert all(set(one) == {"quantity", "size"} for one in APP_JSON["formation"].values())
    assert APP_JSON["success_url"] in ROUTES


def test_the_python_of_platforms_is_one_that_pocketbell_supports():
    """Heroku takes one line with a version, of which it takes the newest patch."""
    major, minor = re.fullmatch(r"(\d+)\.(\d+)\n", (ROOT / ".python-version").read_text()).groups()
    least = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert (int(major), int(minor)) >= tuple(map(int, least.removeprefix(">=").split(".")))


def test_render_gets_a_disk_where_the_data_is_and_one_process():
    assert {"type", "name", "runtime", "buildCommand", "startCommand"} <= set(RENDER)
    variables = {one["key"]: one for one in RENDER["envVars"]}
    assert set(variables) <= KNOWN and all(len(one) == 2 for one in variables.values())
    assert variables["DATA_DIR"]["value"] == RENDER["disk"]["mountPath"]
    assert variables["HOST"]["value"] == "0.0.0.0" and variables["WEB_CONCURRENCY"]["value"] == "1"
    assert RENDER["healthCheckPath"] in ROUTES and RENDER["maxShutdownDelaySeconds"] > GRACE_S
    assert "--require-hashes -r requirements.txt" in RENDER["buildCommand"]


def test_fly_builds_the_container_and_keeps_a_machine_running():
    assert (ROOT / FLY["build"]["dockerfile"]).is_file() and set(FLY["env"]) <= KNOWN
    assert FLY["kill_signal"] == "SIGTERM" and int(FLY["kill_timeout"].removesuffix("s")) > GRACE_S
    service = FLY["http_service"]
    assert f"\nEXPOSE {service['internal_port']}\n" in (ROOT / FLY["build"]["dockerfile"]).read_text()
    assert (service["auto_stop_machines"], service["min_machines_running"]) == ("off", 1)
    assert [check["path"] for check in service["checks"]] == ["/healthz"]


NOTED = """#!/bin/sh
echo "${0##*/} $*" >>called
env -0 >environ
"""  # in the place of our programs: what was called, and with which settings


@each("platform", ["Heroku", "Render"])
def test_the_start_command_of_a_platform_serves_with_what_it_sets_and_prints_the_first_link(platform, tmp_path):
    folder, port = tmp_path / platform, str(free_port())
    folder.mkdir()
    for name in ("python", "gunicorn", "pocketbell"):
        (folder / name).write_text(NOTED)
        (folder / name).chmod(0o755)
    environ = {**NO_FILE, "PATH": f"{folder}:{os.environ['PATH']}", "PORT": port, "DATA_DIR": str(folder / "data")}
    environ |= {"FIRST_ACCOUNT": "you@example.org", "FORWARDED_ALLOW_IPS": "*", "WEB_CONCURRENCY": "2"}
    command, address = PROCFILE["web"], f"http://localhost:{port}"
    called = f"python config.py\ngunicorn {GUNICORN}\n"
    if platform == "Render":
        command, address, called = RENDER["startCommand"], "https://bell.onrender.com", "pocketbell serve\n"
        environ |= {"HOST": "0.0.0.0", "WEB_CONCURRENCY": "1", "RENDER_EXTERNAL_URL": address}
    subprocess.run(["bash", "-c", command], cwd=folder, env=environ, check=True)
    assert (folder / "called").read_text() == called
    environ = dict(one.split("=", 1) for one in (folder / "environ").read_text().split("\0")[:-1])
    log = folder / "log"
    process = Fork([BIN / "gunicorn", *GUNICORN.split()], environ, log, log)
    try:
        wait_until(lambda: "Booting worker" in log.read_text() or process.poll() is not None)
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0, log.read_text()
    assert f"Listening at: http://0.0.0.0:{port} " in log.read_text()
    assert f"\n  {address}/app/setup/" in log.read_text()
