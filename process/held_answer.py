"""An answer that is made only when something has ended, such as a commit, so that no thread sleeps meanwhile.

gunicorn's worker looks into it when nothing else is ready; any other server looks at once, and waits. Must not know
what it waits for.
"""

from collections.abc import Callable, Iterable, Iterator


class HeldAnswer:
    """A body as WSGI knows it. `make` waits, and then gives status and headers before it returns the parts."""

    def __init__(self, make: Callable[[], Iterable[bytes]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._make())
