"""Fixtures: the command line beside the service in this process."""

import pytest

from tests.support.accounts import OWNER


@pytest.fixture
def flask(service):
    """The command line beside the service in this process."""
    return service.flask


@pytest.fixture
def owned(service):
    """The command line of a service that has an account."""
    service.account(OWNER)
    return service.flask


@pytest.fixture
def full(owned, moved_clock):
    """The command line of an account that has one of everything."""
    owned("account", "set", OWNER, "--quiet-hours", "22:00-07:00")
    owned("key", "create", OWNER, "Nightly backup")
    owned("alert", "create", OWNER, "Disk", "--urgent-passes-quiet-hours", "--frequency", "1h")
    owned("heartbeat", "create", OWNER, "Mail", "--period", "1h")
    owned("rule", "create", OWNER, "web", "cpu", "> 90", "--for", "5m")
    owned("device", "add", OWNER, "apns", "ab" * 32, "--name", "Phone")
    return owned
