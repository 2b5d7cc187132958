"""Accounts among people: invitations, administrators, disabling and enabling.

An administrator who can sign in always stays: `Refused` (409) for what would leave none. `by` is the account (its
seq) of the administrator who asks, or None for the server's shell. Must not know requests or commands.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from core import accounts, heartbeat_checks, mail_limits, mails, shown_once
from models import Account, sha256_of
from providers.email import Email
from store import people
from store.database import EVERYBODY, transaction
from store.people import Person
from store.sessions import OneTimeLink
from wire.errors import Refused, existing

LAST = "This is the last administrator who can sign in. Make another account an administrator first."


@contextmanager
def changing(account_seq: int, by: int | None) -> Iterator[Account]:
    """A transaction that changes this account's place among the others; `Refused` (404) if it is gone.

    All such changes take turns, so that two administrators cannot remove each other at the same time.
    """
    with transaction(EVERYBODY, account_seq):
        check_administrator(by)
        yield find(account_seq)


def check_administrator(seq: int | None) -> None:
    """`Refused` (404) unless this account (None: the server's shell) is an enabled administrator's now."""
    account = None if seq is None else Account.with_seq(seq)
    if seq is not None and (account is None or not account.is_administrator or account.disabled_at is not None):
        raise Refused(404)


def check_stays(account: Account, is_deleted: bool = False) -> None:
    """`Refused` (409) for the last administrator; call inside `changing()`, before the account stops being one.

    An administrator whose one-time link was never used does not count, so may go, but the only one not by half.
    """
    if not account.is_administrator or account.disabled_at is not None:
        return
    others = people.other_administrators(account.seq)
    may_go = not account.password_hash and (others or is_deleted)
    if not any(others) and not may_go:
        raise Refused(409, LAST)


def state(account: Account | Person) -> str:
    """Whether an account is `enabled` or `disabled`, or whether it was `invited` and has not come yet."""
    if account.disabled_at is not None:
        return "disabled"
    return "enabled" if account.invited_until is None else "invited"


def invite(
    email: str, plan: str, is_administrator: bool, now: int, by: int | None = None, by_mail: bool = False
) -> tuple[Account, str]:
    """The account of somebody who is invited, and the path of the one-time link with which they set their password.

    With `by_mail`, it is mailed, too. A second invitation of the same address takes the place of the first. `Refused`
    (400) if it has an account, or this server sends no e-mail.
    """
    found = Account.find(accounts.checked_email(email))
    if by_mail and not mails.can_mail():
        raise Refused(400, Email.not_configured())
    name, token = mails.new_link() if by_mail else ("", secrets.token_urlsafe(32))
    until = now + mails.LINK_LIVES_MS["invitation"]
    with transaction(EVERYBODY, *([found.seq] if found else [])):
        check_administrator(by)
        if found is None or Account.with_seq(found.seq) is None:
            found = accounts.create_account(email, plan, "UTC", now)
        elif state(find(found.seq)) != "invited" or not accounts.is_unused(found):
            raise Refused(400, f"There is already an account for {found.email}.", field="email")
        role = int(is_administrator or not people.other_administrators(found.seq))
        Account.change(found.seq, plan=plan, is_administrator=role, invited_until=until)
        OneTimeLink.void(found.seq)
        OneTimeLink.put(sha256_of(token), found.seq, until)
        if by_mail:
            mail_limits.check(found.seq, now)
            mails.add(found.seq, "invitation", now, detail=name)
        return found, f"/app/setup/{token}"


def take_link(id_: str, session_token: str, now: int) -> tuple[str, str] | None:
    """The address that was invited and the path of its link, once, for the session that asked for it."""
    path = shown_once.take(id_, session_token)
    link = OneTimeLink.find(sha256_of(path.rpartition("/")[2]), now) if path else None
    return (link.account.email, path) if path and link and link.account else None


def check_invited(account: Account) -> None:
    """`Refused` (404) unless it is the account of an invitation that nobody has used."""
    if state(account) != "invited" or not accounts.is_unused(account):
        raise Refused(404, "This invitation was used, or withdrawn already.")


def find(account_seq: int) -> Account:
    """The account; `Refused` (404) if there is none with that number."""
    return existing(Account.with_seq(account_seq), "There is no such account any more.")


def set_administrator(account_seq: int, is_administrator: bool, by: int | None = None) -> None:
    """Make an account an administrator, or an ordinary one again."""
    with changing(account_seq, by) as account:
        if not is_administrator:
            check_stays(account)
        Account.change(account_seq, is_administrator=int(is_administrator))


def disable(account_seq: int, now: int, by: int | None = None) -> None:
    """Disable an account: its sessions end, its keys, addresses and devices work no more, and nothing is deleted."""
    with changing(account_seq, by) as account:
        check_stays(account)
        if account.disabled_at is None:
            accounts.sign_out_everywhere(account_seq)
            OneTimeLink.void(account_seq)
            Account.change(account_seq, disabled_at=now)


def enable(account_seq: int, now: int, by: int | None = None) -> None:
    """Enable an account: its keys, addresses and devices work again, and its sessions do not.

    What came too late while it was disabled is not held against its jobs and metrics.
    """
    with changing(account_seq, by) as account:
        if account.disabled_at is not None:
            Account.change(account_seq, disabled_at=None)
            heartbeat_checks.resume(account_seq, now - account.disabled_at, now)
