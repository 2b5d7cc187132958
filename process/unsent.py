"""Answers that their clients have not taken yet: each waits without a thread, and together they hold bounded memory.

Must not know HTTP, or who writes them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from process.connections import MAX_KEPT_BYTES
from process.http_messages import Answer

MAX_UNSENT_BYTES = 64_000_000


class Exchange:
    """A request that the application has seen, and its answer, of which a part is still to be written."""

    def __init__(self, answer: Answer, environ: dict[str, Any], body: Iterable[bytes], began_s: float) -> None:
        self.answer, self.environ, self.body, self.began_s = answer, environ, body, began_s
        self.connection = answer.connection
        self.parts: Iterator[bytes] | None = None
        self.is_closed = False  # the body is written, or given up

    def write(self) -> bool:
        """Write as much of the body as may be kept, one part if its length is unknown; whether that was the last."""
        if self.parts is None:
            self.parts = iter(self.body)
        for part in self.parts:
            self.answer.write(part)
            is_much = len(self.connection.kept) > MAX_KEPT_BYTES and not self.answer.is_whole
            if self.answer.length is None or is_much:
                return False
        self.answer.end()
        return True

    def close(self) -> None:
        """Free what the body holds."""
        body, self.body, self.parts, self.is_closed = self.body, (), None, True
        if hasattr(body, "close"):
            body.close()


class Unsent:
    """The answers that wait, by descriptor; the one whose client took something longest ago is the first."""

    def __init__(self) -> None:
        self.exchanges = dict[int, Exchange]()

    def take(self, fd: int) -> Exchange | None:
        """The answer that waits for this descriptor, which is the caller's from now on."""
        return self.exchanges.pop(fd, None)

    def over(self, now_s: float) -> Iterator[Exchange]:
        """Those whose time is over, and the first of them if all together are too large; they are the caller's."""
        waiting = list(self.exchanges.items())
        surplus = sum(len(exchange.connection.kept) for _, exchange in waiting) - MAX_UNSENT_BYTES
        for fd, exchange in waiting:
            is_over = surplus > 0 or exchange.connection.until_s <= now_s
            if is_over and self.exchanges.get(fd) is exchange and self.take(fd):
                surplus -= len(exchange.connection.kept)
                yield exchange
