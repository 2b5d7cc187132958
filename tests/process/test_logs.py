"""The log: each line is one JSON object, and none has a key, a code or a link."""

import json
import logging
from datetime import UTC, datetime

from process import logs
from tests.support.rows import each


@each("text", ["a\nb", "a\r\nb", "\x1b[31m", "ü🔥\u2028", '"quoted"', "{}"])
def test_no_text_adds_a_line_to_the_log(text):
    record = logging.LogRecord("pocketbell", logging.INFO, "", 0, "%s", (text,), None)
    line = logs.JsonLines().format(record)
    assert len(line.splitlines()) == 1 and json.loads(line)["message"] == text


@each("at", [1_790_000_000.0, 1_790_000_000.25, 1_790_000_059.9375])
def test_a_line_has_its_time_in_utc_and_milliseconds(at):
    record = logging.LogRecord("pocketbell", logging.INFO, "", 0, "", (), None)
    record.created, record.msecs = at, at % 1 * 1000
    told = json.loads(logs.JsonLines().format(record))["time"]
    assert told == datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


@each("route", ["/api/v1/stats", "-", '/"quoted"/<a\\b>', "/ü🔥\u2028"])
def test_the_access_log_has_the_format_of_all_records(route, moved_clock):
    record = logging.LogRecord("gunicorn.access", logging.INFO, "", 0, "request", (), None)
    record.created, record.msecs = moved_clock.ms / 1000, moved_clock.ms % 1000
    told = {"request_id": "0123456789abcdef", "client": "2001:db8::1", "method": "GET", "route": route}
    record.fields = {**told, "status": 200, "bytes": 345, "ms": 7}
    environ = {"pocketbell.request": told["request_id"], "REMOTE_ADDR": told["client"], "REQUEST_METHOD": "GET"}
    environ["pocketbell.route"] = route
    line = logs.RequestLine(environ, 200, 345, 0.0071)
    assert logs.JsonLines().format(line) == logs.JsonLines().format(record)


@each(
    "address",
    [
        *("/api/v1/api-keys/sk_test_5ecret", "/p/c0d5ecr", "/a/t0ken5ecret", "/app/setup/l1nk5ecret", "/%70/c0d5ecr"),
        *("/app/phone/c0d5ecret", "/ping/u5ecret/fail", "/%61/t0ken5ecret", "/%73k_test_5ecret"),
        *("/e/t0ken5ecret", "/e/t0ken5ecret/stop", "/i/t0ken5ecret"),
    ],
)
def test_a_logged_address_has_no_key_code_or_link(address):
    record = logging.LogRecord("gunicorn.error", logging.DEBUG, "", 0, "Invalid request line: %r", (address,), None)
    assert logs.WithoutSecrets().filter(record)
    said = record.getMessage()
    assert said.startswith("Invalid request line: '") and "…" in said and "5ecr" not in said
