"""The keys and notes that the service keeps for itself, and their queries."""

import peewee

from models import Model
from store.database import EVERYBODY, run, transaction


class ServerKey(Model):
    """A key of this service itself."""

    name = peewee.TextField(primary_key=True)
    value = peewee.TextField()

    @classmethod
    def find(cls, name: str) -> str | None:
        """The key's value, if it was made already."""
        key = cls.first("name = ?", name)
        return str(key.value) if key else None

    @classmethod
    def put_first(cls, name: str, value: str) -> str:
        """Keep `value` unless there is a key of that name; returns the kept value."""
        with transaction(EVERYBODY):
            run("INSERT INTO server_key (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", (name, value))
            return str(cls.get(cls.name == name).value)

    @classmethod
    def forget(cls, name: str) -> None:
        """Delete a key."""
        with transaction(EVERYBODY):
            run("DELETE FROM server_key WHERE name = ?", (name,))


class ServerNote(Model):
    """A named note of the service."""

    name = peewee.TextField(primary_key=True)
    value = peewee.TextField()

    PUT = (
        "INSERT INTO server_note (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )

    @classmethod
    def find(cls, name: str) -> str | None:
        """The value that was put last."""
        note = cls.first("name = ?", name)
        return str(note.value) if note else None

    @classmethod
    def forget(cls, first: str, last: str) -> None:
        """Delete the notes with names from `first` to `last`; call inside `transaction()`."""
        cls.delete().where(cls.name.between(first, last)).execute()

    @classmethod
    def put(cls, name: str, value: str) -> None:
        """Set the note to `value`."""
        with transaction(EVERYBODY):
            run(cls.PUT, (name, value))
