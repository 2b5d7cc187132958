"""Mails: notifications to mail addresses, and the service's own: confirmations, tests, invitations, new passwords.

All are sent here, in the background. One is claimed with a lease, as a push is. A link in one has a token that is
derived from the server's secret and a name in the mail's row, so the database alone opens nothing. Must not know
requests or SMTP.
"""

import secrets
from functools import partial

import push
from core import derived_tokens, mail_limits, retries
from core.attempts import LEASE_MS
from core.backoff import GIVEN_UP_AFTER_MS, retry_s
from core.batches import Batches
from models import Device
from process import clock
from process.clock import DAY_MS, MINUTE_MS
from process.faults import log_fault
from providers.base import Answer, Outcome
from providers.email import ADDRESS, Email, Letter
from store import deliveries, notifications
from store import mails as stored
from store.database import after_commit, give_back, transaction
from store.deliveries import Attempt
from store.mails import OwnMail
from wire.notification import TITLE_PREFIX

OWN_AT_ONCE = 50
LINK_LIVES_MS = {"invitation": 7 * DAY_MS, "password": 30 * MINUTE_MS}

batches = Batches("mail", "A batch of mails failed", retries.batches.due)
_token_of = partial(derived_tokens.token_of, "mails")


def can_mail() -> bool:
    """Whether this server sends mails."""
    return bool(push.mailed())


def new_link() -> tuple[str, str]:
    """A name for the row of a mail with a link, and the link's token."""
    name = secrets.token_hex(16)
    return name, _token_of(name)


def add(account_seq: int, kind: str, now: int, device_seq: int | None = None, detail: str = "") -> None:
    """Add one of the service's own mails; call inside `transaction()`."""
    stored.add(account_seq, kind, device_seq, detail, now)
    after_commit(batches.due.set)


# --- sending ------------------------------------------------------------------------------------------------


def send_due(now: int) -> None:
    """Send what is due: the service's own mails first, then notifications."""
    if not can_mail():
        return
    mail_limits.tell_how_many_more(now)
    for account_seq, seq in stored.due(now, OWN_AT_ONCE):
        if account_seq not in batches.busy and batches.room > 0:
            batches.start(account_seq, partial(_send_own, account_seq, seq, now), is_full=True)
    retries.start_due(now, batches, push.mailed(), _admitted, retries.SLOW_DEADLINE_S)


def _admitted(account_seq: int, attempts: list[Attempt]) -> list[Attempt]:
    """The attempts that are made: without those in quiet hours, and those beyond what an account may get."""
    now, left, over = clock.now_ms(), list[Attempt](), set[int]()
    for attempt in retries.awake(account_seq, attempts):
        if attempt.attempts or mail_limits.take(account_seq, attempt.device.seq, now):
            left.append(attempt)
            continue
        over.add(attempt.notification.seq)
        seqs = [attempt.notification.seq]
        deliveries.fail(device=attempt.device.seq, seqs=seqs, error=mail_limits.TOO_MANY, now=now)
    if over:
        notifications.settle_all(over)
    return left


def _send_own(account_seq: int, seq: int, due_by: int) -> None:
    with transaction(account_seq):
        mail = stored.claim(seq, due_by, due_by + LEASE_MS)
    if mail is None:
        return
    give_back()
    answer = _sent(mail)
    with transaction(account_seq):
        _note(mail, answer, clock.now_ms())


def _sent(mail: OwnMail) -> Answer:
    provider = push.provider_of(Email.kind)
    assert isinstance(provider, Email)  # noqa: S101
    if not ADDRESS.fullmatch(mail.address):  # the device was removed, or the account's is none that mails go to
        return Answer(Outcome.REFUSED, "No mail goes to this address.")
    try:
        letter = _letter(mail, provider.server.public_url)
        return provider.mail(mail.address, letter, f"mail-{mail.seq}-{mail.created_at}", retries.SLOW_DEADLINE_S)
    except Exception as error:
        log_fault("A mail could not be sent", error)
        return Answer(Outcome.TRANSIENT, "The mail could not be sent: the server's log has it.")


def _note(mail: OwnMail, answer: Answer, now: int) -> None:
    """Note the answer: of a device on it; call inside `transaction()`."""
    if mail.device_seq is not None and mail.address:
        at = None if mail.kind == "confirm" and answer.error is None else now
        Device.note_outcome(mail.device_seq, mail.address, answer.error, at)
    next_at = now + 1000 * retry_s(mail.attempts)
    is_over = next_at > mail.created_at + LINK_LIVES_MS.get(mail.kind, GIVEN_UP_AFTER_MS)
    if answer.outcome in (Outcome.DELIVERED, Outcome.REFUSED) or is_over:
        stored.remove(mail.seq)
    else:
        stored.put_off(next_at, mail.seq)


# --- letters ------------------------------------------------------------------------------------------------


def _letter(mail: OwnMail, public_url: str) -> Letter:
    origin = mail.origin or public_url
    stop = f"{origin}/e/{mail.token}/stop" if mail.token else None
    if mail.kind == "confirm":
        text = (
            "Somebody wants this address to get notifications of Pocketbell. If that is you, confirm it within 7"
            " days.\nOtherwise do nothing: nothing more is sent."
        )
        return Letter("Confirm this address", text, [("Confirm", f"{origin}/e/{mail.token}")], stop)
    if mail.kind == "test":
        return Letter(f"{TITLE_PREFIX}Test", "This address gets your notifications.", [], stop)
    if mail.kind == "more":
        more = f"{int(mail.detail):,} more"
        text = f"{more} notifications were not mailed: an account gets at most {mail_limits.MAX_MAILS} mails an hour."
        links = [("History", f"{origin}/app/notifications")]
        return Letter(f"{TITLE_PREFIX}{more}", f"{text} History has all of them.", links, stop)
    link = f"{public_url}/app/setup/{_token_of(mail.detail)}"
    if mail.kind == "invitation":
        text = "You are invited to Pocketbell, which rings your phone. The link works once, within 7 days."
        return Letter("An invitation to Pocketbell", text, [("Choose a password", link)])
    text = (
        "Somebody asked for a new password of this account. The link works once, within 30 minutes."
        "\nIf it was not you, do nothing: the password stays as it is."
    )
    return Letter("A new password for Pocketbell", text, [("Choose a password", link)])
