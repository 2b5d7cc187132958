"""Answers in JSON: how Flask encodes and sends what a handler returns. Must not know any handler."""

from typing import Any

from flask import Response
from flask.json.provider import DefaultJSONProvider

from wire.json_text import as_json, json_bytes


class JsonAnswer(Response):
    """An answer whose body is complete: for any other, Werkzeug looks for a location, a length and what to close."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        """Answer the request of `environ`."""
        start_response(self.status, list(self.headers))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [self.get_data()]


class CompactJson(DefaultJSONProvider):
    """Encodes responses compactly: keys in their own order, no ASCII escapes, no spaces."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        """Encode with the encoder that everything else uses."""
        return as_json(obj)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        """Build a JSON response with its content type, so that werkzeug need not derive it from the mimetype."""
        return JsonAnswer(json_bytes(self._prepare_response_obj(args, kwargs)) + b"\n", content_type=self.mimetype)
