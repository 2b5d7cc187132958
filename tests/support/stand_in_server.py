"""The HTTP server of the stand-ins for push services."""

import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class StandInServer(ThreadingHTTPServer):
    """Many clients may connect at once, and may leave before they are answered."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class StandIn:
    """A stand-in: its requests are handled by a class that finds it as `service`."""

    def serve(self, handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None) -> None:
        self.server = StandInServer(("127.0.0.1", 0), type("Handler", (handler,), {"service": self}))
        if context:
            plain = self.server.socket
            self.server.socket = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self.origin = f"http{'s' if context else ''}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class StandInHandler(BaseHTTPRequestHandler):
    """Answers in one piece, and logs nothing."""

    def respond(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass
