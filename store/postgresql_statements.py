"""Runs statements on a connection to PostgreSQL, in a third of the time that psycopg's own cursors take.

They do much for each statement that is the same each time here. This uses psycopg below its documented interface:
`requirements.txt` pins its version. Must not know the pool or the tables.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.waiting import Ready, Wait

from store import engine
from store.dialect import numbered
from store.engine import Values

INTERVAL_S = 0.02  # a request that waits for longer gives up its turn among the long ones
ANSWER_S = 3.5  # of a server that may have stopped to answer: more than its own limit for a statement
MAX_PREPARED = 400  # statements of a connection: far more than there are
TEXT = 0  # the format of results
SUCCEEDED = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class _Query(NamedTuple):
    """A statement as the server reads it, and its values."""

    text: bytes
    types: Any
    values: Any
    formats: Any


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


def _making_way(answer: Generator[Wait, Any, Any]) -> Generator[Wait, Any, Any]:
    """The same generator, which makes way for other requests whenever no answer has come within an interval."""
    try:
        wanted = next(answer)
        while True:
            ready = yield wanted
            if not ready:
                engine.make_way()
            wanted = answer.send(ready)
    except StopIteration as done:
        return done.value


class Connection(psycopg.Connection[Any]):
    """A connection that does not wait for ever for a server that has stopped to answer."""

    answer_s = ANSWER_S

    def __init__(self, pgconn: Any) -> None:
        super().__init__(pgconn)
        self._known_statements = dict[tuple[bytes, Any], bytes]()  # their names; empty: it ran once
        self._prepared_count = 0

    def wait(self, gen: Any, interval: float = INTERVAL_S, timeout: float | None = None) -> Any:
        """Wait for the server's answer; raises `OperationalError` when it takes too long."""
        return super().wait(_making_way(gen), interval, self.answer_s if timeout is None else timeout)

    @cached_property
    def _transformer(self) -> Any:
        """Converts values; made at its first use, since it knows only the dumpers registered before."""
        return Transformer(self)

    def run(self, statement: str, values: Values, before: Sequence[tuple[str, Values]] = ()) -> Result:
        """Run a statement of SQLite's dialect, prepared from its second time on.

        The statements `before` go out with it, in one trip, and are not run if one of them fails.
        """
        query = self._query(statement, values)
        if before:
            return self._answer(self._run_together([*(self._query(*one) for one in before), query]))
        name = self._known_statements.get(query[:2])
        if name is None:
            self._make_room(1)
            self._known_statements[query[:2]] = b""
            self.pgconn.send_query_params(query.text, query.values, query.types, query.formats, TEXT)
        else:
            if not name:
                name = self._next_name()
                self.pgconn.send_prepare(name, query.text, query.types)
                self._answer(self._results())
                self._known_statements[query[:2]] = name
            self.pgconn.send_query_prepared(name, query.values, query.formats, TEXT)
        return self._answer(self._results())

    def _query(self, statement: str, values: Values) -> _Query:
        text, names = numbered(statement)
        if names is not None:
            named = cast("Mapping[str, object]", values)
            values = [named[name] for name in names]
        if not values:
            return _Query(text, (), None, None)
        sent = self._transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        return _Query(text, self._transformer.types or (), sent, self._transformer.formats)

    def say(self, statements: str) -> Result:
        """Run statements without values, in one trip; returns the last one's result."""
        self.pgconn.send_query(statements.encode())
        return self._answer(self._results())

    def _make_room(self, number: int) -> None:
        """Let the server forget all statements if there are too many."""
        if len(self._known_statements) + number > MAX_PREPARED:
            self._known_statements.clear()
            self.say("DEALLOCATE ALL")

    def _next_name(self) -> bytes:
        self._prepared_count += 1
        return b"s%d" % self._prepared_count

    def _run_together(self, queries: list[_Query]) -> list[PGresult]:
        """The results of prepared statements sent in one trip; after a failure, the rest does not run."""
        self._make_room(len(queries))
        pgconn = self.pgconn
        new: dict[tuple[bytes, Any], bytes] = {}
        pgconn.enter_pipeline_mode()
        for query in queries:
            name = self._known_statements.get(query[:2]) or new.get(query[:2])
            if not name:
                name = new[query[:2]] = self._next_name()
                pgconn.send_prepare(name, query.text, query.types)
            pgconn.send_query_prepared(name, query.values, query.formats, TEXT)
        pgconn.pipeline_sync()
        results: list[PGresult] = self.wait(self._all_results())
        pgconn.exit_pipeline_mode()  # a connection that failed before this is of no use any more
        if results[-1].status in SUCCEEDED:  # or else nobody knows which of the new ones the server has
            self._known_statements |= new
        return results

    def _all_results(self) -> Generator[Wait, Ready, list[PGresult]]:
        """The server's results of all statements in the pipeline."""
        yield from generators.send(self.pgconn)
        results: list[PGresult] = []
        while some := (yield from generators.fetch_many(self.pgconn)):  # those of one statement
            if some[-1].status == ExecStatus.PIPELINE_SYNC:
                return results
            results += some
        raise psycopg.OperationalError("the connection was lost")

    def _results(self) -> list[PGresult]:
        results: list[PGresult] = self.wait(generators.execute(self.pgconn))
        return results

    def _answer(self, results: list[PGresult]) -> Result:
        for result in results:
            if result.status not in SUCCEEDED:
                raise error_from_result(result, self.info.encoding)
        if not result.nfields:
            return Result(result, [])
        self._transformer.set_pgresult(result)
        return Result(result, self._transformer.load_rows(0, result.ntuples, tuple))
