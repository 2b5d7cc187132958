"""The official client of the Model Context Protocol (the package `mcp`) against the service as it is run."""

import json
import os
from functools import partial

import pytest

from tests.support.accounts import OWNER
from tests.support.buttons import paths
from tests.support.server import PATIENCE_S, bearer, serving

pytestmark = pytest.mark.skipif(os.name != "posix", reason="gunicorn runs on POSIX alone")
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}  # how it begins, and the version that it then speaks


@pytest.fixture(scope="module")
def server(tmp_path_factory, push_server):
    settings = {"WEBPUSH_HOSTS": push_server.origin}
    with serving(tmp_path_factory.mktemp("assistants") / "data", **settings) as server:
        server.key = server.wait_until_ready().owner_key()
        server.flask("alert", "create", OWNER, "Backups")
        server.flask("heartbeat", "create", OWNER, "Nightly", "--cron", "0 3 * * *")
        yield server


@pytest.fixture
def key(server):
    return server.new_key(server.key, "assistant")


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def mcp():
    """The package, imported for these tests alone: it takes half a second, and every worker imports every file."""
    return pytest.importorskip("mcp")


@pytest.fixture
def connected(mcp, server, key, mode):
    """Runs an async function with a client that is initialized."""
    import anyio  # these come with it
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def session(work):
        headers = {"Authorization": f"Bearer {key}"}
        # It need not read the trusted certificates, which takes 20 ms: the service is reached without TLS.
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, verify=False) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{server.port}/mcp", http_client=http)
            async with mcp.Client(transport, mode=mode) as client:
                return await work(client)

    return partial(anyio.run, session)


def called(connected, tool, /, **arguments):
    """The result of a tool; the client holds it against the tool's schema."""
    return connected(lambda client: client.call_tool(tool, arguments))


async def hello(client):
    return client.protocol_version, client.server_info.name, "push notifications" in client.instructions


def test_client_and_server_agree_on_a_version(connected, mode):
    assert connected(hello) == (MODES[mode], "pocketbell", True)


def test_the_client_lists_the_tools(connected):
    tools = connected(lambda client: client.list_tools()).tools
    assert len(tools) == 9 and all(tool.title and tool.description and tool.annotations for tool in tools)


def test_the_client_sends_and_finds_a_notification(connected, mode):
    title = f"Backup {mode}"
    sent = called(connected, "send_notification", title=title, body="finished").structured_content["notification"]
    assert (sent["title"], sent["status"]) == (f"MCP - {title}", "delivered")
    found = called(connected, "list_notifications", search=title.upper(), limit=1).structured_content
    assert found["notifications"] == [sent]


def test_the_client_asks_and_reads_the_owners_answer(server, connected, push_service):
    phone = push_service.browser()
    server.subscribe(server.key, phone)
    question = {"question": "Deploy version 7?", "answers": ["Yes", "No", "Später"], "timeoutS": 600}
    asked = called(connected, "ask", **question).structured_content["notification"]
    assert asked["expiresAt"] - asked["createdAt"] == pytest.approx(600_000, abs=1_000)
    shown = phone.messages[-1]["notification"]
    assert (shown["title"], shown["body"], shown["tag"]) == ("MCP - Question", "Deploy version 7?", asked["id"])
    assert "answer" not in called(connected, "get_notification", id=asked["id"]).structured_content["notification"]
    assert server.request("POST", paths(phone)["Später"]).status == 200
    read = called(connected, "get_notification", id=asked["id"], wait=25).structured_content["notification"]
    assert read["answer"]["answer"] == read["answer"]["label"] == "Später"
    (device,) = json.loads(server.get("/api/v1/devices", server.key).text)["devices"]
    assert read["answer"]["device"] == device["id"]
    assert server.request("DELETE", f"/api/v1/devices/{device['id']}", headers=bearer(server.key)).status == 200


def test_the_client_hears_why_a_call_was_refused(connected):
    refused = called(connected, "send_notification", title="t", body=" ")
    assert refused.is_error and refused.content[0].text == "body must not be blank."
