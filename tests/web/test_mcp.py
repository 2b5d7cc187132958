"""POST /mcp, the Model Context Protocol: messages, versions, tools, and what it refuses."""

import base64
import json
import logging
from unittest.mock import ANY

import pytest
from jsonschema import Draft202012Validator

from core import delivery
from store.mutes import ALL
from store.subjects import SUBJECTS
from tests.support.assistants import ask, call, described, post
from tests.support.openapi import SCHEMAS
from tests.support.rows import each
from web import mcp

META = "io.modelcontextprotocol/"
VERSIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]
TOOLS = [
    *("send_notification", "ask", "list_notifications", "get_notification", "mute", "list_alerts", "list_watches"),
    *("get_stats", "list_api_keys"),
]
SENDING = {"name": "send_notification", "arguments": {"title": "t", "body": "b"}}
SERVER = {"name": "pocketbell", "title": "Pocketbell", "version": "1"}
FAULT = "Something went wrong on the server. It has been logged; try again later."


def ask_modern(caller, method, params=None, meta=None, **headers):
    """As the revision of 2026-07-28 has it; `headers` with _ for -, None leaves one out."""
    meta = {"protocolVersion": VERSIONS[0], "clientCapabilities": {}} if meta is None else meta
    sent = {"MCP-Protocol-Version": VERSIONS[0], "Mcp-Method": method}
    if method == "tools/call":
        sent["Mcp-Name"] = params["name"]
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    params = {**(params or {}), "_meta": {f"{META}{key}": value for key, value in meta.items()}}
    return ask(caller, method, params, {name: value for name, value in sent.items() if value is not None})


def error_of(answer):
    """HTTP status, JSON-RPC code and id of an error."""
    assert set(answer.json) == {"jsonrpc", "id", "error"} and answer.json["jsonrpc"] == "2.0"
    assert isinstance(answer.json["error"]["message"], str) and answer.content_type == "application/json"
    return answer.status_code, answer.json["error"]["code"], answer.json["id"]


# Versions


@each("version", VERSIONS[1:])
def test_initialize_agrees_to_the_version_of_the_client(owner, version):
    answer = ask(owner, "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x"}})
    assert (answer.status_code, answer.content_type, answer.json) == (
        200,
        "application/json",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": SERVER,
                "instructions": ANY,
            },
        },
    )
    assert "Mcp-Session-Id" not in answer.headers


@each("version", ["2024-11-05", "2026-07-28", "2099-01-01", ""])
def test_initialize_offers_the_newest_that_it_can_agree_to_otherwise(owner, version):
    answer = ask(owner, "initialize", {"protocolVersion": version})
    assert answer.json["result"]["protocolVersion"] == "2025-11-25"


@each("params", [{}, {"protocolVersion": None}, {"protocolVersion": 1}])
def test_initialize_needs_a_version(owner, params):
    assert error_of(ask(owner, "initialize", params)) == (200, -32602, 1)


@each("version", VERSIONS[1:])
def test_the_header_names_a_version_that_is_spoken(owner, version):
    assert ask(owner, "tools/list", headers={"MCP-Protocol-Version": version}).status_code == 200


@each("version", ["2024-11-05", "2099-01-01", "x", "2025-11-25, 2025-11-25"])
def test_an_unknown_version_in_the_header_is_refused_with_the_known_ones(owner, version):
    answer = ask(owner, "tools/list", headers={"MCP-Protocol-Version": version})
    assert error_of(answer) == (400, -32022, 1)
    assert answer.json["error"]["data"] == {"supported": VERSIONS, "requested": version}


def test_discover_lists_the_capabilities(owner):
    answer = ask_modern(owner, "server/discover")
    assert (answer.status_code, answer.json["result"]) == (
        200,
        {
            "supportedVersions": VERSIONS,
            "capabilities": {"tools": {}},
            "instructions": ANY,
            "ttlMs": 3_600_000,
            "cacheScope": "private",
            "resultType": "complete",
            "_meta": {f"{META}serverInfo": SERVER},
        },
    )


def test_a_request_of_the_newest_revision_is_complete_in_itself(owner):
    answer = ask_modern(owner, "tools/call", {"name": "list_alerts"})
    assert (answer.status_code, answer.json["result"]["resultType"]) == (200, "complete")
    assert answer.json["result"]["structuredContent"] == {"ok": True, "alerts": []}


