"""A bare Flask application to compare the service with; `python -m bench.hello` runs it under gunicorn.

It has the service's gunicorn settings, worker class and log (`hello_conf.py`). It ignores its arguments, so that it
can replace the service's command (`under` in tests/support/server.py).
"""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

from flask import Flask

app = Flask("hello")
app.config["MAX_CONTENT_LENGTH"] = 1_048_576  # our worker class reads it
app.streams = SimpleNamespace(stop=lambda: None)  # type: ignore[attr-defined]  # and ends them
app.takes_long = lambda method, path: False  # type: ignore[attr-defined]  # and asks this


@app.get("/")
def hello() -> dict[str, object]:
    """The least that a handler can do."""
    return {"ok": True, "hello": "world"}


@app.get("/healthz")
def healthz() -> dict[str, str]:
    """Lets clients wait until the server is up."""
    return {"status": "ok"}


if __name__ == "__main__":
    gunicorn = str(Path(sys.executable).parent / "gunicorn")
    config = str(Path(__file__).with_name("hello_conf.py"))
    os.execv(gunicorn, [gunicorn, "--config", config, "--no-control-socket", "bench.hello:app"])
