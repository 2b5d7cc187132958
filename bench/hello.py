"""A bare Flask application, what the service is compared with; `python -m bench.hello` runs it under gunicorn.

It gets the service's own gunicorn settings, worker class and log (`hello_conf.py`). Arguments are not looked at, so
that it can stand in front of the service's own command (`under` in tests/support/server.py).
"""

import os
import sys
from pathlib import Path

from flask import Flask

app = Flask("hello")
app.config["MAX_CONTENT_LENGTH"] = 1_048_576  # our worker class asks for it


@app.get("/")
def hello() -> dict[str, object]:
    """As little as a handler can do."""
    return {"ok": True, "hello": "world"}


@app.get("/healthz")
def healthz() -> dict[str, str]:
    """For who waits until it is up."""
    return {"status": "ok"}


if __name__ == "__main__":
    gunicorn = str(Path(sys.executable).parent / "gunicorn")
    config = str(Path(__file__).with_name("hello_conf.py"))
    os.execv(gunicorn, [gunicorn, "--config", config, "--no-control-socket", "bench.hello:app"])
