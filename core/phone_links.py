"""Signing in on a phone without a password: a signed-in browser shows a code, a phone sends it, the browser confirms.

A code is good once and for two minutes, and ends with the session that shows it; each further step has two minutes,
too. Only that session can confirm, and only the browser that sent the code is then signed in. Both show the same
number until then. A code has 60 random bits, because people also type it. Must not know requests.
"""

import secrets

from models import Account, sha256_of
from store.database import transaction
from store.sessions import PhoneLink, Session
from wire.errors import Refused

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: nothing that looks like something else
READ_AS = str.maketrans("OIL", "011", " -")
CODE_CHARACTERS = 12
LIFE_MS = 120_000
USED = "This code has been used. Show a new one on your computer."
EXPIRED = "This code has expired: it is good for two minutes. Show a new one on your computer."
NOBODY_ASKS = "This request to sign in has ended."


def make_code(session_token: str, account_seq: int, now: int) -> str:
    """A new code for the browser with this session; its earlier one is void."""
    code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARACTERS))
    with transaction(account_seq):
        if Session.find(sha256_of(session_token), now) is None:
            raise Refused(409, "You have been signed out. Sign in again.")
        PhoneLink.put(sha256_of(session_token), sha256_of(code), now + LIFE_MS)
    return code


def cleaned(code: str) -> str:
    """A typed code in its original form."""
    return code.upper().translate(READ_AS)


def is_shown(link: PhoneLink, code: str) -> bool:
    """Whether this is the code of the link."""
    return secrets.compare_digest(bytes(link.code_hash), sha256_of(code))


def state(link: PhoneLink | None, now: int) -> str:
    """The link's state, `expired` if it had been left alone for too long, or `none`."""
    if link is None:
        return "none"
    return link.state if link.expires_at > now or link.state in ("refused", "used") else "expired"


def find(code: str, now: int) -> tuple[PhoneLink, int]:
    """The link of a code that a phone may use, and the seq of its account; `Refused` (404, 409) if there is none."""
    link = PhoneLink.with_code(code)
    session = Session.find(link.session_hash, now) if link else None
    if link is None or session is None:
        raise Refused(404, "This code is not valid. Show a new one on your computer.")
    if state(link, now) == "expired":
        raise Refused(404, EXPIRED)
    if link.state != "shown":
        raise Refused(409, USED)
    return link, session.account_seq


def ask(code: str, name: str, address: str, now: int) -> str:
    """Spend the code: the browser with this name and address asks to be signed in. Returns the secret it keeps."""
    (link, account_seq), secret = find(code, now), secrets.token_urlsafe(32)
    number = f"{secrets.randbelow(10_000):04}"
    phone = {"phone_name": name, "phone_address": address, "number": number}
    with transaction(account_seq):
        if not PhoneLink.change(link, "asked", now, now + LIFE_MS, phone_hash=sha256_of(secret), **phone):
            raise Refused(409, USED)
    return secret


def decide(session_token: str, account_seq: int, number: str, is_mine: bool, now: int) -> None:
    """Confirm or refuse the phone that asks with this browser's code; `Refused` (409) if none shows this number."""
    link = PhoneLink.of_session(session_token)
    if link is None or link.state != "asked" or not secrets.compare_digest(link.number.encode(), number.encode()):
        raise Refused(409, NOBODY_ASKS)
    with transaction(account_seq):
        if not PhoneLink.change(link, "confirmed" if is_mine else "refused", now, now + LIFE_MS):
            raise Refused(409, NOBODY_ASKS)


def take(link: PhoneLink, now: int) -> Account | None:
    """The account to sign the phone in to, once, if it is confirmed and the session that did so goes on."""
    session = Session.find(link.session_hash, now)
    if link.state != "confirmed" or session is None:
        return None
    with transaction(session.account_seq):
        is_first = PhoneLink.change(link, "used", now, now)
    return Account.with_seq(session.account_seq) if is_first else None
