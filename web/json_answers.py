"""Answers in JSON to requests that Flask does not answer. Must not know any handler."""

from http import HTTPStatus
from typing import Any

from wire.json_text import json_bytes

STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class JsonAnswer:
    """A JSON response without cookies; Flask's `Response` does more, at a higher cost."""

    mimetype = "application/json"

    def __init__(self, value: dict[str, Any], *more: Any) -> None:
        """`more`, as a handler returned it after the value, is a status or headers or both, in this order."""
        self.body = json_bytes(value) + b"\n"
        self.status_code = more[0] if more and isinstance(more[0], int) else 200
        headers = more[-1] if more and not isinstance(more[-1], int) else {}
        length = str(len(self.body))
        self.headers = [("Content-Type", self.mimetype), ("Content-Length", length), *headers.items()]

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        """Answer the request of `environ`."""
        start_response(STATUS_LINES[self.status_code], self.headers)
        return [self.body]
