"""What an owner may do to an account, by whatever door: password, one-time links, sessions, time zone, API keys.

The rules (what a good password is, how many keys there may be) stand here once for the REST API, the pages and the
command line. Must not know requests or commands; raises `Refused` with a sentence.
"""

import hmac
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from werkzeug.security import check_password_hash, generate_password_hash

from core import local_time
from models import Account, ApiKey, Device, NotificationDay, OneTimeLink, ServerNote, Session, digest, new_id
from process import cpu_affinity
from process.clock import DAY_MS
from process.turns import Turns
from store.database import AFTER_ALL, WriteFailed, transaction
from store.notifications import Notification
from wire.errors import Refused
from wire.validation import checked_name

PASSWORD_METHOD = "scrypt:131072:8:1"  # noqa: S105 - N = 2^17: 128 MB and about 0.3 s a try
PASSWORD_CHARACTERS = range(12, 1025)
NOBODYS_PASSWORD = f"{PASSWORD_METHOD}$pocketbell$" + "0" * 128
LINK_LIFE_MS = DAY_MS
SESSION_LIFE_MS = 90 * DAY_MS
VISIT_NOTED_EVERY_MS = 3_600_000
THEMES = ("system", "light", "dark")
MONTH_DAYS = 32  # reaches back before the first of any month
MAX_LIVE_KEYS = 1_000
LONGEST_EMAIL = 254
KEY_PREFIX = "sk_test_"
UNSEEN_KEY = "unseen key "  # before its id: the name of the note that holds it
UNSEEN_KEY_LIFE_MS = 600_000
EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f\ud800-\udfff]+@[^@\s\x00-\x1f\x7f\ud800-\udfff]+")

HASH_WAITS_S = 8.0
MAX_WAITING_OF_ONE = 2
WITH_LINK, KNOWN_BROWSER, NEW_BROWSER = "a link", "a known browser", "a new browser"
MAX_SESSIONS = 100

hash_turns = Turns(
    1,  # each takes 128 MB
    {WITH_LINK: 4, KNOWN_BROWSER: 4, NEW_BROWSER: 8},
    HASH_WAITS_S,
    lambda: Refused(429, "Too many passwords are being checked at the moment: try again in a few seconds."),
    MAX_WAITING_OF_ONE,
)


# --- accounts and passwords ---------------------------------------------------------------------------------


def create_account(email: str, plan: str, time_zone: str, now: int) -> Account:
    """A new account without a password; call inside `transaction()`."""
    address = checked_email(email)
    if Account.find(address):
        raise Refused(400, f"There is an account {address} already.", field="email")
    return Account.add(address, plan, local_time.checked_zone(time_zone), now)


def find_account(email: str) -> Account:
    """The account with that address; `Refused` (404) when there is none."""
    account = Account.find(normalized(email))
    if account is None:
        raise Refused(404, "There is no account with that e-mail address.")
    return account


def normalized(email: str) -> str:
    """The form in which addresses are kept and compared."""
    return email.strip().lower()


def checked_email(email: str) -> str:
    """The address trimmed and in lower case."""
    address = normalized(email)
    if not EMAIL.fullmatch(address) or len(address) > LONGEST_EMAIL:
        raise Refused(400, "The e-mail address must look like name@example.org.", field="email")
    return address


def password_hash(password: str, queue: str = WITH_LINK, who: str = "") -> str:
    """The hash that is stored; `Refused` (400) for a password that is too short. Takes about 0.3 s."""
    if len(password) not in PASSWORD_CHARACTERS:
        raise Refused(400, "The password must have 12 characters or more (at most 1,024).", field="password")
    with hashing(queue, who):
        return generate_password_hash(password, PASSWORD_METHOD)


@contextmanager
def hashing(queue: str, who: str) -> Iterator[None]:
    """The turn to compute a hash; `Refused` (429) when too many wait already, or too long.

    Who has a link or a known browser waits in a `queue` of their own: strangers cannot crowd them out. Nor can `who`
    crowd out the others of the same queue.
    """
    with hash_turns.turn(queue, who), cpu_affinity.any_of_them():
        yield


def set_password(account: Account, hashed: str) -> None:
    """Put the hash in place; sessions and links of before are void."""
    with transaction():
        Account.change(account.seq, password_hash=hashed)
        sign_out_everywhere(account.seq)
        OneTimeLink.delete().where(OneTimeLink.account == account.seq).execute()
    account.password_hash = hashed


