"""Whose accounts the tests use, and what they set."""

from core import accounts
from process import clock

OWNER, OTHER, PRO = "owner@example.org", "other@example.org", "pro@example.org"
PASSWORD = "correct horse battery"


def seq_of(email=OWNER):
    """The number of an account."""
    return accounts.find_account(email).seq


def account_set(*options, email=OWNER):
    """What `flask account set` does with these options, in a fifth of the time."""
    account = accounts.find_account(email)
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option == "--timezone":
            accounts.zone_change(account, value, clock.now_ms())()
        elif option == "--quiet-hours":
            accounts.set_quiet_hours(account, None if value == "off" else value)
        else:
            assert option == "--plan", option
            accounts.change(account, plan=value)
