"""Fixtures: a database's file, and the database opened; PostgreSQL's engine, and an empty database for it."""

import itertools
import os

import pytest

from store import database, sqlite
from store.database import ServerUrl
from tests.support import postgresql as servers

_numbers = itertools.count()


@pytest.fixture
def file(tmp_path):
    """The path of a test's database, which is closed afterwards."""
    yield tmp_path / "data" / "bell.db"
    database.close()


@pytest.fixture
def opened(file):
    """A new database, opened."""
    database.open_database(file)
    return file


@pytest.fixture
def engine():
    servers.server()  # skips the test where there is none
    from store import postgresql

    yield postgresql
    database.close()
    database._engine = sqlite


@pytest.fixture
def url(engine):
    return ServerUrl(servers.new_database(f"test_{os.getpid()}_{next(_numbers)}"), 4)