def password_mark(email: str) -> str:
    """What stands for an account's password, or for an address that has none; nothing can be told from it."""
    email = normalized(email)[:LONGEST_EMAIL]
    account = Account.find(email)
    return digest((account and account.password_hash) or email).hex()


def with_password(email: str, password: str) -> Account | None:
    """The account, if address and password belong together. An unknown address takes as long as a wrong password.

    Call inside `hashing()`.
    """
    account = Account.find(normalized(email))
    expected = (account and account.password_hash) or NOBODYS_PASSWORD
    return account if check_password_hash(expected, password) else None


def set_plan(account: Account, plan: str) -> None:
    """Another plan, from now on."""
    with transaction():
        Account.change(account.seq, plan=plan)


def set_quiet_hours(account: Account, window: str | None) -> None:
    """The daily window, HH:MM-HH:MM, in which alerts are held; None: there is none."""
    checked = None if window is None else local_time.checked_quiet_hours(window)
    with transaction():
        Account.change(account.seq, quiet_hours=checked)


def set_theme(account: Account, theme: str) -> None:
    """How the pages look: like the system, light or dark."""
    if theme not in THEMES:
        raise Refused(400, f"The theme must be one of {', '.join(THEMES)}.", field="theme")
    with transaction():
        Account.change(account.seq, theme=theme)


def hide_first_steps(account: Account) -> None:
    """The owner needs the list of first steps no more."""
    with transaction():
        Account.change(account.seq, hides_first_steps=1)


def note_devices(account: Account, device_seq: int) -> None:
    """The owner knows of all devices up to that one."""
    with transaction():
        Account.change(account.seq, known_device_seq=max(account.known_device_seq, device_seq))


class ZoneChange(NamedTuple):
    """Another time zone, and what was counted by its calendar: quarters of an hour up to a notification's seq."""

    zone: str
    since: int
    newest: int
    counts: list[tuple[int, int]]


def zone_change(account: Account, time_zone: str, history_days: int, now: int) -> ZoneChange:
    """Count this month again by another zone's calendar; not in a transaction, since a long history takes a while.

    Days that the history of `history_days` no longer holds whole keep their count.
    """
    zone = local_time.checked_zone(time_zone)
    since = local_time.day_start(now - min(history_days - 1, MONTH_DAYS) * DAY_MS, zone)
    with cpu_affinity.any_of_them():
        newest = Notification.newest_seq(account.seq)
        counts = Notification.count_by_quarter_hour(account.seq, since, 0, newest)
    return ZoneChange(zone, since, newest, counts)


def set_time_zone(account: Account, change: ZoneChange) -> None:
    """Change the zone, with what came since its month was counted."""
    zone, since, newest, counts = change
    with transaction():
        Account.change(account.seq, time_zone=zone)
        newer = Notification.count_by_quarter_hour(account.seq, since, newest, AFTER_ALL)
        days = local_time.count_by_day(counts + newer, zone)
        NotificationDay.replace_since(account.seq, local_time.local_day(since, zone), days)


# --- one-time links -----------------------------------------------------------------------------------------


def make_link(account: Account | None, now: int) -> str:
    """The path of a page that sets the account's password, or makes the first account. Good once, for 24 hours."""
    token = secrets.token_urlsafe(32)
    with transaction():
        OneTimeLink.put(digest(token), account.seq if account else None, now + LINK_LIFE_MS)
    return f"/app/setup/{token}"


def make_setup_link(now: int, wanted: bool = True) -> str | None:
    """Void the set-up link of an earlier start; while there is no account, and if `wanted`, the path of a new one."""
    with transaction():
        OneTimeLink.delete().where(OneTimeLink.account.is_null()).execute()
    return make_link(None, now) if wanted and not any_account() else None


def any_account() -> bool:
    """Whether the service has an owner."""
    return Account.exists()


def find_link(token: str, now: int) -> OneTimeLink:
    """The link; `Refused` (404) when it is unknown, used, too old or void."""
    link = OneTimeLink.find(digest(token), now)
    if link is None or (link.account is None and Account.exists()):
        raise Refused(404, "This link is not valid any more: it was used, is older than 24 hours, or is void.")
    return link


def is_unused(account: Account) -> bool:
    """Whether it was made by command, and nobody has signed in or sent anything yet: its time zone is a guess."""
    return not account.password_hash and not account.notification_count and account.time_zone == "UTC"


