"""Where ntfy's and Gotify's addresses are: beside ours, nowhere once switched off; hostile input."""

import base64
import logging
import re
from unittest.mock import ANY

import pytest

import app
from process import counters
from process.logs import WithoutSecrets
from tests.support.answers import error
from tests.support.rows import each
from web.moving_windows import Counted

NOT_FOUND = error(404, "NOT_FOUND")
ROUTES = [(route.method, route.rule) for route in app.COMPATIBLE_ROUTES]


def path_of(rule):
    return re.sub(r"<(?:\w+:)?\w+>", "backups", rule)


# --- beside our own addresses -------------------------------------------------------------------------------


CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": "*, Authorization",
}


@each("path", ["/", "/backups", "/backups/job-7", "/backups/job-7/clear", "/backups/json", "/a,b/sse", "/v1/account"])
def test_a_browser_may_ask_whether_a_page_may_send_without_a_key(service, path):
    asks = {"Origin": "https://elsewhere.example", "Access-Control-Request-Headers": "authorization,title"}
    answer = service.client.options(path, headers=asks | {"Access-Control-Request-Method": "PUT"})
    assert (answer.status_code, answer.data) == (204, b"")
    assert CROSS_ORIGIN.items() <= dict(answer.headers).items()


@each("path", ["/backups/json?poll=1", "/backups/publish", "/v1/x", "/v1/health", "/v1/account"])
def test_a_page_may_read_every_answer_without_a_cookie(service, pro, path):
    for answer in (pro.request("GET", path), service.client.post(path)):
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert not {"Set-Cookie", "Access-Control-Allow-Credentials"} & {*answer.headers.keys()}


@each("path", ["/app/", "/api/v1/stats", "/p/abcdefg", "/", "/healthz", "/gotify/version", "/mcp", "/a/x", "/ping/x"])
def test_a_page_of_another_site_may_read_nothing_else(pro, path):
    assert "Access-Control-Allow-Origin" not in pro.request("GET", path).headers
    if path != "/":
        answer = pro.request("OPTIONS", path)
        assert answer.status_code in (404, 405) and "Access-Control-Allow-Origin" not in answer.headers


@each("sent", ["?token=AbCdEfGhIjKlMn0", "?token=sk_test_x"])
def test_gotifys_own_address_says_where_it_is(service, sent):
    answer = service.client.post(f"/message{sent}", json={"message": "x"})
    assert (answer.status_code, answer.json["error"], answer.json["errorCode"]) == (404, "Not Found", 404)
    assert "/gotify/message" in answer.json["errorDescription"]


@each("segment", sorted(app.OWN_SEGMENTS - {""}))
def test_no_route_of_pocketbell_begins_like_a_topic(pro, segment):
    for path in (f"/{segment}", f"/{segment}/job-7"):
        answer = pro.request("PUT", path, data="x")
        assert answer.status_code in (404, 405)
        assert answer.json == error(answer.status_code, ANY) or path.startswith("/app/")  # a page
    assert pro.listed() == []


def test_the_first_segments_of_our_addresses_are_found_in_the_routes():
    assert {"", "api", "app", "docs", "healthz", "mcp", "metrics", "openapi.json", "p"} <= app.OWN_SEGMENTS
    assert {"v1", "gotify"} <= app.COMPATIBLE_SEGMENTS and not any("<" in one for one in app.OWN_SEGMENTS)


# --- switched off -------------------------------------------------------------------------------------------


@pytest.fixture
def off(make_service, moved_clock):
    service = make_service(COMPATIBILITY="off")
    service.account()
    return service.caller()


@each("method, rule", ROUTES)
def test_switched_off_they_are_404(off, method, rule):
    for method_ in {method, "DELETE", "OPTIONS"} if rule != "/" else {method}:
        answer = off.request(method_, path_of(rule), data="x")
        assert (answer.status_code, answer.json) == (404, NOT_FOUND)
    assert {labels[:2] for labels in counters.counted("responses")} == {("-", "-")}


def test_switched_off_a_405_names_only_the_methods_that_are_there(off):
    answer = off.request("DELETE", "/")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


# --- what is logged -----------------------------------------------------------------------------------------


@each("method, rule", ROUTES)
def test_the_log_and_the_counters_have_the_pattern_of_the_route_alone(pro, method, rule):
    counters.reset()
    pro.request(method, f"{path_of(rule)}?token={pro.key}", data="x")
    (counted,) = counters.counted("responses")
    assert counted[:2] == (method, rule)


def test_a_key_is_in_no_log_however_it_was_sent(pro, caplog, monkeypatch):
    encoded = base64.urlsafe_b64encode(f"Bearer {pro.key}".encode()).decode()
    monkeypatch.setattr("core.delivery.deliver", lambda *_: 1 / 0)
    with caplog.at_level(logging.DEBUG):
        pro.request("GET", f"/backups/publish?auth={encoded}")
        pro.request("POST", f"/gotify/message?token={pro.key}", json={"message": "x"})
    assert "failed" in caplog.text and pro.key[16:] not in caplog.text and encoded[:20] not in caplog.text


@each("line", ["/t/publish?auth={}", "/t?m=x&authorization={}&x", "/gotify/message?token={}", "/t?AUTH={}"])
def test_the_filter_of_the_log_takes_them_out_of_an_address(line):
    record = logging.LogRecord("gunicorn", logging.ERROR, "", 0, f"Error handling {line}", (), None)
    record.msg = record.msg.format("QmVhcmVyIHNr")
    assert WithoutSecrets().filter(record) and "QmVh" not in record.msg and "Error handling" in record.msg


# --- hostile input ------------------------------------------------------------------------------------------


@pytest.fixture
def unlimited(pro, monkeypatch):
    """A caller without a quota."""
    monkeypatch.setattr("web.rate_limits._count_for_caller", lambda *_: Counted(None, 0, 0, 0.0))
    return pro


def assert_answered(answer):
    assert answer.status_code in (200, 400, 401, 413), answer.data
    assert answer.status_code != 200 or answer.json["title"].startswith("MCP - ")


LONG = 16 * 1_024


QUERIES = {
    "m=": "x", "actions=": "view,", "actions=a": "=a", "t=": "=?", "actions=%22": "%5C", "delay=": "1s",
    "tags=": ",", "": "&", "t=x": "=?utf-8?q?a?= ", "p=": "9", "actions=%5B": "%5B", "auth=": "A",
}  # fmt: skip


@each("query", [begin + piece * (LONG // len(piece)) for begin, piece in QUERIES.items()])
def test_a_query_of_16_kilobytes_is_answered(unlimited, query):
    headers = {} if query.startswith("auth") else {"Authorization": f"Bearer {unlimited.key}"}
    assert_answered(unlimited.service.client.post(f"/backups?{query}", headers=headers))


@each("path", ["/", "/gotify/message"])
def test_deep_json_is_a_400(unlimited, path):
    body = b'{"topic": "t", "message": "x", "actions": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    answer = unlimited.request("POST", path, data=body)
    assert answer.status_code == 400 and "nesting deeper" in answer.text


def test_the_filter_of_the_log_takes_a_topic_of_a_device_out_too():
    topic = "pb" + "aB3" * 13 + "x"
    for line in (f"Error handling /{topic}/json", f"/other,{topic}/ws?since=all", f"/%70{topic[1:]}/auth"):
        record = logging.LogRecord("gunicorn", logging.ERROR, "", 0, line, (), None)
        assert WithoutSecrets().filter(record) and topic[5:] not in record.getMessage()
