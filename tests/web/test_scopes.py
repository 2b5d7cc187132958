"""What a key of each scope may do at every door, what it reaches, and when it expires."""

import re

import pytest

import app
from core import api_keys, streams
from core.api_keys import NOT_ALLOWED
from models import sha256_of
from process import clock
from process.clock import DAY_MS
from process.streams import Ended
from store.key_limits import FULL, READ, SEND
from store.senders import find_caller
from tests.support import assistants
from tests.support.answers import error
from tests.support.rows import each
from tests.support.service import Caller
from web import guards
from wire.ntfy_stream import Filters, Since, Wanted

SENT = {"title": "Backup", "body": "finished"}
LARGE = b" " * 2_000_000
WANTED = Wanted(poll=False, since=Since(), filters=Filters())
ROUTES = [route for route in app.ROUTES + app.COMPATIBLE_ROUTES if route.guard in guards.OF_KEYS]
ALLOWED = {  # what each scope may call; a key that may do everything may call all
    SEND: {
        "POST /api/v1/notifications/send",
        "GET /api/v1/notifications/<id:notification_id>",
        "DELETE /api/v1/notifications/<id:notification_id>",
        "POST /api/v1/notifications/<id:notification_id>/acknowledge",
        "POST /api/webhooks/custom",
        "POST /mcp",
        "POST /gotify/message",
        *(route.endpoint for route in ROUTES if route.guard is guards.ntfy_key),
    },
    READ: {"POST /mcp", *(route.endpoint for route in ROUTES if route.endpoint.startswith("GET /api/v1/"))},
}


@pytest.fixture
def limited(service, owner):
    """A function that makes another key of the account, and returns its caller."""

    def make(scope, **more):
        made = owner.post("/api-keys/generate", {"name": scope, "scope": scope, **more})
        assert made.status_code == 201, made.json
        return Caller(service, made.json["apiKey"]["fullKey"])

    return make


@pytest.fixture
def of_scopes(limited):
    """A caller with a key of each scope that does not allow everything."""
    return {scope: limited(scope) for scope in ALLOWED}


def sent_by(caller, **more):
    """The id of a notification that a caller sends."""
    return caller.post("/notifications/send", SENT | more).json["notification"]["id"]


@each("scope, route", [(scope, route) for scope in ALLOWED for route in ROUTES])
def test_every_route_asks_for_the_scope_of_the_key_before_it_looks_at_the_body(of_scopes, moved_clock, scope, route):
    moved_clock.advance(61)
    path = re.sub(r"<(?:\w+:)?\w+>", "x", route.rule)
    answer = of_scopes[scope].request(route.method, path, data=LARGE)
    is_refused = NOT_ALLOWED[scope] in answer.text or answer.status_code == 403
    assert is_refused == (route.endpoint not in ALLOWED[scope]), answer.text
    if is_refused and route.rule.startswith("/api/v1/"):
        assert (answer.status_code, answer.json) == (404, error(404, "NOT_FOUND", NOT_ALLOWED[scope]))


def test_a_route_that_does_not_say_which_keys_may_call_it_stops_the_start():
    unstated = app.ROUTES[0]._replace(scopes=frozenset())
    with pytest.raises(ValueError, match="POST /api/v1/notifications/send does not say"):
        app._add_routes(app.Application("x"), [unstated])


def test_a_key_that_may_only_send_reaches_only_what_it_sent(limited, owner):
    sender, other = limited(SEND), limited(SEND)
    own = sent_by(sender)
    alarm = {"everyS": 30, "forS": 60}
    others = [sent_by(caller, acknowledge=alarm) for caller in (owner, other)]
    assert sender.get(f"/notifications/{own}").status_code == 200
    for id_ in (*others, "unknown"):
        answers = [
            sender.get(f"/notifications/{id_}"),
            sender.get(f"/notifications/{id_}?wait=1"),
            sender.post(f"/notifications/{id_}/acknowledge", {}),
            sender.delete(f"/notifications/{id_}"),
        ]
        assert {(answer.status_code, answer.json["error"]) for answer in answers} == {
            (404, "Not found: no such address or id.")
        }
    assert sender.delete(f"/notifications/{own}").status_code == 200
    assert [owner.get(f"/notifications/{id_}").status_code for id_ in others] == [200, 200]