def use_link(token: str, form: dict[str, str], now: int) -> Account:
    """Make the owner's account, or set the password, as the link allows; the link is spent."""
    find_link(token, now)
    hashed = password_hash(form["password"], WITH_LINK, token)  # slow, so before the transaction
    with transaction():
        link = find_link(token, now)
        account = link.account or create_account(form["email"], "starter", form["time_zone"], now)
        if form["time_zone"] and is_unused(account):
            Account.change(account.seq, time_zone=local_time.checked_zone(form["time_zone"]))
        set_password(account, hashed)
        link.delete_instance()
    return account


# --- sessions -----------------------------------------------------------------------------------------------


def start_session(account: Account, name: str, now: int) -> str:
    """The token of a new session of a browser called `name`, which ends 90 days after its last visit.

    Of 100 others the one that was seen longest ago ends.
    `Refused` (409) if the account has another password by now than the one that opened it: to check it takes long.
    """
    token = secrets.token_urlsafe(32)
    with transaction():
        if Account.get_by_id(account.seq).password_hash != account.password_hash:
            raise Refused(409, "The password was changed meanwhile: sign in with the new one.")
        Session.delete().where(Session.expires_at <= now).execute()
        Session.end_oldest(account.seq, MAX_SESSIONS - 1)
        Session.create(
            token_hash=digest(token),
            account=account.seq,
            created_at=now,
            expires_at=now + SESSION_LIFE_MS,
            name=name,
            last_seen_at=now,
        )
    return token


def session_account(token: str, now: int) -> Account | None:
    """Who is signed in with that token; a visit lets the session go on."""
    session = Session.find(digest(token), now)
    if session is None:
        return None
    if abs(now - session.last_seen_at) >= VISIT_NOTED_EVERY_MS:
        with suppress(WriteFailed), transaction():  # one may look around on a full disk
            Session.note_visit(session.token_hash, now + SESSION_LIFE_MS, now)
    return session.account


def end_session(token: str) -> None:
    """Sign out."""
    with transaction():
        Session.delete().where(Session.token_hash == digest(token)).execute()


def sign_out_everywhere(account_seq: int) -> None:
    """End all sessions; what the account's browsers have besides is void until somebody signs in there."""
    with transaction():
        Session.end_all(account_seq)
        Device.void_resync_tokens(account_seq)


# --- API keys (SPEC 4.5–4.7, 5) -----------------------------------------------------------------------------


def create_key(account_seq: int, name: str, now: int) -> tuple[ApiKey, str]:
    """A new key and its full text, which is kept nowhere."""
    name = checked_name(name)
    full_key = KEY_PREFIX + secrets.token_hex(24)
    values: dict[str, Any] = {
        "id": new_id(now),
        "account": account_seq,
        "name": name,
        "preview": full_key[:16],
        "key_hash": digest(full_key),
        "created_at": now,
    }
    with transaction():
        if ApiKey.count_live(account_seq) >= MAX_LIVE_KEYS:
            raise Refused(400, f"There are {MAX_LIVE_KEYS} live API keys already: revoke one first.")
        return ApiKey.create(**values), full_key


def create_key_to_show(account_seq: int, name: str, session_token: str, now: int) -> ApiKey:
    """A new key whose full text `take_full_key` gives once to the browser that has this session.

    It is kept masked with what only that browser's cookie can tell: the database alone says nothing of it.
    """
    with transaction():
        key, full_key = create_key(account_seq, name, now)
        ServerNote.forget(UNSEEN_KEY, f"{UNSEEN_KEY}{now - UNSEEN_KEY_LIFE_MS:012x}")
        ServerNote.put(UNSEEN_KEY + key.id, _masked(full_key.removeprefix(KEY_PREFIX), session_token, key.id))
    return key


def take_full_key(key: ApiKey, session_token: str) -> str | None:
    """The full text of a key that nobody has seen yet, if this session made it; nobody else gets it afterwards."""
    note = UNSEEN_KEY + key.id
    with transaction():
        kept = ServerNote.find(note)
        full_key = KEY_PREFIX + _masked(kept, session_token, key.id) if kept else ""
        if digest(full_key) != key.key_hash:
            return None
        ServerNote.forget(note, note)
    return full_key


def _masked(secret: str, session_token: str, key_id: str) -> str:
    """The 24 bytes of a key (hexadecimal) with those of a pad that is used for this one key, and back again."""
    pad = hmac.digest(session_token.encode(), key_id.encode(), "sha256")
    return bytes(a ^ b for a, b in zip(bytes.fromhex(secret), pad, strict=False)).hex()


def revoke_key(account_seq: int, key_id: str, now: int) -> None:
    """Revoke for good; `Refused` (404) when the account has no such key."""
    with transaction():
        if not ApiKey.revoke(account_seq, key_id, now):
            raise Refused(404)
