"""The HTTP server of the stand-ins for push services."""

import sys
from http.server import ThreadingHTTPServer


class StandInServer(ThreadingHTTPServer):
    """Many clients may connect at once, and may leave before they are answered."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)
