"""Row types: a NamedTuple names the columns of a query once, for its SELECT list and for reading its rows.

A column that is added to a row type is selected and read wherever that type is. Must not know the tables.
"""

import json
import os
from collections.abc import Callable, Container, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast, get_origin, get_type_hints

from store.database import insert, run, run_later
from store.engine import inserting
from wire.json_text import own_json

Row = TypeVar("Row")


class Query(Generic[Row]):
    """A constant statement that returns rows, which are read as one row type.

    That may be a plain tuple, or `int` or `str` for the first column alone. The methods take the statement's values,
    in their order or by their names.
    """

    def __init__(self, row_type: type[Row], statement: str) -> None:
        self.statement = statement
        self._read = reader(row_type)

    def all(self, *values: object, **named: object) -> list[Row]:
        """All rows."""
        return list(map(self._read, run(self.statement, named or values)))

    def first(self, *values: object, **named: object) -> Row | None:
        """The first row, or None."""
        row = run(self.statement, named or values).fetchone()
        return self._read(row) if row else None

    def one(self, *values: object, **named: object) -> Row:
        """The only row, which exists."""
        return self._read(run(self.statement, named or values).fetchone())


class Change:
    """A constant statement that changes rows."""

    def __init__(self, statement: str) -> None:
        self.statement = statement

    def __call__(self, *values: object, **named: object) -> int:
        """Run it with these values, in their order or by their names; returns how many rows it changed."""
        return run(self.statement, named or values).rowcount

    def later(self, *values: object, **named: object) -> None:
        """Run it where nobody needs to know that: see `run_later`."""
        run_later(self.statement, named or values)


def overdue(table: str, column: str, seq: str = "seq", only: str = "") -> Callable[..., list[tuple[int, int]]]:
    """A query for some rows whose time has come, the longest overdue first: of each its account's seq, and its own.

    `column` has the time, and `seq` the row's number; `only` is a further condition. It takes the time and a limit.
    """
    wanted = f"{column} <= ?{only and f' AND {only}'}"
    order = f"ORDER BY {column} LIMIT ?"
    return Query(tuple[int, int], f"SELECT account_seq, {seq} FROM {table} WHERE {wanted} {order}").all


def counting(table: str, only: str = "") -> Callable[..., int]:
    """A query for the number of an account's rows in a table; `only` is a further condition."""
    return Query(int, f"SELECT count(*) FROM {table} WHERE account_seq = ?{only and f' AND {only}'}").one


def add_row(table: str, row: dict[str, Any]) -> int:
    """Add a row with these columns to a table that numbers its rows; returns its seq."""
    return insert(inserting(table, tuple(row)), tuple(row.values()))


def new_id(now: int) -> str:
    """An identifier for the outside: 12 hexadecimal digits of the time in ms, 20 random ones."""
    return f"{now:012x}{os.urandom(10).hex()}"


def add_own(table: str, account_seq: int, values: dict[str, Any], now: int) -> str:
    """Add a row of an account with these columns; returns its id, which is new."""
    id_ = new_id(now)
    add_row(table, {"id": id_, "account_seq": account_seq, "created_at": now, **values})
    return id_


def change_row(table: str, seq: int, **values: Any) -> None:
    """Set these columns of a row."""
    if values:
        changes = ", ".join(f"{name} = ?" for name in values)
        run(f"UPDATE {table} SET {changes} WHERE seq = ?", (*values.values(), seq))


def keep_newest(table: str, parent: str, seq: int, kept: int) -> None:
    """Delete all but the `kept` newest rows whose column `parent` is `seq`."""
    last = f"SELECT seq FROM {table} WHERE {parent} = :parent ORDER BY seq DESC LIMIT 1 OFFSET :kept"
    run(f"DELETE FROM {table} WHERE {parent} = :parent AND seq <= ({last})", {"parent": seq, "kept": kept})


