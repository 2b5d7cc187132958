"""How JSON is answered. Must not know any address."""

from typing import Any

from flask import Response
from flask.json.provider import DefaultJSONProvider

from wire.json_text import as_json


class CompactJson(DefaultJSONProvider):
    """Encodes responses compactly: keys in their own order, no ASCII escapes, no spaces."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        """Encode with the encoder that everything else uses."""
        return as_json(obj)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        """Build a JSON response with its content type, so that werkzeug need not derive it from the mimetype."""
        return Response(self.dumps(*args, **kwargs) + "\n", content_type=self.mimetype)
