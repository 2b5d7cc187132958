"""Refusals, and the shapes of error answers.

Handlers raise `Refused`; `answer()` in dashboard/refusals.py makes the answer of it, in the shape of the API that was
called. Must not know Flask: a shape is plain data.
"""

from collections.abc import Mapping
from typing import TypeVar

CODES: Mapping[int, str] = {
    401: "UNAUTHORIZED",
    404: "NOT_FOUND",
    429: "RATE_LIMIT_EXCEEDED",
    **dict.fromkeys((400, 403, 405, 409, 413), "VALIDATION_ERROR"),
    **dict.fromkeys((500, 503), "INTERNAL_ERROR"),
}

SENTENCES: Mapping[int, str] = {
    400: "The request is not valid.",
    401: "The API key is missing, malformed, unknown, expired or revoked: send Authorization: Bearer sk_test_…",
    403: "Pages of other sites may not call this address: the request's Origin is not this service's own.",
    404: "Not found: no such address or id.",
    405: "This address does not take that method.",
    409: "A request with this Idempotency-Key is still running: repeat it in a moment.",
    413: "The request body is too large.",
    429: "Too many requests: this API key's limit per minute is reached.",
    500: "Something went wrong on the server. It has been logged; try again later.",
    503: "The database does not answer, or its disk is full. Try again in a few seconds.",
}

TOO_MANY_EVENTS = "Rate limit exceeded"

Found = TypeVar("Found")


class Refused(Exception):
    """A request, command or setting that is refused.

    `status` is an HTTP status of `CODES`; `message` is one sentence for a person, without any secret. After a 429 or
    503 the client may come back after `retry_after_s`. `owner_message` tells the owner more. `field` names the field
    of a form that the sentence is about.
    """

    def __init__(
        self,
        status: int,
        message: str | None = None,
        retry_after_s: int = 60,
        owner_message: str = "",
        field: str = "",
    ) -> None:
        self.status = status
        self.field = field
        self.message = message or SENTENCES[status]
        self.owner_message = owner_message or self.message
        self.retry_after_s = retry_after_s
        super().__init__(self.message)

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers that belong to this status."""
        if self.status in (429, 503):
            return {"Retry-After": str(self.retry_after_s)}
        return {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}


def existing(found: Found | None, message: str | None = None) -> Found:
    """What was looked up; `Refused` (404) if there is no such thing."""
    if found is None:
        raise Refused(404, message)
    return found


def rest_body(refused: Refused) -> dict[str, object]:
    """The error body of every JSON address but the metrics webhook."""
    return {"ok": False, "error": refused.message, "code": CODES[refused.status], "statusCode": refused.status}


def metrics_body(refused: Refused) -> dict[str, object]:
    """The error body of the metrics webhook."""
    return {"error": refused.message}
