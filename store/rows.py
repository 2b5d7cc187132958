"""Row types: a NamedTuple names the columns of a query once, for its SELECT list and for reading its rows.

A column that is added to a row type is selected and read wherever that type is. Must not know the tables.
"""

import json
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import count
from typing import Any, TypeVar, cast, get_origin, get_type_hints

from wire.json_text import own_json

Row = TypeVar("Row", bound=tuple[Any, ...])


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


def reader(row_type: type[Row], first: int = 0) -> Callable[[Sequence[Any]], Row]:
    """A function that makes a `row_type` of a result row with the `columns` of that type, from the place `first` on.

    A field that is a tuple is a JSON array in its column, or NULL when it is empty.
    """
    names: dict[str, Any] = {"_new": tuple.__new__}  # what the type's own `_make` calls
    return _compiled([f"return {_constructor(row_type, count(first), names)}"], names)


def given_fields(
    row_type: type[tuple[Any, ...]], table: str, wanted: Container[str]
) -> tuple[str, Callable[[str], dict[str, Any]]]:
    """One column for the wanted fields that have a default, and the function that reads it where it is not NULL.

    The column is NULL if none of them is set, or else a JSON array; the function returns those that are set, by name.
    Each column of a result takes SQLite and sqlite3 760 instructions a row, even if it is empty.
    """
    kinds = get_type_hints(row_type)
    names = [name for name in vars(row_type)["_field_defaults"] if name in wanted]
    sources = [f"{table}.{name}" for name in names]
    is_any_set = " OR ".join(f"{source} IS NOT NULL" for source in sources)
    lines = ["row, given = _own_json(row), {}"]
    for place, name in enumerate(names):
        value = f"_array(row[{place}])" if get_origin(kinds[name]) is tuple else f"row[{place}]"
        lines.append(f"if row[{place}] is not None: given[{name!r}] = {value}")
    read = _compiled([*lines, "return given"], {"_own_json": own_json})
    return f"CASE WHEN {is_any_set} THEN json_array({', '.join(sources)}) END", read


def _compiled(lines: list[str], names: dict[str, Any]) -> Callable[[Any], Any]:
    """A function of a `row` with these lines, which are compiled like the methods of a namedtuple.

    A loop over the fields would take five times as long, and a page of the history reads 50 rows.
    """
    scope = {**names, "_array": _array}
    exec("\n    ".join(["def read(row):", *lines]), scope)  # noqa: S102 - built from field names alone
    return cast(Callable[[Any], Any], scope["read"])


def _constructor(row_type: type[tuple[Any, ...]], places: Iterator[int], names: dict[str, Any]) -> str:
    """The call that makes a row type of the columns at the next `places`, as Python; the types go into `names`."""
    names[row_type.__name__] = row_type
    arguments = []
    for kind in get_type_hints(row_type).values():
        if _is_row_type(kind):
            arguments.append(_constructor(kind, places, names))
        elif get_origin(kind) is tuple:
            place = next(places)
            arguments.append(f"_array(row[{place}]) if row[{place}] else ()")
        else:
            arguments.append(f"row[{next(places)}]")
    return f"_new({row_type.__name__}, ({', '.join(arguments)},))"


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
