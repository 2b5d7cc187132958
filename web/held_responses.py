"""A response that is completed only when the commit that its request has left has ended.

Must not know what was stored.
"""

from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial
from typing import Any

from flask import Flask

from process.held_answer import HeldAnswer
from store.pending_commit import PendingCommit


class HeldResponse:
    """Is called like a response. `complete` gets it in the end, or the one that says that the commit has failed."""

    def __init__(self, app: Flask, response: Any, commit: PendingCommit, complete: Callable[[Any], Any]) -> None:
        self.app, self.response, self.commit, self.complete = app, response, commit, complete
        self.context = copy_context()  # of the request, for the thread that answers it then

    def __call__(self, environ: Any, start_response: Any) -> HeldAnswer:
        """The body as WSGI knows it."""
        return HeldAnswer(partial(self.context.run, self._answer, environ, start_response))

    def _answer(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        failure = self.commit.failure()
        if failure:
            self.response = self.app.make_response(self.app.handle_user_exception(failure))
        body: Iterable[bytes] = self.complete(self.response)(environ, start_response)
        return body
