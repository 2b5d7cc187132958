"""The keys and notes that the service keeps for itself, and their queries."""

from store.database import EVERYBODY, run, transaction
from store.rows import Change, Query

# The value of a note that was put last.
find = Query(str, "SELECT value FROM server_note WHERE name = ?").first
# The value of a key of the service itself, if it was made already.
find_key = Query(str, "SELECT value FROM server_key WHERE name = ?").first
# Delete the notes with names from one to another.
forget = Change("DELETE FROM server_note WHERE name BETWEEN ? AND ?")
PUT = "INSERT INTO server_note (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
PUT_KEY = "INSERT INTO server_key (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"


def put(name: str, value: str) -> None:
    """Set a note to `value`."""
    with transaction(EVERYBODY):
        run(PUT, (name, value))


def try_writing() -> None:
    """Write a page to the disk; raises `WriteFailed` if that does not succeed."""
    put("written", "")


def put_first_key(name: str, value: str) -> str:
    """Keep `value` unless there is a key of that name; returns the kept value."""
    with transaction(EVERYBODY):
        run(PUT_KEY, (name, value))
        return find_key(name) or value


def forget_key(name: str) -> None:
    """Delete a key."""
    with transaction(EVERYBODY):
        run("DELETE FROM server_key WHERE name = ?", (name,))
