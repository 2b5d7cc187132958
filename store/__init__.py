"""The database: every query, and the one way to write."""

import sys

# Peewee imports whichever driver of PostgreSQL is installed: 17 MB and 90 ms for nothing, since we have it use none.
_psycopg = sys.modules.get("psycopg")
sys.modules["psycopg"] = None  # type: ignore[assignment]
import peewee as peewee  # noqa: E402

del sys.modules["psycopg"]
if _psycopg:
    sys.modules["psycopg"] = _psycopg
