"""gunicorn's settings of the service without its hooks, which open its database and start its jobs."""

import runpy

HOOKS = ("on_starting", "when_ready", "post_worker_init", "worker_exit")
globals().update(
    {
        name: value
        for name, value in runpy.run_path("gunicorn.conf.py").items()
        if not name.startswith("_") and name not in HOOKS
    }
)
