"""One truth for the schema: models and schema.sql say the same."""

import importlib
import re

import peewee

import models
from store import database
from tests.support.rows import each
from tests.support.server import ROOT
from tests.support.tables import look
from wire.notification import STATUSES, Content

TYPES = {
    peewee.AutoField: "INTEGER",
    peewee.IntegerField: "INTEGER",
    peewee.FloatField: "REAL",
    peewee.TextField: "TEXT",
    peewee.BlobField: "BLOB",
}


def modelled():
    """Every model that has a table, found through its base class; PostgreSQL's files have none."""
    for file in (ROOT / "store").glob("*.py"):
        if not file.stem.startswith("postgresql"):
            importlib.import_module(f"store.{file.stem}")
    return sorted(models.Model.__subclasses__(), key=lambda model: model._meta.table_name)


every_model = each("model", modelled())


def type_of(field):
    while isinstance(field, peewee.ForeignKeyField):
        field = field.rel_field
    return next(name for kind, name in TYPES.items() if isinstance(field, kind))


@every_model
def test_a_models_columns_and_primary_key_are_the_tables_and_null_where_those_are(opened, model):
    info = look(opened, f"PRAGMA table_info({model._meta.table_name})")
    columns = {name: (kind, not not_null and not key, bool(key)) for _, name, kind, not_null, _, key in info}
    keys = {field.name for field in model._meta.get_primary_keys()}
    fields = model._meta.sorted_fields
    assert {field.column_name: (type_of(field), field.null, field.name in keys) for field in fields} == columns


def test_the_statuses_in_the_schema_are_those_of_a_notification(opened):
    (table,) = look(opened, "SELECT sql FROM sqlite_schema WHERE name = 'notification'")
    assert tuple(re.findall(r"status = '(\w+)'", table[0].partition("INDEX")[0])) == STATUSES


def test_a_notifications_content_is_in_columns_of_the_same_names(opened):
    columns = [row[1] for row in look(opened, "PRAGMA table_info(notification)")]
    assert set(Content._fields) <= set(columns)


@every_model
def test_a_models_foreign_keys_are_the_tables(opened, model):
    made = {(row[3], row[2]) for row in look(opened, f"PRAGMA foreign_key_list({model._meta.table_name})")}
    fields = [field for field in model._meta.sorted_fields if isinstance(field, peewee.ForeignKeyField)]
    told = {(field.column_name, field.rel_model._meta.table_name) for field in fields}
    assert told <= made


def test_every_table_is_strict(opened):
    rows = look(opened, "PRAGMA table_list")
    loose = [name for _, name, kind, _, _, strict in rows if kind == "table" and not strict]
    assert [name for name in loose if not name.startswith("sqlite_")] == []


def test_every_reference_has_an_index_that_begins_with_it(opened):
    """Otherwise deleting the row that is referred to scans the whole table."""
    missing = []
    for (table,) in look(opened, "SELECT name FROM sqlite_schema WHERE type = 'table'"):
        indexes = [row[1] for row in look(opened, f"PRAGMA index_list({table})")]
        first = {look(opened, f"PRAGMA index_info({index})")[0][2] for index in indexes}
        first |= {row[1] for row in look(opened, f"PRAGMA table_info({table})") if row[5] == 1}  # the primary key
        referring = {row[3] for row in look(opened, f"PRAGMA foreign_key_list({table})") if row[6] == "CASCADE"}
        missing += [f"{table}.{column}" for column in referring - first]
    assert missing == []


def test_the_schema_file_names_every_migration():
    steps = sorted(path.name[:4] for path in (ROOT / "migrations").glob("*.sql"))
    assert steps == [f"{step:04}" for step in range(2, database.SCHEMA_VERSION + 1)]
