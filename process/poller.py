"""Reports sockets that can be read or written, each once for each time it is watched. One thread at a time waits."""

import contextlib
import select
import selectors

MOST_AT_ONCE = 256
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Epoll:
    """For Linux, which disarms a socket in the same system call that reports it."""

    def __init__(self) -> None:
        self.epoll = select.epoll()

    def watch(self, fd: int, event: int = READ) -> None:
        """Report this descriptor once; one that is closed needs no further call."""
        mask = (select.EPOLLIN if event == READ else select.EPOLLOUT) | select.EPOLLONESHOT
        try:
            self.epoll.modify(fd, mask)
        except FileNotFoundError:
            self.epoll.register(fd, mask)

    def look(self, waits: bool) -> list[int]:
        """Some of the descriptors that are ready; waits for one if told to."""
        return [fd for fd, _ in self.epoll.poll(-1 if waits else 0, MOST_AT_ONCE)]


class Selector(selectors.DefaultSelector):
    """For other systems."""

    def watch(self, fd: int, event: int = READ) -> None:
        """As `Epoll.watch`."""
        with contextlib.suppress(KeyError):  # a closed socket's descriptor may be in use again
            self.unregister(fd)
        self.register(fd, event)

    def look(self, waits: bool) -> list[int]:
        """As `Epoll.look`."""
        ready = [key.fd for key, _ in self.select(None if waits else 0)[:MOST_AT_ONCE]]
        for fd in ready:
            with contextlib.suppress(KeyError):
                self.unregister(fd)
        return ready


Poller = Epoll if hasattr(select, "epoll") else Selector
