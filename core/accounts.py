"""The rules of an account: password, links, sessions, time zone, API keys. Must not know requests or commands."""

import re
import secrets
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from werkzeug.security import check_password_hash, generate_password_hash

from core import local_time, week_windows
from core.plans import PLANS
from core.turns import Turns
from models import Account, ApiKey, Device, sha256_of
from process import cpu_affinity
from process.clock import DAY_MS
from store import engine, heartbeats, notification_days, notifications, people
from store.database import AFTER_ALL, EVERYBODY, WriteFailed, is_shared, transaction
from store.sessions import OneTimeLink, Session
from wire.errors import Refused, existing
from wire.validation import checked_name

PASSWORD_METHOD = "scrypt:131072:8:1"  # noqa: S105 - N = 2^17: 128 MB and about 0.3 s a try
PASSWORD_CHARACTERS = range(12, 1025)
NOBODYS_PASSWORD = f"{PASSWORD_METHOD}$pocketbell$" + "0" * 128
LINK_LIFE_MS = DAY_MS
SESSION_LIFE_MS = 90 * DAY_MS
VISIT_NOTED_EVERY_MS = 3_600_000
MONTH_DAYS = 32  # reaches back before the first of any month
ZONES_APART_MS = 2 * DAY_MS  # a day may begin 26 hours earlier in another zone
MAX_LIVE_KEYS = 1_000
MAX_EMAIL_CHARACTERS = 254
KEY_PREFIX = "sk_test_"
ALPHABET = string.ascii_letters + string.digits
PING_KEY_CHARACTERS = 22  # 131 bits
EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f\ud800-\udfff]+@[^@\s\x00-\x1f\x7f\ud800-\udfff]+")

HASH_WAITS_S = 8.0
MAX_WAITING_OF_ONE = 2
WITH_LINK, KNOWN_BROWSER, NEW_BROWSER = "a link", "a known browser", "a new browser"
MAX_SESSIONS = 100

hash_turns = Turns(
    1,  # each takes 128 MB
    {WITH_LINK: 4, KNOWN_BROWSER: 4, NEW_BROWSER: 8},
    HASH_WAITS_S,
    lambda: Refused(429, "Too many people are signing in at the moment. Try again in a few seconds."),
    MAX_WAITING_OF_ONE,
)
zone_turns = Turns(
    1,  # each reads all that came in the last month
    {"all": 4},
    HASH_WAITS_S,
    lambda: Refused(429, "Time zones are being changed at the moment. Try again in a few seconds."),
    1,
)


# --- accounts and passwords ---------------------------------------------------------------------------------


def create_account(email: str, plan: str, time_zone: str, now: int, hashed: str | None = None) -> Account:
    """A new account, with a password if `hashed` is its hash; call inside `transaction()` of `EVERYBODY`.

    It is an administrator if there is none. All set-up links are void then, also after the account has been deleted.
    """
    address = checked_email(email)
    if Account.find(address):
        raise Refused(400, f"There is already an account for {address}.", field="email")
    OneTimeLink.void(None)
    zone = local_time.checked_zone(time_zone)
    role = int(not people.other_administrators(0))  # no account has the seq 0
    values = {"plan": plan, "time_zone": zone, "password_hash": hashed, "ping_key": _new_ping_key()}
    return Account.add(address, now, is_administrator=role, **values)


def _new_ping_key() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(PING_KEY_CHARACTERS))


def change(account: Account, **columns: str | int | None) -> None:
    """Set these columns of the account, whose values are right."""
    with transaction(account.seq):
        Account.change(account.seq, **columns)


def change_ping_key(account: Account) -> str:
    """Give the account a new ping key and return it; the old one stops working."""
    key = _new_ping_key()
    change(account, ping_key=key)
    return key


def find_account(email: str) -> Account:
    """The account with that address; `Refused` (404) when there is none."""
    return existing(Account.find(normalized(email)), "There is no account with that e-mail address.")


def check_enabled(account: Account) -> None:
    """`Refused` (409) for a disabled account, to the server's shell: all others find no such account."""
    if account.disabled_at is not None:
        raise Refused(409, f"{account.email} is disabled. Enable the account first.")


def normalized(email: str) -> str:
    """The form in which e-mail addresses are kept and compared."""
    return email.strip().lower()


def checked_email(email: str) -> str:
    """The address, trimmed and in lower case; `Refused` (400) when it cannot be one."""
    address = normalized(email)
    if not EMAIL.fullmatch(address) or len(address) > MAX_EMAIL_CHARACTERS:
        raise Refused(400, "The e-mail address must look like name@example.org.", field="email")
    return address


def password_hash(password: str, queue: str = WITH_LINK, who: str = "") -> str:
    """The hash to store; `Refused` (400) for a password that is too short or too long. Takes about 0.3 s."""
    if len(password) not in PASSWORD_CHARACTERS:
        raise Refused(400, "The password must have at least 12 characters and at most 1,024.", field="password")
    with hashing(queue, who):
        return generate_password_hash(password, PASSWORD_METHOD)