def test_a_tag_of_a_key_that_may_only_send_replaces_only_what_it_sent(limited, owner):
    sender = limited(SEND)
    whole, first, second = (sent_by(caller, tag="t") for caller in (owner, sender, sender))
    assert owner.get(f"/notifications/{first}").json["notification"]["replacedBy"] == second
    assert "replacedBy" not in owner.get(f"/notifications/{whole}").json["notification"]


def test_a_key_that_may_only_send_does_not_learn_that_another_key_replaced_what_it_sent(limited, owner):
    sender = limited(SEND)
    first, newer = (sent_by(caller, tag="t") for caller in (sender, owner))
    assert owner.get(f"/notifications/{first}").json["notification"]["replacedBy"] == newer
    assert "replacedBy" not in sender.get(f"/notifications/{first}").json["notification"]
    own, newest = (sent_by(sender, tag="own") for _ in range(2))
    assert sender.get(f"/notifications/{own}").json["notification"]["replacedBy"] == newest


def test_ntfys_clear_and_delete_reach_only_what_the_key_sent(limited, owner):
    sender = limited(SEND)
    whole = sent_by(owner, tag="t")
    assert sender.request("DELETE", "/topic/t").status_code == 200
    assert owner.get(f"/notifications/{whole}").status_code == 200
    assert owner.request("DELETE", "/topic/t").status_code == 200
    assert owner.get(f"/notifications/{whole}").status_code == 404


def test_the_idempotency_keys_of_a_key_that_may_only_send_are_its_own(limited, owner):
    sender, headers = limited(SEND), {"Idempotency-Key": "k"}
    ids = [
        caller.post("/notifications/send", SENT, headers=headers).json["notification"]["id"]
        for caller in (owner, sender, sender, limited(SEND))
    ]
    assert ids[1] == ids[2] and len({*ids}) == 3


@each(
    "scope, names",
    [
        (SEND, ["send_notification", "ask", "get_notification"]),
        (
            READ,
            ["list_notifications", "get_notification", "list_alerts", "list_watches", "get_stats", "list_api_keys"],
        ),
    ],
)
def test_an_assistant_sees_the_tools_that_its_key_allows(limited, scope, names):
    caller = limited(scope)
    assert [tool["name"] for tool in assistants.ask(caller, "tools/list").json["result"]["tools"]] == names
    unseen = {"name": "get_stats" if scope == SEND else "ask", "arguments": {}}
    assert assistants.ask(caller, "tools/call", unseen).json["error"]["code"] == -32602


@each("scope, says_how_to_send", [(FULL, True), (SEND, True), (READ, False)])
def test_an_assistant_is_told_of_no_tool_that_its_key_does_not_allow(limited, scope, says_how_to_send):
    begun = assistants.ask(limited(scope), "initialize", {"protocolVersion": "2025-11-25"}).json["result"]
    assert ("send_notification" in begun["instructions"]) == says_how_to_send
    assert "Times are Unix milliseconds." in begun["instructions"]


