"""The official client of the Model Context Protocol (the package `mcp`) against the service as it is run."""

import json
import os
from functools import partial

import pytest

from tests.support.buttons import paths
from tests.support.rows import each
from tests.support.server import PATIENCE_S, bearer, serving

pytestmark = pytest.mark.skipif(os.name != "posix", reason="gunicorn runs on POSIX alone")
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}  # how it begins, and the version that it then speaks


@pytest.fixture(scope="module")
def server(tmp_path_factory, push_server):
    settings = {"WEBPUSH_HOSTS": push_server.origin}
    with serving(tmp_path_factory.mktemp("assistants") / "data", **settings) as server:
        server.key = server.wait_until_ready().owner_key()
        yield server


@pytest.fixture
def connected(server):
    """Runs an async function with a client that is initialized in this mode."""
    mcp = pytest.importorskip("mcp")  # for these tests alone: it takes half a second, and every worker imports them
    import anyio  # these come with it
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def session(mode, work):
        headers = {"Authorization": f"Bearer {server.key}"}
        # It need not read the trusted certificates, which takes 20 ms: the service is reached without TLS.
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, verify=False) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{server.port}/mcp", http_client=http)
            async with mcp.Client(transport, mode=mode) as client:
                return await work(client)

    return partial(anyio.run, session)


async def called(client, tool, /, **arguments):
    """What a tool gives; the client holds it against the tool's schema."""
    return (await client.call_tool(tool, arguments)).structured_content


@each("mode, version", MODES.items())
def test_client_and_server_agree_on_a_version_and_the_client_lists_the_tools(connected, mode, version):
    async def begin(client):
        assert (client.protocol_version, client.server_info.name) == (version, "pocketbell")
        assert "push notifications" in client.instructions
        return (await client.list_tools()).tools

    tools = connected(mode, begin)
    assert len(tools) == 9 and all(tool.title and tool.description and tool.annotations for tool in tools)


@each("mode", MODES)
def test_the_client_sends_and_finds_a_notification_and_hears_why_a_call_was_refused(connected, mode):
    title = f"Backup {mode}"

    async def send(client):
        sent = await called(client, "send_notification", title=title, body="finished")
        found = await called(client, "list_notifications", search=title.upper(), limit=1)
        return sent["notification"], found, await client.call_tool("send_notification", {"title": "t", "body": " "})

    sent, found, refused = connected(mode, send)
    assert (sent["title"], sent["status"]) == (f"MCP - {title}", "delivered")
    assert found["notifications"] == [sent]
    assert refused.is_error and refused.content[0].text == "body must not be blank."


@each("mode", MODES)
def test_the_client_asks_and_reads_the_owners_answer(server, connected, push_service, mode):
    phone = push_service.browser()
    server.subscribe(server.key, phone)
    question = {"question": "Deploy version 7?", "answers": ["Yes", "No", "Später"], "timeoutS": 600}

    async def ask(client):
        asked = (await called(client, "ask", **question))["notification"]
        before = (await called(client, "get_notification", id=asked["id"]))["notification"]
        assert server.request("POST", paths(phone)["Später"]).status == 200
        return asked, before, (await called(client, "get_notification", id=asked["id"], wait=25))["notification"]

    asked, before, read = connected(mode, ask)
    assert asked["expiresAt"] - asked["createdAt"] == pytest.approx(600_000, abs=1_000)
    shown = phone.messages[-1]["notification"]
    assert (shown["title"], shown["body"], shown["tag"]) == ("MCP - Question", "Deploy version 7?", asked["id"])
    assert "answer" not in before and read["answer"]["answer"] == read["answer"]["label"] == "Später"
    (device,) = json.loads(server.get("/api/v1/devices", server.key).text)["devices"]
    assert read["answer"]["device"] == device["id"]
    assert server.request("DELETE", f"/api/v1/devices/{device['id']}", headers=bearer(server.key)).status == 200
