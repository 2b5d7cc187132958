"""What counts for all who got the same notification: its owner, and the followers of what sent it.

An acknowledgement, an answer, or the owner's deletion of what still waits is written for all of them in one
transaction, which has to name their accounts. Must not know requests.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager

from store import copies, followers
from store.database import transaction
from store.heartbeats import Beat
from store.senders import Caller, Sender, Webhook


def accounts_of(owner_seq: int) -> tuple[int, ...]:
    """The accounts that a notification of this owner is written for: the owner's, and those of all followers."""
    return owner_seq, *followers.accounts_of(owner_seq)


def accounts_for(sender: Sender) -> tuple[int, ...]:
    """The same for what a sender sends, without a query if nobody follows anything of the owner."""
    if isinstance(sender, (Caller, Webhook, Beat)) and sender.has_followers:
        return accounts_of(sender.account_seq)
    return (sender.account_seq,)


def writing(account_seq: int, seqs: Iterable[int]) -> AbstractContextManager[None]:
    """A transaction of the account, and of all who have the same notifications as these of its own."""
    return transaction(account_seq, *(one.account_seq for one in copies.group(seqs)))