@contextmanager
def hashing(queue: str, who: str) -> Iterator[None]:
    """Wait for the turn to compute a hash; `Refused` (429) when too many wait already, or for too long.

    Owners with a link or a known browser wait in a `queue` of their own, so that strangers cannot crowd them out. Nor
    can `who` crowd out the others in the same queue.
    """
    engine.make_way()
    with hash_turns.turn(queue, who), cpu_affinity.any_of_them():
        yield


def set_password(account: Account, hashed: str) -> None:
    """Replace the password's hash, and void all sessions and links."""
    with transaction(account.seq):
        Account.change(account.seq, password_hash=hashed, invited_until=None)
        sign_out_everywhere(account.seq)
        OneTimeLink.void(account.seq)
    account.password_hash = hashed


def password_mark(email: str) -> str:
    """A value that stands for an account's password, or for an address without one, and reveals neither."""
    email = normalized(email)[:MAX_EMAIL_CHARACTERS]
    account = Account.find(email)
    return sha256_of((account and account.password_hash) or email).hex()


def with_password(email: str, password: str) -> Account | None:
    """The account, if the password is its own; takes as long for an unknown address. Call inside `hashing()`."""
    account = Account.enabled(normalized(email))
    expected = (account and account.password_hash) or NOBODYS_PASSWORD
    return account if check_password_hash(expected, password) else None


def checked_plan(plan: str) -> str:
    """The plan that a form names: the first one if it names none."""
    if plan and plan not in PLANS:
        raise Refused(400, "Choose one of these limits.", field="plan")
    return plan or next(iter(PLANS))


def set_quiet_hours(account: Account, hours: str | None) -> None:
    """Set the windows of the week in which alerts are held (core/week_windows.py); None switches them off."""
    if hours is None:
        change(account, quiet_hours=None, last_quiet_hours=account.quiet_hours or account.last_quiet_hours)
    else:
        change(account, quiet_hours=week_windows.checked(hours))


def zone_change(account: Account, time_zone: str, now: int) -> Callable[[], None]:
    """Prepare a change of the time zone; returns the function that makes it, which may be called in a transaction.

    It also sets the deadlines of cron heartbeats, and counts the last month by the days of the new zone: that is
    prepared here, since counting a long history takes a while. What was deleted stays counted on its date.
    """
    zone = local_time.checked_zone(time_zone)
    first_day = local_time.local_day(now - MONTH_DAYS * DAY_MS, zone)
    begin = local_time.day_bounds(first_day, zone)[0] - ZONES_APART_MS
    engine.make_way()
    with zone_turns.turn("all", str(account.seq)), cpu_affinity.any_of_them():
        newest = notifications.newest_seq(account.seq)
        counts = notification_days.count_by_quarter_hour(account.seq, begin, 0, newest)
        days_in = {name: local_time.count_by_day(counts, name) for name in {zone, account.time_zone}}

    def make() -> None:
        with transaction(account.seq):
            counted_in = (Account.with_seq(account.seq) or account).time_zone  # another change may have been first
            Account.change(account.seq, time_zone=zone)
            for beat in heartbeats.of_account(account.seq):
                if beat.state == "up" and beat.cron is not None and (beat.deadline_at or 0) > now:
                    heartbeats.change_state(beat, "up", local_time.next_run(beat.cron, zone, now), now)
            later = notification_days.count_by_quarter_hour(account.seq, begin, newest, AFTER_ALL)
            before = days_in.get(counted_in) or local_time.count_by_day(counts, counted_in)
            counted = Counter(notification_days.since(account.seq, first_day))
            deleted = counted - before - local_time.count_by_day(later, counted_in)
            days = days_in[zone] + local_time.count_by_day(later, zone) + deleted
            notification_days.replace_since(account.seq, first_day, days)

    return make


# --- one-time links -----------------------------------------------------------------------------------------


def make_link(account: Account | None, now: int) -> str:
    """The path of a page that sets the account's password, or makes the first account; good once, for 24 hours.

    Another link that sets the account's password is void. `Refused` (409) while the account is disabled.
    """
    if account:
        check_enabled(account)
    token = secrets.token_urlsafe(32)
    with transaction(account.seq if account else EVERYBODY):
        if account:
            OneTimeLink.void(account.seq)
        OneTimeLink.put(sha256_of(token), account.seq if account else None, now + LINK_LIFE_MS)
    return f"/app/setup/{token}"


def make_setup_link(now: int, wanted: bool = True) -> str | None:
    """The path of a new set-up link, if one is `wanted` and there is no account.

    The link of an earlier start is void, unless it may be that of another process which serves the same database.
    """
    if not is_shared():
        with transaction(EVERYBODY):
            OneTimeLink.void(None)
    return make_link(None, now) if wanted and not Account.exists() else None


