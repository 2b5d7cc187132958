"""The log: one JSON object a line, so that programs can read it; also gunicorn's own lines, and one for each request.

Must not know handlers.
"""

import json
import logging
import re
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii as quoted
from typing import Any
from urllib.parse import unquote

from gunicorn.glogging import Logger

from process import clock, counters

SECRETS = re.compile(
    r"sk_[\w]*|pb[0-9A-Za-z]{40}|/(?:[aeip]|ping)/[^\s'\"]*|/app/(?:setup|phone)/[^\s'\"]*|\b(?:auth(?:orization)?|token)=[^\s'\"&]*",
    re.IGNORECASE,
)


class RequestLine(logging.LogRecord):
    """The line about a request that was answered, made at once: a usual record takes thrice as long."""

    levelno, levelname, args, exc_info = logging.INFO, "INFO", (), None

    def __init__(self, environ: dict[str, Any], status: int, sent: int, took_s: float) -> None:
        self.msg = (
            f'{{"time": "{_time(clock.now_ms() / 1000)}", "level": "info", "message": "request",'
            f' "request_id": {quoted(environ.get("pocketbell.request", "-"))},'
            f' "client": {quoted(environ.get("pocketbell.client") or environ["REMOTE_ADDR"])},'
            f' "method": {quoted(environ["REQUEST_METHOD"])},'
            f' "route": {quoted(environ.get("pocketbell.route", "-"))},'
            f' "status": {status}, "bytes": {sent}, "ms": {round(took_s * 1_000)}}}'
        )


class JsonLines(logging.Formatter):
    """Formats a record's time, level and message, and the `fields` that it was given."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever is in the message."""
        if isinstance(record, RequestLine):
            return str(record.msg)
        at = _time(record.created)
        line = {"time": at, "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _time(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")


class WithoutSecrets(logging.Filter):
    """Takes keys, short codes and links out of gunicorn's own log lines, which quote the addresses of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the record, without secrets and without the traceback of a broken connection."""
        message = record.getMessage()
        if "%" in message:  # a path may hide a secret in percent-encoding
            message = "".join(c if c.isprintable() or c in "\n\t" else " " for c in unquote(message))
        record.msg, record.args = SECRETS.sub("…", message), ()
        if record.exc_info and isinstance(record.exc_info[1], OSError):
            record.exc_info = None
        return True


class JsonLogger(Logger):
    """gunicorn's log: its own lines without secrets, and one for each request."""

    def setup(self, cfg: Any) -> None:
        """Set up the handlers."""
        super().setup(cfg)
        logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # our lines name none of these
        logging._srcfile = None  # nor the line of code, which takes logging longest to find
        for handler in self.error_log.handlers + self.access_log.handlers:
            handler.setFormatter(JsonLines())
        self.error_log.addFilter(WithoutSecrets())

    def access(self, environ: dict[str, Any], status: int, sent: int, took_s: float) -> None:
        """Log a request that was answered, and count its time."""
        counters.observe("request_seconds", took_s, environ.get("pocketbell.route", "-"))
        line = RequestLine(environ, status, sent, took_s)
        for handler in self.access_log.handlers:
            handler.handle(line)

    def request(self, **fields: object) -> None:
        """Log one line about a request that no application answered."""
        self.access_log.info("request", extra={"fields": fields})
