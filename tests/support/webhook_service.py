"""The stand-in for chats and other services that take webhooks."""

import json
from typing import NamedTuple

from tests.support.stand_in_server import StandIn, StandInHandler


class Got(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]  # names in small letters
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class WebhookService(StandIn):
    """Keeps the requests that it gets; answers 200, or what `answers` says for a path: status, body, headers."""

    def __init__(self):
        self.got, self.answers, self.before_answer = [], {}, None
        self.serve(_Handler)

    def at(self, path):
        """The requests to this path, whatever their query."""
        return [one for one in self.got if one.path.partition("?")[0] == path]


class _Handler(StandInHandler):
    service = None

    def do_POST(self):  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.service.got.append(Got(self.command, self.path, headers, body))
        if self.service.before_answer:
            self.service.before_answer()
        answer = self.service.answers.get(self.path.partition("?")[0], (200,))
        status, text, more = (*answer, *(b"", {})[len(answer) - 1 :])
        self.respond(status, text, **more)

    do_PUT = do_POST  # noqa: N815
