"""Fixtures: a database's file, and the database opened."""

import pytest

from store import database


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
