"""The requests that may read much, of which the server answers only a few at once."""

from tests.support.rows import each
from web.long_requests import takes_long


@each(
    "method, path, is_long",
    [
        ("GET", "/api/v1/notifications", True),
        ("HEAD", "/api/v1/notifications", True),
        ("GET", "/api/v1/%6Eotifications", True),
        ("GET", "/api/v1/alerts", True),
        ("GET", "/docs", True),
        ("GET", "/openapi.json", True),
        ("POST", "/app/quiet", True),
        ("POST", "/app/login", True),  # its turn ends when it waits to hash
        ("POST", "/mcp", True),
        ("GET", "/app", True),
        ("GET", "/app/notifications.csv", True),
        ("GET", "/pb1,pb2/json", True),
        ("GET", "/app/static/app.css", False),
        ("POST", "/api/v1/notifications/send", False),
        ("GET", "/api/v1/stats", False),
        ("GET", "/api/v1/notifications/01a21f", False),  # it may wait
        ("GET", "/healthz", False),
        ("GET", "/ping/some-job", False),
        ("GET", "/topic/publish", False),
    ],
)
def test_lists_pages_forms_polls_and_assistants_may_take_long_and_sends_events_and_pings_never(method, path, is_long):
    assert takes_long(method, path) is is_long
