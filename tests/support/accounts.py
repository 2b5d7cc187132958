"""Whose accounts the tests use, and `flask account set`."""

from core import accounts

OWNER, OTHER, PRO = "owner@example.org", "other@example.org", "pro@example.org"
PASSWORD = "correct horse battery"


def seq_of(email=OWNER):
    """The number of an account."""
    return accounts.find_account(email).seq


def account_set(service, *options, email=OWNER):
    result = service.flask("account", "set", email, *options)
    assert result.exit_code == 0, result.output
