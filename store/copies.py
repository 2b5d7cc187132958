"""The copies of notifications that followers have, and the group of an original and its copies.

A group is known by the seq of its original, also when that was deleted. What is written for all of one, as an answer
is, is written in one transaction, which has to name their accounts.
"""

from contextlib import AbstractContextManager
from itertools import chain
from typing import NamedTuple

from store import followers
from store.database import run_later, transaction
from store.engine import inserting
from store.heartbeats import Beat
from store.notifications import STATUS
from store.rows import Query, columns
from store.senders import Caller, Sender, Subject, Webhook


class Member(NamedTuple):
    """A notification of a group, and whose it is."""

    seq: int
    account_seq: int


COLUMNS = ("notification_seq", "original_seq", "owner_seq", "what", "subject_seq")
LISTED = "SELECT value FROM json_each(:seqs)"
ORIGINALS = (
    f"SELECT original_seq FROM notification_copy WHERE notification_seq IN ({LISTED})"
    f" UNION SELECT seq FROM notification WHERE seq IN ({LISTED})"
)
COPIES = f"SELECT notification_seq FROM notification_copy WHERE original_seq IN ({ORIGINALS})"
# The notifications with these `seqs`, and all others of their groups.
group = Query(
    Member,
    f"SELECT {columns(Member, 'n')} FROM notification n WHERE n.seq IN ({COPIES} UNION {ORIGINALS}) ORDER BY n.seq",
).all
# Mark an `account`'s copies with a `tag` of what this sender (`what` and `subject`) sent as replaced; their seqs and
# statuses. `by` is the newer copy, or the original of which there is none.
replace_earlier = Query(
    tuple[int, str],
    "UPDATE notification SET replaced_by = :by WHERE account_seq = :account AND tag = :tag AND replaced_by IS NULL"
    " AND seq <> :by AND seq IN (SELECT notification_seq FROM notification_copy"
    " WHERE what = :what AND subject_seq = :subject) RETURNING seq, status",
).all
IS_HELD = f"({STATUS}) = 'held'"
REPEATS = "EXISTS (SELECT 1 FROM alarm WHERE notification_seq = n.seq AND state = 'waiting')"
# The copies of these notifications (`seqs`) that repeat or are held.
waiting = Query(
    Member,
    f"SELECT {columns(Member, 'n')} FROM notification_copy c JOIN notification n ON n.seq = c.notification_seq"
    f" WHERE c.original_seq IN ({LISTED}) AND ({REPEATS} OR {IS_HELD}) ORDER BY n.seq",
).all
WAITING_OF = Query(
    int,
    "SELECT c.notification_seq FROM notification_copy c WHERE c.what = :what AND c.subject_seq = :subject"
    " AND c.notification_seq IN"
    " (SELECT notification_seq FROM alarm WHERE account_seq = :account AND state = 'waiting'"
    " UNION SELECT notification_seq FROM held WHERE account_seq = :account AND digest_seq IS NULL"
    " UNION SELECT seq FROM notification WHERE account_seq = :account AND status = 'held' AND deliver_at IS NOT NULL"
    " AND released_at IS NULL) ORDER BY c.notification_seq LIMIT :limit",
)


def add(notification_seqs: list[int], original_seq: int, owner_seq: int, subject: Subject) -> None:
    """Note that these are copies of an owner's notification, whose sender this is."""
    if notification_seqs:
        rows = [(seq, original_seq, owner_seq, *subject) for seq in notification_seqs]
        statement = inserting("notification_copy", COLUMNS, len(rows))  # MAX_FOLLOWERS at most
        run_later(statement, tuple(chain.from_iterable(rows)))


def writing(account_seq: int, seqs: list[int]) -> AbstractContextManager[None]:
    """A transaction of the account, and of all who have the same notifications as these of its own."""
    return transaction(account_seq, *(one.account_seq for one in group(seqs=seqs)))


def accounts_of(owner_seq: int) -> tuple[int, ...]:
    """The accounts that a notification of this owner is written for: the owner's, and those of all followers."""
    return owner_seq, *followers.accounts_of(owner_seq)


def accounts_for(sender: Sender) -> tuple[int, ...]:
    """The same for what a sender sends, without a query if nobody follows anything of the owner."""
    if isinstance(sender, (Caller, Webhook, Beat)) and sender.has_followers:
        return accounts_of(sender.account_seq)
    return (sender.account_seq,)


def waiting_of(account_seq: int, subject: Subject, limit: int) -> list[int]:
    """At most `limit` copies (their seqs) of an account that repeat or are held, of what this sender sent."""
    what, subject_seq = subject
    return WAITING_OF.all(account=account_seq, what=what, subject=subject_seq, limit=limit)