@each(
    "changed",
    [
        {"MCP_Protocol_Version": None},
        {"MCP_Protocol_Version": "2025-11-25"},
        {"Mcp_Method": None},
        {"Mcp_Method": "tools/list"},
        {"Mcp_Name": None},
        {"Mcp_Name": "get_stats"},
        {"Mcp_Name": "=?base64?!?="},
        {"Mcp_Name": "=?base64?/w==?="},
    ],
)
def test_headers_that_contradict_the_body_are_refused(owner, changed):
    assert error_of(ask_modern(owner, "tools/call", SENDING, **changed)) == (400, -32020, 1)
    assert owner.listed() == []


def test_a_name_may_come_encoded(owner):
    name = f"=?base64?{base64.b64encode(b'get_stats').decode()}?="
    assert ask_modern(owner, "tools/call", {"name": "get_stats"}, Mcp_Name=name).status_code == 200


@each("meta", [{}, {"protocolVersion": VERSIONS[0]}, {"clientCapabilities": {}}])
def test_a_request_of_the_newest_revision_describes_itself(owner, meta):
    assert error_of(ask_modern(owner, "tools/list", meta=meta)) == (400, -32602, 1)


def test_an_unknown_version_in_the_body_is_refused(owner):
    meta = {"protocolVersion": "2099-01-01", "clientCapabilities": {}}
    assert error_of(ask_modern(owner, "tools/list", meta=meta, MCP_Protocol_Version="2099-01-01"))[:2] == (
        400,
        -32022,
    )


@each("method", ["initialize", "ping"])
def test_the_newest_revision_has_no_handshake(owner, method):
    assert error_of(ask_modern(owner, method)) == (404, -32601, 1)


# Messages


@each("message_id", [0, 1, -5, 10**99, "", "a", "é" * 1_000])
def test_the_answer_has_the_id_of_the_request(owner, message_id):
    answer = ask(owner, "ping", message_id=message_id)
    assert (answer.status_code, answer.json) == (200, {"jsonrpc": "2.0", "id": message_id, "result": {}})


@each("message_id", [None, True, 1.5, [], {}, [1], {"a": 1}])
def test_another_id_is_refused(owner, message_id):
    assert error_of(ask(owner, "ping", message_id=message_id)) == (400, -32600, None)


@each("method", ["notifications/initialized", "notifications/cancelled", "notifications/x"])
def test_a_notification_is_taken_without_an_answer(owner, method):
    for headers in (None, {"MCP-Protocol-Version": VERSIONS[0]}):
        answer = post(owner, {"jsonrpc": "2.0", "method": method}, headers)
        assert (answer.status_code, answer.data) == (202, b"")


@each(
    "method", ["", "tools", "tools/lists", "Ping", "resources/list", "prompts/list", "logging/setLevel", "__class__"]
)
def test_an_unknown_method_is_refused(owner, method):
    assert error_of(ask(owner, method)) == (200, -32601, 1)


@each(
    "message, message_id",
    [
        ({}, None),
        ({"id": 1}, 1),
        ({"id": 1, "method": "ping"}, 1),
        ({"id": 1, "method": "ping", "jsonrpc": "1.0"}, 1),
        ({"id": 1, "method": "ping", "jsonrpc": 2.0}, 1),
        ({"id": 1, "jsonrpc": "2.0"}, 1),
        ({"id": 1, "jsonrpc": "2.0", "method": 1}, 1),
        ({"id": 1, "jsonrpc": "2.0", "method": ["ping"]}, 1),
        ({"id": 1, "jsonrpc": "2.0", "result": {}}, 1),
        ({"jsonrpc": "2.0", "method": "ping"}, None),
        ({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "get_stats"}}, None),
    ],
)
def test_an_invalid_request_is_refused(owner, message, message_id):
    assert error_of(post(owner, message)) == (400, -32600, message_id)


@each("text", ["", "{", "nonsense", '{"id": NaN}', "[" * 65, '{"id": "\\ud800"}', b"\xff", '[NaN,"\\x"]'])
def test_invalid_json_is_refused(owner, text):
    assert error_of(post(owner, data=text)) == (400, -32700, None)


@each("text", ["[]", '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', "1", "null", '"ping"'])
def test_a_batch_is_refused_as_is_all_that_is_no_object(owner, text):
    answer = post(owner, data=text)
    assert error_of(answer) == (400, -32600, None)
    assert answer.json["error"]["message"].startswith("The body must be a JSON object, not ")