def make_first_link(email: str, now: int) -> str | None:
    """The path of a new link that sets the password of the first account, which is made with this address.

    None once it was used, or if the first account was made otherwise.
    """
    address = checked_email(email)
    with transaction(EVERYBODY):
        if not Account.exists():
            create_account(address, next(iter(PLANS)), "UTC", now)
    account = Account.find(address)
    return make_link(account, now) if account and is_unused(account) else None


def find_link(token: str, now: int) -> OneTimeLink:
    """The link; `Refused` (404) when it is unknown, used, too old or void."""
    link = OneTimeLink.find(sha256_of(token), now)
    if link is None or (link.account is None and Account.exists()):
        raise Refused(404, "This link no longer works: it was used, has expired, or was replaced by a newer one.")
    return link


def is_unused(account: Account) -> bool:
    """Whether a command made the account and it was never used: its time zone is only a default."""
    return not account.password_hash and account.time_zone == "UTC" and not notification_days.has_any(account.seq)


def use_link(token: str, form: dict[str, str], now: int) -> Account:
    """Make the owner's account or set the password, as the link allows, and spend the link."""
    account = find_link(token, now).account
    hashed = password_hash(form["password"], WITH_LINK, token)  # slow, so before the transaction
    with transaction(account.seq if account else EVERYBODY):
        account = find_link(token, now).account
        if account is None:
            return create_account(form["email"], checked_plan(form.get("plan", "")), form["time_zone"], now, hashed)
        if form["time_zone"] and is_unused(account):
            Account.change(account.seq, time_zone=local_time.checked_zone(form["time_zone"]))
        set_password(account, hashed)
    return account


# --- sessions -----------------------------------------------------------------------------------------------


def start_session(account: Account, name: str, now: int) -> str:
    """The token of a new session of a browser called `name`, which expires 90 days after its last visit.

    Beyond 100 sessions, the least recently seen end. `Refused` (409) if the password was changed, or the account
    disabled, while the hash of the password was being checked, which takes a while.
    """
    token = secrets.token_urlsafe(32)
    with transaction(account.seq):
        known = Account.with_seq(account.seq)
        if known is None or known.password_hash != account.password_hash:
            raise Refused(409, "The password has just been changed. Sign in with the new one.")
        if known.disabled_at is not None:
            raise Refused(409, "This account has just been disabled.")
        Session.end_expired(account.seq, now)
        Session.end_oldest(account.seq, MAX_SESSIONS - 1)
        Session.add(sha256_of(token), account.seq, name, now + SESSION_LIFE_MS, now)
        Account.change(account.seq, last_seen_at=now)
    return token


def session_account(token: str, now: int) -> Account | None:
    """The account that is signed in with that token; the visit extends the session."""
    session = Session.find(sha256_of(token), now)
    if session is None:
        return None
    if abs(now - session.last_seen_at) >= VISIT_NOTED_EVERY_MS:
        with suppress(WriteFailed), transaction(session.account_seq):  # on a full disk, reading goes on
            Session.note_visit(session.token_hash, now + SESSION_LIFE_MS, now)
            Account.change(session.account_seq, last_seen_at=now)
    return Account.with_seq(session.account_seq)


def end_session(token: str) -> None:
    """Sign out."""
    if session := Session.find(sha256_of(token)):
        with transaction(session.account_seq):
            Session.end(session.token_hash)


def sign_out_browser(account_seq: int, session_id: str, now: int) -> Session:
    """End one of the account's sessions and return it; `Refused` (404) if the account has none with this id."""
    with transaction(account_seq):
        found = next((one for one in Session.of_account(account_seq, now) if one.id == session_id), None)
        session = existing(found, "This browser is already signed out.")
        Session.end(session.token_hash)
    return session


def sign_out_everywhere(account_seq: int) -> None:
    """End all sessions, and void the tokens of service workers until the next sign-in in their browsers."""
    with transaction(account_seq):
        Session.end_all(account_seq)
        Device.void_resync_tokens(account_seq)


# --- API keys -----------------------------------------------------------------------------------------------


def create_key(account_seq: int, name: str, now: int, limits: Mapping[str, Any] | None = None) -> tuple[ApiKey, str]:
    """A new key and its full text; only its hash is kept.

    Without `limits` (those of `core/api_keys.py`) it may do everything, for ever.
    """
    name = checked_name(name)
    full_key = KEY_PREFIX + secrets.token_hex(24)
    with transaction(account_seq):
        if ApiKey.count_live(account_seq) >= MAX_LIVE_KEYS:
            raise Refused(400, f"You already have {MAX_LIVE_KEYS:,} API keys. Revoke one first.")
        return ApiKey.add(account_seq, name, full_key, now, **(limits or {})), full_key


def revoke_key(account_seq: int, key_id: str, now: int) -> None:
    """Revoke a key for good; `Refused` (404) when the account has no such key."""
    with transaction(account_seq):
        if not ApiKey.revoke(account_seq, key_id, now):
            raise Refused(404)
