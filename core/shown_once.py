"""Secrets that a page shows once, after the redirect that follows its form.

Until then a secret is masked with the session's token, which is only in that browser's cookie: the database alone
does not reveal it. Must not know requests.
"""

import hmac
from contextlib import AbstractContextManager

from store import server_notes
from store.database import EVERYBODY, transaction
from store.rows import new_id

LIFE_MS = 600_000
NOTE = "unseen "  # with the id of what has the secret and a mark of the session after it, the name of the note


def with_secret(account_seq: int) -> AbstractContextManager[None]:
    """A transaction for something new of an account and its secret: neither is stored without the other."""
    return transaction(EVERYBODY, account_seq)


def keep(secret: str, session_token: str, now: int, id_: str = "") -> str:
    """Keep a secret for the browser with this session; returns the id by which to take it: `id_`, or a new one."""
    id_ = id_ or new_id(now)
    with transaction(EVERYBODY):
        server_notes.forget(NOTE, f"{NOTE}{now - LIFE_MS:012x}")  # ids begin with their time
        server_notes.put(_name(id_, session_token), _masked(secret.encode(), session_token, id_).hex())
    return id_


def take(id_: str, session_token: str) -> str | None:
    """The secret, once, if this session kept it; it is then forgotten."""
    name = _name(id_, session_token)
    with transaction(EVERYBODY):
        kept = server_notes.find(name)
        server_notes.forget(name, name)
    return _masked(bytes.fromhex(kept), session_token, id_).decode() if kept else None


def _name(id_: str, session_token: str) -> str:
    return f"{NOTE}{id_} {hmac.digest(session_token.encode(), f'name {id_}'.encode(), 'sha256').hex()}"


def _masked(secret: bytes, session_token: str, id_: str) -> bytes:
    """The bytes, at most 64, XORed with a pad that only this secret uses; doing so twice gives them back."""
    pad = hmac.digest(session_token.encode(), id_.encode(), "sha512")
    return bytes(a ^ b for a, b in zip(secret, pad, strict=False))
