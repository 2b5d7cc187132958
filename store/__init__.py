"""The database: every query, and the one way to write.

What writes is called inside `transaction()`, unless it begins one itself: outside, the engines refuse it. The queries
of frequent requests are constant SQL: `name = Query(row type, statement).all` is called with the statement's values.
So is `name = Change(statement)`. Callers pass the time: nothing here reads a clock, a setting or a request.
"""

import sys

# Peewee imports psycopg where that is installed. This would cost 17 MB and 0.1 s for nothing: here, Peewee connects
# to no server. Python documents that a module which is None in `sys.modules` cannot be imported.
_psycopg = sys.modules.get("psycopg")
sys.modules["psycopg"] = None  # type: ignore[assignment]
import peewee as peewee  # noqa: E402

del sys.modules["psycopg"]
if _psycopg:
    sys.modules["psycopg"] = _psycopg