@each("params", [[], "x", 1, True, [{}]])
@each("method", ["initialize", "ping", "tools/list", "tools/call"])
def test_params_are_an_object(owner, method, params):
    assert error_of(ask(owner, method, params)) == (200, -32602, 1)


@each(
    "params",
    [
        {},
        {"name": None},
        {"name": 1},
        {"name": ["get_stats"]},
        {"name": {}},
        {"name": "unknown"},
        {"name": "Get_stats"},
        {"name": "get_stats", "arguments": []},
        {"name": "get_stats", "arguments": "x"},
        {"name": "get_stats", "_meta": []},
    ],
)
def test_a_call_names_a_tool_and_an_object_of_arguments(owner, params):
    assert error_of(ask(owner, "tools/call", params)) == (200, -32602, 1)


# Who may call


@each("origin", ["https://elsewhere.example", "http://localhost", "null", ""])
def test_a_page_of_another_site_is_refused(owner, origin):
    for headers in ({"Origin": origin}, {"Origin": origin, "Host": origin.rpartition("/")[2] or "x"}):
        answer = ask(owner, "tools/call", SENDING, headers)
        assert answer.status_code == 403
        assert answer.json == {"ok": False, "error": ANY, "code": "VALIDATION_ERROR", "statusCode": 403}
    assert owner.listed() == []


@pytest.mark.parametrize("settings", [{}, {"BASE_URL": "https://bell.example.org"}])
def test_our_own_origin_is_not_refused(make_service, moved_clock, settings):
    service = make_service(**settings)
    service.account()
    origin = settings.get("BASE_URL", "http://127.0.0.1:8000")
    assert ask(service.caller(), "ping", headers={"Origin": origin}).status_code == 200


# Tools


def test_the_tools_are_listed(owner):
    assert list(described(owner)) == TOOLS


def test_a_tool_is_described(owner):
    assert described(owner)["send_notification"] == {
        "name": "send_notification",
        "title": "Send a notification",
        "description": ANY,
        "inputSchema": {
            "type": "object",
            "properties": ANY,
            "required": ["title", "body"],
            "additionalProperties": False,
        },
        "outputSchema": ANY,
        "annotations": {
            "title": "Send a notification",
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": True,
        },
    }


def test_tools_are_marked_as_read_only_or_destructive(owner):
    tools = described(owner)
    reading = {name for name, tool in tools.items() if tool["annotations"]["readOnlyHint"]}
    of_the_account = {"list_alerts", "list_watches", "get_stats", "list_api_keys"}
    assert reading == {"list_notifications", "get_notification", *of_the_account}
    assert {name for name, tool in tools.items() if tool["annotations"]["destructiveHint"]} == set()


def test_tools_take_what_the_rest_api_takes_except_null(owner):
    taken = {name: tool["inputSchema"]["properties"] for name, tool in described(owner).items()}
    assert "null" not in json.dumps(taken)
    assert list(taken["send_notification"]) == [*SCHEMAS["NotificationInput"]["properties"], "idempotencyKey"]
    assert list(taken["send_notification"]["actions"]["items"]["properties"]) == ["label", "url", "answer"]
    assert list(taken["mute"]) == list(SCHEMAS["MuteInput"]["properties"])
    assert all(f"`{word}`" in taken["mute"]["what"]["description"] for word in (ALL, *SUBJECTS))
    assert (list(taken["list_notifications"]), taken["get_stats"]) == (["limit", "cursor", "search"], {})
    assert taken["get_notification"]["wait"]["maximum"] == 25


def test_a_mute_is_made_as_by_the_rest_api(owner, service, moved_clock):
    hook = service.alert(name="Disk")
    again = {"what": "alert", "id": hook.id, "forS": 60, "cron": "0 2 * * sun"}
    for arguments in ({"what": "all", "forS": 60}, again):
        answer = call(owner, "mute", arguments)["structuredContent"]
        Draft202012Validator(described(owner)["mute"]["outputSchema"]).validate(answer)
        assert answer == {"ok": True, "mute": owner.get("/mutes").json["mutes"][0]}


def test_the_same_idempotency_key_sends_once(owner):
    arguments = {"title": "t", "body": "b", "idempotencyKey": "k"}
    first, second = (call(owner, "send_notification", arguments) for _ in range(2))
    assert first == second and len(owner.listed()) == 1
    assert owner.send("t", "b", headers={"Idempotency-Key": "k"}).headers["Idempotent-Replayed"] == "true"


