"""Pictures: of notifications, kept for a while and served at an address with a secret token (docs/pictures.md).

The token is derived (core/derived_tokens.py), so that retries, repeats and replays have the same address. Must not
know requests or push.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from core import derived_tokens
from core.pieces import for_each_account
from models import sha256_of
from process.clock import DAY_MS
from store import engine
from store import pictures as stored
from store.database import transaction
from store.pictures import StoredPicture
from store.senders import Sender
from wire import ntfy
from wire.notification import Content, Recorded

KEPT_MS = 30 * DAY_MS
MAX_ACCOUNT_BYTES = 200_000_000  # beyond it, the account's oldest pictures go
REMOVED_AT_ONCE = 50  # pictures, each of up to 2 MB

_storing = threading.Lock()
token_of = partial(derived_tokens.token_of, "pictures")  # of a notification, by its id


def path_of(notification_id: str) -> str:
    """The path of a notification's picture on this server."""
    return f"/i/{token_of(notification_id)}"


def address_of(notification_id: str, content: Content) -> str | None:
    """The address of a notification's picture: of one that is kept, its path here."""
    return path_of(notification_id) if content.picture else content.image


def expires_at(notification: Recorded) -> int:
    """Until when (ms) a notification's picture is kept: one for later needs it later."""
    return (notification.content.deliver_at or notification.created_at) + KEPT_MS


def attachment(notification: Recorded, origin: str) -> dict[str, Any] | None:
    """A notification's picture as ntfy's apps read it; `origin` is this server's."""
    address = address_of(notification.id, notification.content)
    url = origin + address if address and address.startswith("/") else address
    return ntfy.attachment(notification.content, url, expires_at(notification))


@contextmanager
def storing(*account_seqs: int, lazy: bool = False) -> Iterator[None]:
    """The transaction that stores a picture, one at a time: writers that share a commit would wait for all."""
    engine.make_way()
    with _storing, transaction(*account_seqs, lazy=lazy):
        yield


def keep(sender: Sender, notification: Recorded, data: bytes) -> None:
    """Keep the picture that came with a notification, which describes it; call inside `transaction()`."""
    picture = StoredPicture(str(notification.content.picture[0]), data)
    token_hash, ends_at = sha256_of(token_of(notification.id)), expires_at(notification)
    total = stored.add(notification.seq, sender.account_seq, token_hash, picture, ends_at)
    if total > MAX_ACCOUNT_BYTES:
        _remove_oldest(sender.account_seq, total - MAX_ACCOUNT_BYTES)


def _remove_oldest(account_seq: int, surplus: int) -> None:
    """Remove the account's oldest pictures, which have at least so many bytes together."""
    while surplus > 0:
        going = list[int]()
        for seq, size in stored.oldest(account_seq, REMOVED_AT_ONCE):
            if surplus <= 0:
                break
            going.append(seq)
            surplus -= size
        stored.remove(account_seq, going)


def find(token: str, now: int) -> StoredPicture | None:
    """The picture at the address with this token; None if there never was one, or it is gone."""
    return stored.find(sha256_of(token), now)


def remove_expired(now: int) -> bool:
    """Remove some pictures whose time is over; whether there were any."""
    return for_each_account(stored.expired(now, REMOVED_AT_ONCE), stored.remove)
