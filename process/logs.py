"""The log: one JSON object a line, for whoever reads it with a program. Must not know requests or handlers."""

import json
import logging
import re
from datetime import UTC, datetime
from urllib.parse import unquote

SECRETS = re.compile(r"sk_[\w]*|/p/[^\s'\"]*|/app/setup/[^\s'\"]*")


class JsonLines(logging.Formatter):
    """Time, level and message of a record, and the `fields` it was given."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class WithoutSecrets(logging.Filter):
    """The server names addresses in its own log lines: a short code or a link may be in one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Leave the record in, without them, and without the traceback of a connection that broke."""
        message = record.getMessage()
        if "%" in message:  # a path as it was sent; what is written otherwise means the same
            message = "".join(c if c.isprintable() or c in "\n\t" else " " for c in unquote(message))
        record.msg, record.args = SECRETS.sub("…", message), ()
        if record.exc_info and isinstance(record.exc_info[1], OSError):
            record.exc_info = None
        return True
