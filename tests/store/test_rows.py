"""Row types: the SELECT list that a type gives, and reading its rows."""

from typing import NamedTuple

import pytest

from store.rows import as_column, columns, reader
from tests.support.rows import each


class Inner(NamedTuple):
    title: str
    tags: tuple[str, ...] = ()


class Outer(NamedTuple):
    seq: int
    inner: Inner
    status: str | None


def test_the_columns_are_the_fields_in_order_with_those_of_inner_types():
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


@each("value, column", [("Disk", "Disk"), (7, 7), (None, None), (("a", "ü"), '["a", "\\u00fc"]'), ((), None)])
def test_a_tuple_is_a_json_array_in_its_column_and_other_values_are_themselves(value, column):
    assert as_column(value) == column
