"""Real answers are as the OpenAPI document describes them."""

from dataclasses import replace
from io import BytesIO

from jsonschema import Draft202012Validator

import app
from core import delivery, scheduler
from models import sha256_of
from process import clock
from store.senders import find_caller
from tests.support.openapi import DOCUMENT, OPERATIONS, SCHEMAS, World, endpoint, resolved
from tests.support.rows import each
from tests.support.tables import alter
from web import mcp, rate_limits
from wire import errors

RATE_LIMIT = {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
TOLD = RATE_LIMIT | {"Retry-After", "WWW-Authenticate", "Idempotent-Replayed", "Allow"}
QUOTAS = [one for one in vars(rate_limits).values() if isinstance(one, rate_limits.Quota)]  # the same for all plans
WRONG_METHOD = resolved(DOCUMENT["x-any-address"]["405"])


def must_be_as_described(answer, described):
    """Fail where a real answer has another type, header or field than the document says."""
    headers = described.get("headers", {})
    assert TOLD & set(answer.headers.keys()) <= set(headers)
    assert {name for name, header in headers.items() if header.get("required")} <= set(answer.headers.keys())
    for name, header in headers.items():
        if name in answer.headers:
            value = answer.headers[name]
            is_number = header["schema"]["type"] == "integer"
            Draft202012Validator(header["schema"]).validate(int(value) if is_number else value)
    if "content" not in described:
        assert answer.data == b""
        return
    media = described["content"][answer.mimetype]
    Draft202012Validator(media["schema"]).validate(answer.json if answer.is_json else answer.data.decode("latin-1"))
    always = {"ok", "success"} & set(answer.json) if answer.is_json else ()
    assert all(answer.json[name] is (answer.status_code < 400) for name in always)  # as their descriptions say


MODERN_HEADERS = {"MCP-Protocol-Version": mcp.MODERN, "Mcp-Method": "no/such"}
MODERN_META = {"protocolVersion": mcp.MODERN, "clientCapabilities": {}}
MODERN_PARAMS = {"_meta": {f"{mcp.META}{name}": value for name, value in MODERN_META.items()}}


def with_message(world, headers=None, **message):
    return world.call(OPERATIONS["sendMessage"], headers=headers, json={"jsonrpc": "2.0", "id": 1, **message})


def without_id(world, operation):
    if operation.id != "sendMessage":  # an invitation
        return world.call(operation)
    return world.call(operation, json={"jsonrpc": "2.0", "method": "notifications/initialized"})


class Broken(BytesIO):
    def read(self, size=-1):
        raise OSError("the connection is gone")


def not_readable(world, operation):
    return world.call(operation, input_stream=Broken(), environ_overrides={"HTTP_TRANSFER_ENCODING": "chunked"})


def without_key(world, operation):
    return world.call(operation, "0000000", key=False)


def from_another_site(world, operation):
    return world.call(operation, headers={"Origin": "https://elsewhere.example"})


def without_resource(world, operation):
    if operation.scheme == "metricsToken":
        settings = replace(world.service.settings, metrics_token=None)
        world.monkeypatch.setitem(app.app.config, "SETTINGS", settings)
    if operation.id == "sendMessage":
        return with_message(world, method="no/such", params=MODERN_PARAMS, headers=MODERN_HEADERS)
    if operation.id == "createMute":
        return world.call(operation, json={"what": "alert", "id": "0000000", "forS": 60})
    if operation.scheme == "apiKey" and "{" not in operation.path:  # what the key's scope does not allow
        scoped = {"name": "k", "scope": "send" if operation.method == "GET" else "read"}
        key = world.caller.post("/api-keys/generate", scoped).json["apiKey"]["fullKey"]
        return world.call(operation, key=False, headers={"Authorization": f"Bearer {key}"})
    return world.call(operation, id_="0000000")


def too_large(world, operation):
    return world.call(operation, data=b" " * (world.service.settings.max_body_bytes + 1))


def use_up(quota, key):
    """Leave one request of the quota."""
    left = quota.amount - rate_limits.used(quota, key)
    assert left <= 1 or rate_limits.limiter.limiter.hit(quota, str(key), cost=left - 1)


def too_often(world, operation):
    id_ = world.made(operation) if "{" in operation.path else None
    caller = find_caller(sha256_of(world.caller.key), clock.now_ms())
    use_up(rate_limits.REST["starter"], caller.key_seq)
    use_up(rate_limits.CUSTOM_METRICS["starter"], caller.account_seq)
    for quota in QUOTAS:
        world.monkeypatch.setattr(quota, "amount", 1)
    return [world.call(operation, id_) for _ in range(2)][1]


def again(world, operation):
    """Where a first request would create it, a second one."""
    if {201, 202} & set(operation.answers) and "/ping/" not in operation.path and operation.id != "sendMessage":
        id_ = world.made(operation) if "{" in operation.path else None
        return [world.call(operation, id_) for _ in range(2)][1]
    return world.call(operation)


def created(world, operation):
    if "/ping/" not in operation.path:
        return world.call(operation)
    return world.call(operation, query_string={"create": "1"}, id_=world.ping_key())


def while_it_runs(world, operation):
    if "/ping/" in operation.path:  # two heartbeats of that name
        return [world.made(operation) and world.call(operation, world.ping_key()) for _ in range(2)][1]
    if operation.id == "pressButton":  # a second time
        token = world.made(operation)
        return [world.call(operation, token) for _ in range(2)][1]
    if 201 in operation.answers:  # two of the same name
        alike = {name: value for name, value in operation.body.items() if name != "unique"}
        return [world.call(operation, json=sent) for sent in (alike, alike, operation.body)][2]
    if operation.id == "snoozeNotification":  # one that is not pushed
        least = world.caller.post("/notifications/send", {"title": "a", "body": "b", "priority": 1})
        return world.call(operation, id_=least.json["notification"]["id"])

    def send(*sent):
        raise errors.Refused(409)

    world.monkeypatch.setattr(delivery, "deliver", send)
    return world.call(operation)


def with_a_fault(world, operation):
    def fault(**arguments):
        raise ZeroDivisionError

    world.monkeypatch.setitem(app.app.view_functions, endpoint(operation), fault)
    is_ping = operation.path.startswith("/ping/")  # its guard comes first
    return world.call(operation, id_=world.made(operation) if is_ping else world.hook.code)


def while_it_is_ill(world, operation):
    world.monkeypatch.setattr(scheduler.background, "is_alive", lambda: False)
    return world.call(operation)


HOW = {  # in this order: the second request for what is created is answered 200, and the last one uses up a limit
    201: created,
    202: without_id,
    200: again,
    409: while_it_runs,
    400: not_readable,
    401: without_key,
    403: from_another_site,
    404: without_resource,
    413: too_large,
    503: while_it_is_ill,
    500: with_a_fault,
    429: too_often,
}
WRONG = {400, 401, 404, 413, 500, 429}  # what is tried with every operation


@each("operation", OPERATIONS.values())
def test_each_described_answer_is_given_as_it_is_described_and_no_other(world, moved_clock, monkeypatch, operation):
    world = World(world.service, monkeypatch, f"{operation.id.lower()}@example.org")
    assert set(operation.answers) <= set(HOW)
    has_404 = "{" in operation.path or operation.scheme == "apiKey"
    tried = set(operation.answers) | WRONG - (set() if has_404 else {404})
    for status in [one for one in HOW if one in tried]:
        moved_clock.advance(61)  # a key's limit is for a minute
        if "{slug}" in operation.path:  # two that are called alike have no address by their name
            alter(world.service, "DELETE FROM heartbeat")
        with monkeypatch.context() as world.monkeypatch:
            answer = HOW[status](world, operation)
        assert answer.status_code == status or status not in operation.answers
        must_be_as_described(answer, operation.answers[answer.status_code])
        has_caller = operation.scheme == "apiKey" and answer.status_code != 401
        assert RATE_LIMIT & set(answer.headers.keys()) == (RATE_LIMIT if has_caller else set())


@each("operation", OPERATIONS.values())
def test_a_wrong_method_is_answered_as_described(world, moved_clock, operation):
    moved_clock.advance(1)  # a key's limit is 100 a minute
    headers = {"Authorization": f"Bearer {world.caller.key}"}
    path = operation.path_with("0" * (22 if "{slug}" in operation.path else 7))
    answer = world.service.client.open(path, method="TRACE", headers=headers)
    assert answer.status_code == 405
    described = WRONG_METHOD
    if operation.id == "storeMetrics":
        described = {**described, "content": operation.answers[400]["content"]}
    must_be_as_described(answer, described)


BODIES = [one for one in OPERATIONS.values() if one.body]


@each("operation", BODIES)
@each("data", ["", "{", "[]", '"text"', b"\xff", '{"metrics": [{}], "projectId": "x"}'])
def test_a_wrong_body_is_answered_as_described(world, moved_clock, operation, data):
    moved_clock.advance(1)  # a key's limit is 100 a minute
    answer = world.call(operation, data=data)
    is_event = operation.id in ("receiveEvent", "putEvent") and data not in ("", "{")
    assert answer.status_code == (200 if is_event else 400)
    must_be_as_described(answer, operation.answers[answer.status_code])


@each(
    "message, status, outcome",
    [
        ({"method": "tools/list", "id": "a"}, 200, "result"),
        ({"method": "initialize", "params": {"protocolVersion": mcp.HANDSHAKES[0]}}, 200, "result"),
        ({"method": "tools/call", "params": {"name": "send_notification"}}, 200, "result"),
        ({"method": "tools/call", "params": {"name": "unknown"}}, 200, "error"),
        ({"method": "no/such"}, 200, "error"),
        ({"method": "ping", "params": {"_meta": {f"{mcp.META}protocolVersion": "x"}}}, 400, "error"),
        ({"method": "ping", "params": MODERN_PARAMS}, 400, "error"),
    ],
)
def test_the_answer_to_a_message_is_as_described(world, message, status, outcome):
    answer = with_message(world, **message)
    assert (answer.status_code, outcome in answer.json) == (status, True)
    must_be_as_described(answer, OPERATIONS["sendMessage"].answers[status])


def test_lists_with_everything_in_them_are_as_described(world):
    caller = world.caller
    with_key = {"headers": {"Idempotency-Key": "order-1"}}
    for _ in range(2):
        sent = caller.send(**with_key)
        must_be_as_described(sent, OPERATIONS["sendNotification"].answers[200])
    assert sent.headers["Idempotent-Replayed"] == "true"
    world.hook.post({"text": "disk full"})
    key = caller.post("/api-keys/generate", {"name": "old"}).json["apiKey"]["id"]
    caller.delete(f"/api-keys/{key}")
    caller.request("POST", OPERATIONS["storeMetrics"].path, OPERATIONS["storeMetrics"].body)
    for name in ("createHeartbeat", "createRule"):
        world.call(OPERATIONS[name])
    for name in ("listNotifications", "listAlerts", "listApiKeys", "listMetrics", "listHeartbeats", "listRules"):
        answer = world.call(OPERATIONS[name])
        assert len(next(value for value in answer.json.values() if isinstance(value, list))) >= 1
        must_be_as_described(answer, OPERATIONS[name].answers[200])


def test_an_inactive_alert_answers_as_described(world):
    world.hook.set("--inactive")
    answer = world.hook.post({})
    assert answer.json["status"] == "inactive"
    must_be_as_described(answer, OPERATIONS["receiveEvent"].answers[200])


def test_a_device_that_was_pushed_to_is_as_described(world, push_service):
    browser = push_service.browser()
    sent = {"kind": "webpush", "subscription": browser.subscription}
    Draft202012Validator(resolved(SCHEMAS["DeviceInput"])).validate(sent)
    must_be_as_described(world.caller.post("/devices", sent), OPERATIONS["addDevice"].answers[201])
    must_be_as_described(world.caller.send(), OPERATIONS["sendNotification"].answers[200])
    listed = world.caller.get("/devices")
    assert listed.json["devices"][0]["lastDeliveredAt"]
    must_be_as_described(listed, OPERATIONS["listDevices"].answers[200])