def test_a_notification_is_sent_with_every_field_and_read(owner, moved_clock):
    more = {"priority": "high", "url": "https://example.org/", "tag": "disk", "expiresAt": moved_clock.ms + 1}
    sent = call(owner, "send_notification", {"title": "t", "body": "b", **more})["structuredContent"]["notification"]
    assert {name: sent[name] for name in more} == {**more, "priority": 4}
    assert call(owner, "get_notification", {"id": sent["id"]}) == {
        "content": [{"type": "text", "text": ANY}],
        "structuredContent": {"ok": True, "notification": {**sent, "deliveries": []}},
        "isError": False,
    }


@each(
    "tool, path",
    [
        ("list_notifications", "/notifications"),
        ("list_alerts", "/alerts"),
        ("list_watches", "/watches"),
        ("get_stats", "/stats"),
        ("list_api_keys", "/api-keys"),
    ],
)
def test_a_tool_that_reads_answers_like_the_rest_api_and_its_schema(owner, service, tool, path):
    owner.send()
    service.alert()
    result, answer = call(owner, tool), owner.get(path).json
    assert (result["structuredContent"], result["isError"]) == (answer, False)
    (text,) = result["content"]
    assert (text["type"], json.loads(text["text"])) == ("text", answer)
    Draft202012Validator(described(owner)[tool]["outputSchema"]).validate(answer)


def test_null_counts_as_absent(owner):
    result = call(owner, "list_notifications", {"search": None, "cursor": None, "limit": None})
    assert result["structuredContent"]["notifications"] == []


@each(
    "tool, arguments, sentence",
    [
        ("send_notification", {}, "title is required."),
        (
            "send_notification",
            {"title": "t", "body": "b", "idempotencyKey": "ä"},
            "Idempotency-Key must be 1 to 255 visible ASCII characters.",
        ),
        ("send_notification", {"title": "t", "body": "b", "idempotencyKey": 1}, "idempotencyKey must be a string."),
        (
            "send_notification",
            {"title": "t", "body": "b", "prio": 1},
            "This tool does not take prio: it takes title, body,"
            " priority, url, tag, expiresAt, actions, acknowledge, deliverAt, image, idempotencyKey.",
        ),
        ("mute", {"what": "all", "forS": 59}, "forS must be a whole number of seconds from 60 to 31,622,400."),
        (
            "mute",
            {"what": "all", "for": 60},
            "This tool does not take for: it takes what, id, forS, until, cron, mode, urgentPasses.",
        ),
        ("get_stats", {"x": 1}, "This tool does not take x: it takes no arguments."),
        ("list_notifications", {"limit": 0}, "limit must be a whole number of at least 1."),
        ("list_notifications", {"limit": True}, "limit must be a whole number of at least 1."),
        ("list_notifications", {"limit": [1]}, "limit must be a whole number of at least 1."),
        ("list_notifications", {"cursor": 1}, "cursor must be a string."),
        ("get_notification", {}, "id is required."),
        ("get_notification", {"id": 1}, "id must be a string."),
        ("get_notification", {"id": "unknown"}, "Not found: no such address or id."),
    ],
)
def test_a_refusal_is_a_result_for_the_assistant_to_read(owner, tool, arguments, sentence):
    refused = {"content": [{"type": "text", "text": sentence}], "isError": True}
    assert call(owner, tool, arguments) == refused


# Faults


OUT_OF_THE_REQUEST = "words of a payload"


def broken(*_):
    raise RuntimeError(OUT_OF_THE_REQUEST)


def test_a_fault_is_logged_and_told_without_detail(owner, monkeypatch, caplog):
    monkeypatch.setattr(delivery, "deliver", broken)
    answer = ask(owner, "tools/call", SENDING, message_id="a")
    assert answer.status_code == 500
    assert answer.json == {"jsonrpc": "2.0", "id": "a", "error": {"code": -32603, "message": FAULT}}
    assert answer.headers["X-Request-Id"]
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().startswith("POST /mcp failed: RuntimeError\n")
    assert OUT_OF_THE_REQUEST not in record.getMessage()


def test_a_fault_before_the_message_is_read_has_no_id(owner, monkeypatch):
    monkeypatch.setattr(mcp, "read_object", broken)
    assert error_of(ask(owner, "ping")) == (500, -32603, None)
