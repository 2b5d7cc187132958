"""Reports sockets that can be read or written, each once for each time it is watched.

Any number of threads may wait at the same time.
"""

import contextlib
import select
import selectors
import threading

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

    def wait(self) -> int:
        """Wait for the next descriptor."""
        while not (ready := self.epoll.poll(-1, 1)):
            pass
        return int(ready[0][0])


class Selector:
    """For other systems."""

    def __init__(self) -> None:
        self.selector, self.waiting = selectors.DefaultSelector(), threading.Lock()

    def watch(self, fd: int, event: int = READ) -> None:
        """As `Epoll.watch`."""
        with contextlib.suppress(KeyError):  # a closed socket's descriptor may be in use again
            self.selector.unregister(fd)
        self.selector.register(fd, event)

    def wait(self) -> int:
        """As `Epoll.wait`."""
        with self.waiting:
            while not (ready := self.selector.select()):
                pass
            fd = ready[0][0].fd
            with contextlib.suppress(KeyError):
                self.selector.unregister(fd)
        return fd


Poller = Epoll if hasattr(select, "epoll") else Selector
