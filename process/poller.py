"""Tells which sockets have something to read, or take more. Any thread may call it; one at a time waits.

Linux's epoll disarms a socket by itself once it was reported, in the same system call. Elsewhere `selectors` does.
"""

import contextlib
import select
import selectors

MOST_AT_ONCE = 64


class Epoll:
    """For Linux."""

    def __init__(self) -> None:
        self.epoll = select.epoll()

    def watch(self, fd: int) -> None:
        """Report this descriptor as long as there is something to read."""
        self.epoll.register(fd, select.EPOLLIN)

    def await_first(self, fd: int) -> None:
        """Report this descriptor once, when there is something to read."""
        self.epoll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)

    def await_next(self, fd: int) -> None:
        """Report a descriptor once more."""
        self.epoll.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)

    def await_room(self, fd: int) -> None:
        """Report a descriptor once, when more can be written to it."""
        self.epoll.modify(fd, select.EPOLLOUT | select.EPOLLONESHOT)

    def forget(self, fd: int) -> None:
        """Report this descriptor no more; one that is closed needs no call."""
        with contextlib.suppress(OSError):
            self.epoll.unregister(fd)

    def ready(self, waits: bool) -> list[int]:
        """The descriptors that are to be reported; waits for one if it should."""
        return [fd for fd, _ in self.epoll.poll(-1 if waits else 0, MOST_AT_ONCE)]


class Selector:
    """For other systems."""

    def __init__(self) -> None:
        self.selector, self.watched = selectors.DefaultSelector(), set[int]()

    def watch(self, fd: int) -> None:
        """As `Epoll.watch`."""
        self.watched.add(fd)
        self.await_first(fd)

    def await_first(self, fd: int) -> None:
        """As `Epoll.await_first`."""
        self._await(fd, selectors.EVENT_READ)

    await_next = await_first

    def await_room(self, fd: int) -> None:
        """As `Epoll.await_room`."""
        self._await(fd, selectors.EVENT_WRITE)

    def _await(self, fd: int, event: int) -> None:
        with contextlib.suppress(KeyError):  # of a descriptor that was closed and is now another's
            self.selector.unregister(fd)
        self.selector.register(fd, event)

    def forget(self, fd: int) -> None:
        """As `Epoll.forget`."""
        self.watched.discard(fd)
        with contextlib.suppress(KeyError):
            self.selector.unregister(fd)

    def ready(self, waits: bool) -> list[int]:
        """As `Epoll.ready`."""
        ready = [key.fd for key, _ in self.selector.select(None if waits else 0)]
        for fd in ready:
            if fd not in self.watched:
                with contextlib.suppress(KeyError):
                    self.selector.unregister(fd)
        return ready


Poller = Epoll if hasattr(select, "epoll") else Selector
