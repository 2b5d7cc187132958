"""What an API key may do, until when, and the background jobs at its end. Must not know requests."""

from typing import Any

from core import local_time, recording
from core.pieces import for_each_account
from models import Account
from process.clock import DAY_MS, MINUTE_MS
from store import key_limits
from store.database import transaction
from store.key_limits import FULL, READ, SEND
from store.senders import Owner
from wire.errors import Refused
from wire.notification import LOW_PRIORITY, Content, checked_time
from wire.validation import checked_choice

SCOPES = (FULL, SEND, READ)
NOT_ALLOWED = {SEND: "This key may only send.", READ: "This key may only read."}
MIN_LIFE_MS, MAX_LIFE_MS = MINUTE_MS, 3_653 * DAY_MS
TOLD_BEFORE_MS = 7 * DAY_MS
MOST_AT_ONCE = 500


def limits(scope: str, expires_at: Any, now: int, field: str) -> dict[str, Any]:
    """The columns for a new key's scope and expiry (None: never); `Refused` (400) names `scope`, or `field`."""
    checked_choice(scope, "scope", SCOPES)
    if expires_at is not None and not MIN_LIFE_MS <= checked_time(expires_at, field) - now <= MAX_LIFE_MS:
        raise Refused(400, f"{field} must be from 1 minute to 10 years ahead.", field=field)
    return {"scope": scope, "expires_at": expires_at}


def look_at_ends(now: int) -> bool:
    """Tell owners once of keys that expire within seven days, revoke those that have; whether more are left."""
    ending = key_limits.untold(now=now, before=TOLD_BEFORE_MS, limit=MOST_AT_ONCE)
    for key in ending:
        with transaction(key.account_seq):
            account = Account.with_seq(key.account_seq)
            if account and key_limits.note_told(key.seq):
                at = local_time.near_time(key.expires_at, account.time_zone, now)
                body = f"The key {key.preview}… stops working {at}. Programs that use it need a new one."
                content = Content(f"API key expires soon: {key.name}", body, priority=LOW_PRIORITY)
                recording.tell(Owner.of(account), content, now)
    expired = key_limits.expired(now, MOST_AT_ONCE)
    for_each_account(expired, lambda account_seq, seqs: key_limits.revoke(seqs))
    return MOST_AT_ONCE in (len(ending), len(expired))
