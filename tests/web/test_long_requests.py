"""The requests that may read much, of which the server answers only a few at once."""

from store import database, engine
from tests.support.rows import each
from web.long_requests import takes_long


@each(
    "method, path, is_long",
    [
        ("GET", "/api/v1/notifications", True),
        ("HEAD", "/api/v1/notifications", True),
        ("GET", "/%61pi/v1/notifications", True),
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


def test_a_request_on_a_database_server_keeps_its_turn_until_it_waits(owner, monkeypatch):
    called = []
    monkeypatch.setattr(database, "is_shared", lambda: True)
    for name in ("go_beside", "pass_on", "make_way"):
        monkeypatch.setattr(engine, name, lambda name=name: called.append(name))
    assert owner.get("/alerts").status_code == 200
    assert called[0] == "go_beside"
