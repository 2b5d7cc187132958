"""Secrets that a page shows once, after the redirect that follows its form.

Until then a secret is masked with the session's token, which is only in that browser's cookie: the database alone
does not reveal it. Must not know requests.
"""

import hmac
from collections.abc import Callable

from store import server_notes
from store.database import EVERYBODY, transaction

LIFE_MS = 600_000


def keep(kind: str, id_: str, secret: str, session_token: str, now: int) -> None:
    """Keep the secret of an object for the browser with this session; call in `transaction()` of `EVERYBODY`."""
    server_notes.forget(kind, f"{kind}{now - LIFE_MS:012x}")  # ids begin with their time
    server_notes.put(kind + id_, _masked(secret.encode(), session_token, id_).hex())


def take(kind: str, id_: str, is_right: Callable[[str], bool], session_token: str) -> str | None:
    """The secret, once, if this session kept it; it is then forgotten."""
    with transaction(EVERYBODY):
        kept = server_notes.find(kind + id_)
        secret = _masked(bytes.fromhex(kept), session_token, id_).decode("latin-1") if kept else ""
        if not is_right(secret):
            return None
        server_notes.forget(kind + id_, kind + id_)
    return secret


def _masked(secret: bytes, session_token: str, id_: str) -> bytes:
    """The bytes, at most 64, XORed with a pad that only this secret uses; doing so twice gives them back."""
    pad = hmac.digest(session_token.encode(), id_.encode(), "sha512")
    return bytes(a ^ b for a, b in zip(secret, pad, strict=False))
