"""Forgotten passwords: who asks for one gets a link by mail, if there is such an account.

The request only notes the address; the background does the rest. So neither its answer nor its time tells whether
there is an account. Must not know requests.
"""

from collections import deque

from core import accounts, mail_limits, mails
from models import Account, sha256_of
from store.database import transaction
from store.sessions import OneTimeLink

_asked = deque[str](maxlen=1_000)  # the addresses that people typed


def ask(email: str) -> None:
    """Mail a link that sets a new password of this account, if there is one; it works once, within 30 minutes."""
    _asked.append(accounts.normalized(email))
    mails.batches.due.set()


def mail_links(now: int) -> None:
    """Mail the links that were asked for."""
    for _ in range(len(_asked)):
        account = Account.find(_asked.popleft())
        if account is None or (account.disabled_at, account.invited_until) != (None, None) or not mails.can_mail():
            continue
        name, token = mails.new_link()
        with transaction(account.seq):
            if mail_limits.take(account.seq, None, now):
                OneTimeLink.end_expired(account.seq, now)
                OneTimeLink.put(sha256_of(token), account.seq, now + mails.LINK_LIVES_MS["password"])
                mails.add(account.seq, "password", now, detail=name)
