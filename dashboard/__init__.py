"""The web app under /app/: a file for each noun, with its pages and the forms on them.

Plain forms: POST, redirect, GET; JavaScript only where a browser subscribes to pushes. Must not know SQL, wire
names of the REST API, or how a push is made.
"""

from dashboard import devices, history, home, keys, page, quiet_hours, settings, signin

__all__ = ["devices", "history", "home", "keys", "page", "quiet_hours", "settings", "signin"]
