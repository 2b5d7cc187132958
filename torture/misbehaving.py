"""A stand-in for any push provider that answers at once, never, or in the worst ways: raw HTTP/1.1 over sockets."""

import json
import socket
import ssl
import struct
import threading
import time
from contextlib import suppress

BIG = 100 * 1024 * 1024
RESET = struct.pack("ii", 1, 0)  # SO_LINGER 0: close with a reset


def response(status: int, body: bytes = b"", *fields: str, kind: str = "application/json") -> bytes:
    """A complete response."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Provider:
    """Answers every push as `mode` says, and OAuth requests (`/token`) as `oauth_mode` says.

    A mode is the bytes of a response, or the name of a method below that handles the connection.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.context, self.good, self.oauth_mode = context, response(200, b"{}"), "token"
        self.mode: bytes | str = self.good
        self.asked = self.connections = 0
        self.open = set[socket.socket]()
        self.listener = self._listen(0)
        self.port = int(self.listener.getsockname()[1])
        self.origin = f"https://localhost:{self.port}" if context else f"http://127.0.0.1:{self.port}"

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port), backlog=256)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def close(self) -> None:
        """Stop accepting connections, and close the open ones."""
        for one in (self.listener, *self.open):
            with suppress(OSError):  # not a TLS socket's own method: its thread is reading
                socket.socket.shutdown(one, socket.SHUT_RDWR)
        self.listener.close()

    def listen_again(self) -> None:
        """Accept connections again on the same port."""
        self.listener = self._listen(self.port)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        connection = plain
        with suppress(OSError, ValueError):
            if self.mode == "plain_text":
                plain.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 20)
            elif self.mode == "silent_handshake":
                time.sleep(20)
            else:
                connection = self.context.wrap_socket(plain, server_side=True) if self.context else plain
                self.open.add(connection)
                while self._answer(connection):
                    pass
        self.open.discard(connection)
        with suppress(OSError):
            connection.close()

    def _answer(self, connection: socket.socket) -> bool:
        """Read a request and answer it; whether the connection stays open."""
        with connection.makefile("rb") as stream:
            first, length = stream.readline(), 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            stream.read(length)
            if not first:
                return False
        is_oauth = b"/token" in first
        self.asked += not is_oauth
        mode = self.oauth_mode if is_oauth else self.mode
        if isinstance(mode, bytes):
            connection.sendall(mode)
            return True
        return bool(getattr(self, mode)(connection))

    def token(self, connection: socket.socket) -> bool:
        """A valid OAuth response."""
        body = json.dumps({"access_token": "ya29.x", "expires_in": 3599, "token_type": "Bearer"}).encode()
        connection.sendall(response(200, body))
        return True

    def hang(self, connection: socket.socket) -> None:
        """Never answer."""
        time.sleep(20)

    def no_answer(self, connection: socket.socket) -> None:
        """Close without an answer."""

    def reset(self, connection: socket.socket) -> None:
        """Reset without an answer."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def reset_in_headers(self, connection: socket.socket) -> None:
        """Reset in the middle of the headers."""
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")
        time.sleep(0.2)
        self.reset(connection)

    def reset_in_body(self, connection: socket.socket) -> None:
        """Reset in the middle of an error's body."""
        connection.sendall(b"HTTP/1.1 500 X\r\nContent-Length: 900\r\n\r\n" + b"x" * 100)
        time.sleep(0.2)
        self.reset(connection)

    def garbage(self, connection: socket.socket) -> None:
        """Answer with something that is not HTTP."""
        connection.sendall(bytes(range(256)) * 100)

    def huge_headers(self, connection: socket.socket) -> None:
        """A good status followed by 50 MB of headers."""
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for number in range(50_000):
            connection.sendall(b"X-%d: %s\r\n" % (number, b"x" * 1_000))
        connection.sendall(b"Content-Length: 0\r\n\r\n")

    def endless_continue(self, connection: socket.socket) -> None:
        """100 Continue without end."""
        for _ in range(5_000_000):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    def drip_headers(self, connection: socket.socket) -> None:
        """A byte of the headers every 0.3 s."""
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * 2:
            connection.sendall(bytes([byte]))
            time.sleep(0.3)

    def drip_body(self, connection: socket.socket) -> None:
        """A byte of an error's body every 0.3 s."""
        connection.sendall(b"HTTP/1.1 503 X\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(60):
            connection.sendall(b"x")
            time.sleep(0.3)

    def big_error(self, connection: socket.socket) -> None:
        """An error with a body of 100 MB."""
        self._big(connection, b"HTTP/1.1 503 X\r\nContent-Length: %d\r\n\r\n" % BIG)

    def big_chunked(self, connection: socket.socket) -> None:
        """An error with a body of 100 MB, in chunks."""
        self._big(connection, b"HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n6400000\r\n")

    def _big(self, connection: socket.socket, head: bytes) -> None:
        connection.sendall(head)
        part = b"x" * 65_536
        for _ in range(BIG // len(part)):
            connection.sendall(part)
