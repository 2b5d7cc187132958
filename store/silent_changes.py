"""What heartbeats and rules changed in silence, within a mute that comes again. Callers decide when it is told."""

from typing import NamedTuple

from store.database import run
from store.enabled import OF_ENABLED
from store.rows import Change, Query, columns
from store.senders import Subject


class SilentChange(NamedTuple):
    """A heartbeat or a rule whose owner knows another state of it; the texts say the latest change."""

    account_seq: int
    what: str
    subject_seq: int
    was_wrong: int
    is_wrong: int
    title: str
    body: str
    priority: int

    @property
    def subject(self) -> Subject:
        """What a mute may name."""
        return self.what, self.subject_seq


# Note a change, by its fields; what its owner knew before the first one stays.
keep = Change(
    "INSERT INTO silent_change (account_seq, what, subject_seq, was_wrong, is_wrong, title, body, priority)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (what, subject_seq) DO UPDATE SET is_wrong = excluded.is_wrong,"
    " title = excluded.title, body = excluded.body, priority = excluded.priority"
)
# Everything that changed in silence and was not told, by account.
everything = Query(
    SilentChange,
    f"SELECT {columns(SilentChange, 's')} FROM silent_change s WHERE account_seq {OF_ENABLED}"
    " ORDER BY account_seq, what, subject_seq",
).all
OF_SUBJECT = "what = ? AND subject_seq = ?"
# Whether something was not told of this heartbeat or rule.
is_kept = Query(int, f"SELECT EXISTS (SELECT 1 FROM silent_change WHERE {OF_SUBJECT})").one
ONE = Query(SilentChange, f"SELECT {columns(SilentChange, 's')} FROM silent_change s WHERE {OF_SUBJECT}")


def take(subject: Subject) -> SilentChange | None:
    """Delete what was not told of it, and return it; None if another process did."""
    found = ONE.first(*subject)
    run(f"DELETE FROM silent_change WHERE {OF_SUBJECT}", subject)
    return found