def columns(row_type: type[tuple[Any, ...]], table: str, **sources: str) -> str:
    """The SELECT list of a row type: its fields are the columns of `table` with their names.

    `sources` name the expressions for fields that come from elsewhere. A field that is a row type itself stands for
    that type's columns.
    """
    fields = get_type_hints(row_type)
    if unknown := sources.keys() - fields.keys():
        raise TypeError(f"{row_type.__name__} has no {', '.join(unknown)}")
    inner = {name: columns(kind, table) for name, kind in fields.items() if _is_row_type(kind)}
    return ", ".join(sources.get(name) or inner.get(name) or f"{table}.{name}" for name in fields)


def reader(row_type: type[Row]) -> Callable[[Sequence[Any]], Row]:
    """A function that makes a `row_type` of the `columns` of that type.

    A field that is a tuple is a JSON array in its column, or NULL when it is empty.
    """
    if not _is_row_type(row_type):
        return cast(Callable[[Sequence[Any]], Row], tuple if get_origin(row_type) is tuple else itemgetter(0))
    new = cast(Callable[[Sequence[Any]], Row], partial(tuple.__new__, row_type))  # in half the time of `_make`
    kinds, place, fields = get_type_hints(row_type).values(), 0, list[Callable[[Sequence[Any]], Any]]()
    if not any(_is_row_type(kind) or get_origin(kind) is tuple for kind in kinds):
        return new
    for kind in kinds:
        fields.append(_field_reader(kind, place))
        place += _width(kind)
    return lambda row: new([read(row) for read in fields])


def _field_reader(kind: Any, place: int) -> Callable[[Sequence[Any]], Any]:
    """A function of a row that returns the field of this kind whose first column is at this place."""
    if _is_row_type(kind):
        read, end = reader(kind), place + _width(kind)
        return lambda row: read(row[place:end])
    if get_origin(kind) is tuple:
        return lambda row: _array(row[place]) if row[place] else ()
    return itemgetter(place)


def _width(kind: Any) -> int:
    """How many columns a field has."""
    return sum(map(_width, get_type_hints(kind).values())) if _is_row_type(kind) else 1


def given_fields(
    row_type: type[tuple[Any, ...]], table: str, wanted: Container[str]
) -> tuple[str, Callable[[str], dict[str, Any]]]:
    """One column for the wanted fields that have a default, and the function that reads it where it is not NULL.

    The column is NULL if none of them is set, or else a JSON array; the function returns those that are set, by name.
    Each column of a result takes SQLite and sqlite3 760 instructions a row, even if it is empty.
    """
    kinds = get_type_hints(row_type)
    names = [name for name in cast(Any, row_type)._field_defaults if name in wanted]
    arrays = {name for name in names if get_origin(kinds[name]) is tuple}
    sources = [f"{table}.{name}" for name in names]
    is_any_set = " OR ".join(f"{source} IS NOT NULL" for source in sources)

    def read(column: str) -> dict[str, Any]:
        given = {name: value for name, value in zip(names, own_json(column), strict=True) if value is not None}
        for name in arrays & given.keys():
            given[name] = _array(given[name])
        return given

    return f"CASE WHEN {is_any_set} THEN json_array({', '.join(sources)}) END", read


def _is_row_type(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _array(text: str) -> tuple[Any, ...]:
    return tuple(own_json(text))


def as_column(value: Any) -> Any:
    """A field's value as its column holds it: see `reader` for tuples."""
    if isinstance(value, tuple):
        return json.dumps(value) if value else None
    return value


def size(*names: str) -> str:
    """An expression: how many bytes these columns of text have together. NULL has none."""
    texts = " || ".join(f"coalesce({name}, '')" for name in names)
    return f"length(CAST({texts} AS BLOB))"


def bytes_of(texts: list[str | None]) -> int:
    """The same of values that are to be stored."""
    return len("".join(filter(None, texts)).encode())
