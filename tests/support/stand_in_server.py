"""The HTTP server of the stand-ins for push services."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class StandInServer(ThreadingHTTPServer):
    """Many clients may connect at once, and may leave before they are answered."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


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
