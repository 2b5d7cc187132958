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
