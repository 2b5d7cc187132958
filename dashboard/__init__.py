"""The web app under /app/: a file for each noun, with its pages and the forms on them.

Plain forms: POST, redirect, GET; JavaScript only where a browser subscribes to pushes. Must not know SQL, wire
names of the REST API, or how a push is made.
"""

from dashboard import (
    alert_template,
    alerts,
    devices,
    history,
    home,
    keys,
    metrics,
    page,
    quiet_hours,
    settings,
    signin,
)

__all__ = [
    "alert_template",
    "alerts",
    "devices",
    "history",
    "home",
    "keys",
    "metrics",
    "page",
    "quiet_hours",
    "settings",
    "signin",
]
