"""Row types: the SELECT list that a type gives, and reading its rows."""

import sqlite3
from contextlib import closing
from typing import NamedTuple

import pytest

from store.rows import as_column, columns, given_fields, reader
from tests.support.rows import each


class Inner(NamedTuple):
    title: str
    tags: tuple[str, ...] = ()


class Outer(NamedTuple):
    seq: int
    inner: Inner
    status: str | None


def test_columns_are_the_fields_in_order_with_inner_types_unfolded():
    assert columns(Outer, "n") == "n.seq, n.title, n.tags, n.status"


def test_a_field_may_come_from_elsewhere():
    assert columns(Outer, "n", status="coalesce(d.status, 'held')", inner=columns(Inner, "i")) == (
        "n.seq, i.title, i.tags, coalesce(d.status, 'held')"
    )


def test_a_source_of_no_field_is_a_fault():
    with pytest.raises(TypeError, match="Outer has no statuss"):
        columns(Outer, "n", statuss="'held'")


@each("text, tags", [('["a", "b"]', ("a", "b")), (None, ())])
def test_a_row_is_read_by_its_fields(text, tags):
    assert reader(Outer)((7, "Disk", text, None)) == Outer(7, Inner("Disk", tags), None)


class Optional(NamedTuple):
    title: str
    level: int | None = None
    link: str | None = None
    parts: tuple[dict[str, str], ...] = ()


OPTIONAL = ("level", "link", "parts")


@each(
    "row, wanted, given",
    [
        ((None, None, None), OPTIONAL, None),
        ((0, None, None), OPTIONAL, {"level": 0}),
        ((None, 'a"\\é😀\n', None), OPTIONAL, {"link": 'a"\\é😀\n'}),
        (
            (2**63 - 1, "", '[{"a": "\\ud83d\\ude00"}]'),
            OPTIONAL,
            {"level": 2**63 - 1, "link": "", "parts": ({"a": "😀"},)},
        ),
        ((7, None, '["a"]'), ("link",), None),
        ((7, "a", '["b"]'), ("parts", "link"), {"link": "a", "parts": ("b",)}),
    ],
)
def test_the_wanted_fields_with_a_default_are_one_column_which_is_null_where_none_is_set(row, wanted, given):
    source, read = given_fields(Optional, "t", wanted)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (level, link, parts)")
        database.execute("INSERT INTO t VALUES (?, ?, ?)", row)
        ((column,),) = database.execute(f"SELECT {source} FROM t")
    assert (column and read(column)) == given


@each("value, column", [("Disk", "Disk"), (7, 7), (None, None), (("a", "ü"), '["a", "\\u00fc"]'), ((), None)])
def test_a_tuple_is_a_json_array_in_its_column_and_other_values_are_themselves(value, column):
    assert as_column(value) == column