def test_ntfys_token_says_when_the_key_expires(limited, owner):
    ends = clock.now_ms() + DAY_MS
    tokens = [one.request("POST", "/v1/account/token").json for one in (limited(SEND, expiresAt=ends), owner)]
    assert [token["expires"] for token in tokens] == [ends // 1_000, 0]


def test_a_key_that_may_only_read_does_not_wait(limited, owner):
    sent = sent_by(owner)
    answer = limited(READ).get(f"/notifications/{sent}?wait=1")
    assert (answer.status_code, answer.json["error"]) == (404, NOT_ALLOWED[READ])


def test_scope_and_expiry_are_named_where_they_are_not_the_default(owner, moved_clock):
    ends = clock.now_ms() + DAY_MS
    made = owner.post("/api-keys/generate", {"name": "a", "scope": SEND, "expiresAt": ends}).json["apiKey"]
    assert (made["scope"], made["expiresAt"]) == (SEND, ends)
    plain = owner.post("/api-keys/generate", {"name": "b", "scope": FULL}).json["apiKey"]
    listed = {key["name"]: key for key in owner.get("/api-keys").json["apiKeys"]}
    assert plain.keys().isdisjoint({"scope", "expiresAt"}) and listed["b"].keys().isdisjoint({"scope", "expiresAt"})
    assert (listed["a"]["scope"], listed["a"]["expiresAt"]) == (SEND, ends)


NO_TIME = "expiresAt must be a whole number: a Unix time in milliseconds, from 0 to the end of the year 9999."


@each(
    "fields, sentence",
    [
        ({"scope": "admin"}, "scope must be full, send or read."),
        ({"scope": 1}, "scope must be a string."),
        ({"scope": ""}, "scope must be full, send or read."),
        ({"expiresAt": "tomorrow"}, NO_TIME),
        ({"expiresAt": True}, NO_TIME),
        ({"expiresAt": -1}, NO_TIME),
        ({"expiresAt": 1_800_000_000}, "expiresAt looks like seconds: it takes milliseconds."),
        ({"expiresAt": 1}, "expiresAt must be from 1 minute to 10 years ahead."),
        ({"expiresAt": 10**14}, "expiresAt must be from 1 minute to 10 years ahead."),
    ],
)
def test_a_wrong_scope_or_expiry_makes_no_key(owner, fields, sentence):
    refused = owner.post("/api-keys/generate", {"name": "n", **fields})
    assert (refused.status_code, refused.json["error"]) == (400, sentence)
    assert len(owner.get("/api-keys").json["apiKeys"]) == 1


def test_a_key_expires_at_its_time_and_is_then_listed_as_revoked(limited, owner, moved_clock):
    ends = clock.now_ms() + 60_000
    caller = limited(FULL, expiresAt=ends)
    moved_clock.advance(59.999)
    assert caller.get("/stats").status_code == 200
    moved_clock.advance(0.001)
    assert caller.get("/stats").status_code == 401 and caller.send().status_code == 401
    api_keys.look_at_ends(clock.now_ms())
    assert owner.get("/api-keys").json["apiKeys"][0]["revokedAt"] == ends


def test_an_open_stream_ends_when_its_key_expires_although_nothing_changes_in_the_database(limited, moved_clock):
    key = limited(FULL, expiresAt=clock.now_ms() + 60_000).key
    owner = find_caller(sha256_of(key), clock.now_ms())
    stream = streams.Empty("none", WANTED, lambda event: event["event"].encode(), owner, confirm=lambda: None)
    assert (stream.next(), stream.next()) == (b"open", None)
    moved_clock.advance(59.999)
    assert stream.next() is None
    moved_clock.advance(0.001)
    with pytest.raises(Ended):
        stream.next()


def test_its_owner_is_told_once_seven_days_before_a_key_expires(limited, owner, moved_clock):
    long, short = clock.now_ms() + 8 * DAY_MS, clock.now_ms() + 7 * DAY_MS - 1
    limited(SEND, expiresAt=long), limited(READ, expiresAt=short)
    told = lambda: [one["title"] for one in owner.listed()]  # noqa: E731
    api_keys.look_at_ends(clock.now_ms())
    moved_clock.advance(86_400 - 0.001)
    api_keys.look_at_ends(clock.now_ms())
    assert told() == []
    moved_clock.advance(0.001)
    for _ in range(2):
        api_keys.look_at_ends(clock.now_ms())
        assert told() == ["MCP - API key expires soon: send"]


def test_a_key_that_may_only_read_sees_no_address_that_takes_events_or_pings(limited, owner):
    reader = limited(READ)
    sent = {"alerts": {"name": "Disk"}, "heartbeats": {"name": "Backup", "periodS": 60}}
    for path, body in sent.items():
        made = owner.post(f"/{path}", body).json[path[:-1]]
        assert made["url"] and reader.get(f"/{path}/{made['id']}").json[path[:-1]] == {**made, "url": None}
    assert reader.get("/heartbeats").json["heartbeats"] == [{**made, "url": None}]
