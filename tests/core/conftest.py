"""Fixtures: nights with quiet hours, a rule on a metric, and rounds of the worker."""

import pytest

from tests.support.accounts import account_set
from tests.support.holding import MORNING, NIGHT, QUIET
from tests.support.rules import Ruled
from tests.support.times import utc


@pytest.fixture
def until(moved_clock):
    """Let time pass until a moment in UTC."""
    return lambda text: moved_clock.advance((utc(text) - moved_clock.ms) / 1000)


@pytest.fixture
def night(owner, until):
    """The owner's quiet hours began an hour ago."""
    account_set("--quiet-hours", QUIET)
    until(NIGHT)


@pytest.fixture
def rule(service, owner):
    """A rule of the owner that the CPU is to have at most 90 %."""
    return Ruled(service, owner, "> 90")


@pytest.fixture
def works(service):
    """Let the worker do two rounds: the second pushes what the first released."""

    def twice():
        service.work()
        service.work()

    return twice


@pytest.fixture
def works_at(until, works):
    """Let time pass until a moment in UTC, and the worker do two rounds."""

    def work(text):
        until(text)
        works()

    return work


@pytest.fixture
def morning(works_at):
    """Let time pass until the quiet hours of the night end, and the worker release what they held."""
    return lambda: works_at(MORNING)


@pytest.fixture
def restarted(service, make_service, moved_clock):
    """Start the service again after so many seconds."""

    def restart(seconds):
        moved_clock.advance(seconds)
        make_service().work()

    return restart
