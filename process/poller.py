"""Reports sockets that can be read or written, each once for each time it is watched. One thread at a time waits."""

import contextlib
import selectors
import threading

MOST_AT_ONCE = 24  # each may need a thread of its own until all of them are committed
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Poller(selectors.DefaultSelector):
    """The sockets that are watched, by descriptor. Any thread may call `watch`, also while another one waits."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def watch(self, fd: int, event: int = READ) -> None:
        """Report this descriptor once; one that is closed needs no further call."""
        with self.lock:
            try:
                self.register(fd, event)
            except KeyError:  # a closed socket's descriptor is in use again
                self.unregister(fd)
                self.register(fd, event)

    def wait(self) -> list[int]:
        """Wait for descriptors; returns some of those that are ready."""
        ready = [key.fd for key, _ in self.select()[:MOST_AT_ONCE]]
        with self.lock:
            for fd in ready:
                with contextlib.suppress(KeyError):
                    self.unregister(fd)
        return ready
