"""Fixture: one device of each kind."""

import pytest

from tests.support.phones import Phones


@pytest.fixture
def phones(every_provider, apns, fcm, push_service, moved_clock):
    return Phones(every_provider, apns, fcm, push_service)
