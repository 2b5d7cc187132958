"""Schemathesis against the service as it is run, with a real key: do its answers fit its /openapi.json?"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.server import OWNER, ROOT, serving


def main(schemathesis):
    """Ends with the status of schemathesis."""
    token = {"METRICS_TOKEN": "a-token-of-24-characters"}
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory) / "data", **token) as server:
        key = server.wait_until_ready().owner_key()
        code = server.flask("alert", "create", OWNER, "Conformance").strip().rpartition("/")[2]
        command = [schemathesis, "--config-file", ROOT / "tests/schemathesis.toml"]
        environ = {**server.environ, "KEY": key, "SHORT_CODE": code}
        address = f"http://127.0.0.1:{server.port}/openapi.json"
        command += ["run", address, "--seed", "1", "--continue-on-failure"]
        return subprocess.run(command, env=environ, cwd=directory, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
