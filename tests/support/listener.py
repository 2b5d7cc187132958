"""A raw TCP server, and what is sent to it."""

import socket
import threading
from contextlib import contextmanager, suppress

from providers.transport import Request

PLENTY_S = 30  # for exchanges that take some milliseconds on a machine that has nothing else to do


class Listener:
    """A raw TCP server: `serve(connection, number)` runs in a thread for each connection."""

    def __init__(self, serve, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.bind((host, 0))
        self.socket.listen()
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/push"
        self.serve = serve
        self.kept = []  # so that a connection stays open when its thread ends
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.kept.append(connection)
            threading.Thread(target=self.serve, args=(connection, len(self.kept)), daemon=True).start()

    @property
    def connections(self):
        return len(self.kept)


@contextmanager
def listening(serve, host="127.0.0.1"):
    listener = Listener(serve, host)
    try:
        yield listener
    finally:
        stop_listening(listener.socket)


def stop_listening(listener):
    """Close a listening socket, for which a thread waits in `accept`.

    Without the shutdown, the thread would wait on. At the next signal the kernel begins its call anew, with the same
    descriptor: by then that may be another server's, from which the thread would take a connection.
    """
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def read_request(connection):
    """Read one request whose body has 4 bytes."""
    data = b""
    while not data.endswith(b"\r\n\r\nbody"):
        part = connection.recv(4096)
        if not part:
            return None
        data += part
    return data


def answer(connection, status="201 Created", headers="", body=b""):
    connection.sendall(f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def post(url, any_address=True):
    return Request(url, {"X-Test": "1"}, b"body", any_address)


def ignore(connection, number):
    pass
