"""The tables of heartbeats and their pings, and their queries."""

from functools import partial
from typing import NamedTuple

from models import Account
from store.database import THESE, run
from store.enabled import IS_ENABLED, OF_ENABLED
from store.rows import Change, Query, add_own, add_row, change_row, columns, counting, keep_newest, overdue
from store.senders import Subject, Watch

KEPT_CHANGES = 100  # of a heartbeat


class BeatColumns(NamedTuple):
    """A heartbeat, and its account's settings that a notification needs."""

    seq: int
    id: str
    ping_id: str
    name: str
    period_s: int | None
    cron: str | None
    grace_s: int
    priority: int
    state: str
    last_ping_at: int | None
    deadline_at: int | None
    down_since: int | None
    created_at: int
    account_seq: int
    email: str
    time_zone: str
    quiet_hours: str | None
    has_followers: int  # whether somebody may follow something of the account


class Beat(BeatColumns, Watch):
    """A heartbeat as a sender of notifications."""

    __slots__ = ()

    @property
    def subject(self) -> Subject:
        """What a mute may name."""
        return "heartbeat", self.seq


OF_OWNER = ("email", "time_zone", "quiet_hours", "has_followers")
BEATS = (
    f"SELECT {columns(Beat, 'h', **{name: f'a.{name}' for name in OF_OWNER})}"
    " FROM heartbeat h JOIN account a ON a.seq = h.account_seq"
)
# The account's heartbeats, newest first.
of_account = Query(Beat, f"{BEATS} WHERE h.account_seq = ? ORDER BY h.seq DESC").all
# The account's heartbeat with that id, or with that UUID in its address.
find = Query(Beat, f"{BEATS} WHERE h.account_seq = ? AND ? IN (h.id, h.ping_id)").first
# The heartbeat with that UUID in its address.
pinged = Query(Beat, f"{BEATS} WHERE h.ping_id = ? AND {IS_ENABLED}").first
# The heartbeat as it is now; None if it was deleted, or its account disabled.
one = Query(Beat, f"{BEATS} WHERE h.seq = ? AND {IS_ENABLED}").first
# Whether any account's heartbeat has that UUID in its address.
is_taken = Query(int, "SELECT EXISTS (SELECT 1 FROM heartbeat WHERE ping_id = ?)").one
# The heartbeats of all accounts that have a deadline.
expected = Query(Beat, f"{BEATS} WHERE h.deadline_at IS NOT NULL").all
# The accounts that have heartbeats.
account_seqs = Query(int, "SELECT DISTINCT account_seq FROM heartbeat").all
CHANGE_STATE = (
    "UPDATE heartbeat SET state = ?, deadline_at = ?, down_since = ? WHERE seq = ? AND state = ? AND deadline_at IS ?"
)
MOVE_DOWN_SINCE = (
    f"UPDATE heartbeat SET down_since = down_since + ? WHERE down_since IS NOT NULL AND account_seq IN {THESE}"
)
MOVE_OPEN_CHANGES = (
    "UPDATE heartbeat_change SET changed_at = changed_at + ? WHERE seq IN (SELECT max(c.seq)"
    " FROM heartbeat_change c JOIN heartbeat h ON h.seq = c.heartbeat_seq"
    f" WHERE h.account_seq IN {THESE} GROUP BY c.heartbeat_seq)"
)
KEEP_CHANGE = "INSERT INTO heartbeat_change (heartbeat_seq, state, changed_at) VALUES (?, ?, ?)"

add, change = partial(add_own, "heartbeat"), partial(change_row, "heartbeat")
remove = Change("DELETE FROM heartbeat WHERE seq = ?")
count, count_down = counting("heartbeat"), counting("heartbeat", "state = 'down'")
due = overdue("heartbeat", "deadline_at", only=f"account_seq {OF_ENABLED}")


# --- states ---


def change_state(beat: Beat, state: str, deadline_at: int | None, now: int, down_since: int | None = None) -> bool:
    """Change the state unless it has changed since `beat` was read; returns whether it did.

    Call inside the transaction that records what the change tells the owner.
    """
    if not run(CHANGE_STATE, (state, deadline_at, down_since, beat.seq, beat.state, beat.deadline_at)).rowcount:
        return False
    if _kept(state) != _kept(beat.state):
        run(KEEP_CHANGE, (beat.seq, _kept(state), now))
        keep_newest("heartbeat_change", "heartbeat_seq", beat.seq, KEPT_CHANGES)
    return True


def _kept(state: str) -> str:
    """The state as it is kept: a late heartbeat is still up."""
    return "up" if state == "late" else state


def move_down_since(account_seqs: list[int], by_ms: int) -> None:
    """Move the times at which these heartbeats' states began by `by_ms`."""
    values = (by_ms, account_seqs)
    run(MOVE_DOWN_SINCE, values)
    run(MOVE_OPEN_CHANGES, values)


def owner_of(ping_key: str) -> Account | None:
    """The account with that ping key."""
    return Account.first("ping_key = ? AND disabled_at IS NULL", ping_key)


class KeptPing(NamedTuple):
    """A ping that is kept."""

    kind: str
    exit_code: int | None
    body: str
    received_at: int


# The kept pings of a heartbeat, newest first.
newest_pings = Query(
    KeptPing, f"SELECT {columns(KeptPing, 'p')} FROM ping p WHERE heartbeat_seq = ? ORDER BY seq DESC"
).all
# The kept changes of a heartbeat's state, oldest first: the state and since when.
changes = Query(
    tuple[str, int], "SELECT state, changed_at FROM heartbeat_change WHERE heartbeat_seq = ? ORDER BY seq"
).all
# The kept pings of all heartbeats of the `account`, then their changes of state, each oldest first: the heartbeat's
# seq, the kind or state, the time, whether it is a change, and its own seq.
moments = Query(
    tuple[int, str, int, int, int],
    "SELECT p.heartbeat_seq, p.kind, p.received_at, 0 AS is_change, p.seq FROM ping p"
    " JOIN heartbeat h ON h.seq = p.heartbeat_seq WHERE h.account_seq = :account"
    " UNION ALL SELECT c.heartbeat_seq, c.state, c.changed_at, 1, c.seq FROM heartbeat_change c"
    " JOIN heartbeat h ON h.seq = c.heartbeat_seq WHERE h.account_seq = :account ORDER BY 4, 5",
).all
# The newest kept ping that says whether the job succeeded.
newest_outcome = Query(
    KeptPing,
    f"SELECT {columns(KeptPing, 'p')} FROM ping p WHERE heartbeat_seq = ?"
    " AND kind IN ('success', 'fail') ORDER BY seq DESC LIMIT 1",
).first


def keep_ping(heartbeat_seq: int, ping: KeptPing, kept: int) -> None:
    """Add a ping, and keep the `kept` newest."""
    add_row("ping", {"heartbeat_seq": heartbeat_seq, **ping._asdict()})
    keep_newest("ping", "heartbeat_seq", heartbeat_seq, kept)
