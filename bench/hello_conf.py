"""The service's gunicorn settings without its hooks, which open the database and start the jobs."""

import runpy

HOOKS = ("on_starting", "when_ready", "nworkers_changed", "pre_fork", "post_worker_init", "worker_exit")
globals().update(
    {
        name: value
        for name, value in runpy.run_path("gunicorn.conf.py").items()
        if not name.startswith("_") and name not in HOOKS
    }
)
