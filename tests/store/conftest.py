"""Fixtures: a database's file, and the database opened."""

import pytest

from store import database


@pytest.fixture
def file(tmp_path):
    """Where a test's database is to be; the service's own is opened again by whatever test comes next."""
    yield tmp_path / "data" / "bell.db"
    database.close()


@pytest.fixture
def opened(file):
    """A new database, opened."""
    database.open_database(file)
    return file
