"""gunicorn's log, adapted: each request is one JSON line. Must not know requests or handlers."""

import logging
from typing import Any

from gunicorn.glogging import Logger

from process.logs import JsonLines, RequestLine, WithoutSecrets


class JsonLogger(Logger):
    """Logs gunicorn's own lines, and one for each request, without secrets."""

    def setup(self, cfg: Any) -> None:
        """Set up the handlers."""
        super().setup(cfg)
        logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # our lines name none of these
        logging._srcfile = None  # nor the line of code, which takes logging longest to find
        for handler in self.error_log.handlers + self.access_log.handlers:
            handler.setFormatter(JsonLines())
        self.error_log.addFilter(WithoutSecrets())

    def access(self, environ: dict[str, Any], status: int, sent: int, took_s: float) -> None:
        """Log a request that was answered."""
        line = RequestLine(
            environ.get("pocketbell.request", "-"),
            environ.get("pocketbell.client") or environ["REMOTE_ADDR"],
            environ["REQUEST_METHOD"],
            environ.get("pocketbell.route", "-"),
            status,
            sent,
            round(took_s * 1_000),
        )
        for handler in self.access_log.handlers:
            handler.handle(line)

    def request(self, **fields: object) -> None:
        """Log one line about a request that no application answered."""
        self.access_log.info("request", extra={"fields": fields})
