"""Whose accounts the tests use, and `flask account set`."""

OWNER, OTHER, PRO = "owner@example.org", "other@example.org", "pro@example.org"
PASSWORD = "correct horse battery"


def account_set(service, *options, email=OWNER):
    result = service.flask("account", "set", email, *options)
    assert result.exit_code == 0, result.output
