"""A database of an earlier version on PostgreSQL becomes like a new one, and loses no row."""

import os

import pytest

from store import database, idempotency_keys
from store.database import ServerUrl, run
from store.sqlite import statements
from tests.support import postgresql as servers
from tests.support.server import ROOT

if not servers.IS_WANTED:
    pytest.skip("it is about PostgreSQL", allow_module_level=True)

from store.dialect import translated
from store.postgresql_connection import connected

SHAPE = (
    "SELECT table_name, column_name, data_type, is_nullable, collation_name FROM information_schema.columns"
    " WHERE table_schema = 'public' ORDER BY table_name, column_name",
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname",
    "SELECT conrelid::regclass::text AS name, pg_get_constraintdef(oid) AS said FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace ORDER BY name, said",
)
ROWS = """
INSERT INTO account (seq, email, plan, time_zone, created_at) VALUES (1, 'old@example.org', 'pro', 'UTC', 5);
INSERT INTO notification (seq, id, account_seq, title, body, status, created_at)
 VALUES (7, 'first', 1, 't', 'b', 'delivered', 9);
INSERT INTO idempotency_key (account_seq, key, request_hash, notification_seq, answered_status, created_at)
 VALUES (1, 'once', '\\x01', 7, 'pending', 9);
"""


@pytest.fixture
def url():
    yield ServerUrl(servers.new_database(f"upgraded_{os.getpid()}"), 2)
    database.close()


def test_a_database_of_schema_16_becomes_like_a_new_one_and_keeps_its_idempotency_keys(url):
    database.open_database(url)
    new = [run(statement).fetchall() for statement in SHAPE]
    database.close()
    with connected(url) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        for statement in statements((ROOT / "tests/store/schemas/0016.sql").read_text() + ROWS):
            connection.execute(translated(statement))
        connection.execute("CREATE TABLE pocketbell_schema AS SELECT 16::bigint AS version")
        connection.execute("ALTER TABLE pocketbell_schema ALTER version SET NOT NULL")
    database.open_database(url)
    assert [run(statement).fetchall() for statement in SHAPE] == new
    assert run("SELECT day, notification_count, stored_bytes FROM notification_day").fetchall() == [("", 0, 2)]
    assert idempotency_keys.find(1, "once", 0) == (b"\x01", "first", True, "pending", 9)
