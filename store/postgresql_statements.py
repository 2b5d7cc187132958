"""Runs statements on a connection to PostgreSQL, in a third of the time that psycopg's own cursors take.

They do much for each statement that is the same each time here. This uses psycopg below its documented interface:
`requirements.txt` pins its version. Must not know the pool or the tables.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, cast

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from store.dialect import numbered
from store.engine import Values

ANSWER_S = 3.5  # of a server that may have stopped to answer: more than its own limit for a statement
MAX_PREPARED = 400  # statements of a connection: far more than there are
TEXT = 0  # the format of what is read


class Result:
    """The result of a statement."""

    def __init__(self, result: PGresult, rows: list[Any]) -> None:
        self._result, self._rows = result, iter(rows)

    @property
    def rowcount(self) -> int:
        """How many rows were changed or found."""
        return self._result.command_tuples or 0

    @property
    def description(self) -> list[tuple[str]]:
        """The names of the columns, as Peewee asks for them."""
        return [((self._result.fname(place) or b"").decode(),) for place in range(self._result.nfields)]

    def fetchone(self) -> Any:
        """The next row, or None."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        return list(self._rows)

    def close(self) -> None:
        """Do nothing: all rows have been read. Peewee calls it."""

    def __iter__(self) -> Iterator[Any]:
        """The rows that are left, one after the other."""
        return self._rows


class Connection(psycopg.Connection[Any]):
    """A connection that does not wait for ever for a server that has stopped to answer."""

    answer_s = ANSWER_S

    def __init__(self, pgconn: Any) -> None:
        super().__init__(pgconn)
        self._known_statements = dict[tuple[bytes, Any], bytes]()  # their names; empty: it ran once
        self._prepared_count = 0

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for the server's answer; raises `OperationalError` when it takes too long."""
        return super().wait(gen, interval, self.answer_s if timeout is None else timeout)

    @cached_property
    def _transformer(self) -> Any:
        """What writes and reads values; made when it is first used, since it knows only the dumpers of before."""
        return Transformer(self)

    def run(self, statement: str, values: Values) -> Result:
        """Run a statement of SQLite's dialect; one that comes again is prepared."""
        text, names = numbered(statement)
        if names is not None:
            named = cast(Mapping[str, object], values)
            values = [named[name] for name in names]
        sent = self._transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        types, formats = self._transformer.types or (), self._transformer.formats
        name = self._known_statements.get((text, types))
        if name is None:
            self._remember_statement(text, types, b"")
            self.pgconn.send_query_params(text, sent, types, formats, TEXT)
        else:
            name = name or self._prepare_it(text, types)
            self.pgconn.send_query_prepared(name, sent, formats, TEXT)
        return self._answer()

    def say(self, statements: str) -> Result:
        """Run statements without values, in one trip; returns the last one's result."""
        self.pgconn.send_query(statements.encode())
        return self._answer()

    def _remember_statement(self, text: bytes, types: Any, name: bytes) -> None:
        if len(self._known_statements) >= MAX_PREPARED:
            self._known_statements.clear()
            self.say("DEALLOCATE ALL")
        self._known_statements[text, types] = name

    def _prepare_it(self, text: bytes, types: Any) -> bytes:
        self._prepared_count += 1
        name = b"s%d" % self._prepared_count
        self.pgconn.send_prepare(name, text, types)
        self._answer()
        self._known_statements[text, types] = name
        return name

    def _answer(self) -> Result:
        results = self.wait(generators.execute(self.pgconn))
        for result in results:
            if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
                raise error_from_result(result, self.info.encoding)
        if not result.nfields:
            return Result(result, [])
        self._transformer.set_pgresult(result)
        return Result(result, self._transformer.load_rows(0, result.ntuples, tuple))
