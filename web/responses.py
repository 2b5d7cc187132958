"""The end of every response: headers, the counter, the alert's list of requests. Must not know handlers."""

from collections.abc import Iterable
from typing import Any

from flask import Response

from core import recent_requests
from process import clock, counters
from web.context import RequestContext, current, request
from web.json_answers import JsonAnswer
from wire import ntfy

POLICY, OWN_PICTURES = "Content-Security-Policy", "img-src 'self'"
PAGE_HEADERS = {
    POLICY: (
        f"default-src 'none'; script-src 'self'; style-src 'self'; {OWN_PICTURES}; connect-src 'self';"
        " manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send our own forms with Origin: null
}


NOT_STORED = ("Cache-Control", "no-store")
NOT_SNIFFED = ("X-Content-Type-Options", "nosniff")
FOR_ALL_ORIGINS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", "*"))


def completed(response: Any) -> Any:
    """Count the response, note it for the alert's page, and add the headers."""
    known = current()
    rule = known.environ.get("pocketbell.route", "-")  # the path itself may be secret
    # Unknown addresses accept any method name: keep the labels few.
    method = known.environ["REQUEST_METHOD"] if rule != "-" else "-"
    counters.count("responses", method, rule, str(response.status_code))
    if known.webhook:
        seen = recent_requests.Seen(clock.now_ms(), response.status_code, known.outcome, 1, known.notification_id)
        recent_requests.note(known.webhook, seen)
    _add_headers(response, known)
    return response


def _add_headers(response: Response | JsonAnswer, known: RequestContext) -> None:
    path, headers = "/" + known.environ.get("PATH_INFO", "").lstrip("/"), response.headers
    if isinstance(headers, list):  # a `JsonAnswer`'s: no handler lets one be stored
        headers.append(NOT_STORED)
    else:
        if path.startswith("/app/static/") and "v" in request.args and response.status_code == 200:
            headers["Cache-Control"] = "public, max-age=31536000, immutable"  # the URL changes with the content
        headers.setdefault(*NOT_STORED)
    headers.extend([NOT_SNIFFED])
    if not (response.status_code in (404, 405, 429) and path.startswith("/p/")):  # identical, byte for byte
        headers.extend([("X-Request-Id", known.environ.get("pocketbell.request", "-"))])
    if known.errors is ntfy.error_body:  # pages of other sites may call ntfy's addresses: no cookie counts there
        headers.extend(FOR_ALL_ORIGINS)
    if path.startswith(("/app/", "/docs/")) or path == "/docs":
        headers.extend(_page_headers(known.picture_origins))
    elif response.mimetype == "text/html":  # of a button, a mail's link or an alert: their addresses are secret
        headers.extend({**PAGE_HEADERS, "Referrer-Policy": "no-referrer"}.items())
    if known.window:
        names = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
        headers.extend(zip(names, map(str, known.window), strict=True))


def _page_headers(picture_origins: set[str]) -> Iterable[tuple[str, str]]:
    """The headers of a page, which may show pictures from these origins, too."""
    policy = PAGE_HEADERS[POLICY].replace(OWN_PICTURES, " ".join([OWN_PICTURES, *sorted(picture_origins)]))
    return {**PAGE_HEADERS, POLICY: policy}.items()
