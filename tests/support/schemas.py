"""The schemas of earlier versions, with rows that each of them could hold."""

import re

from store.engine import SCHEMA_VERSION
from tests.support.server import ROOT

SCHEMAS = sorted((ROOT / "tests/store/schemas").glob("*.sql"))
ALERT_COLUMNS = (
    "seq, id, account_seq, short_code, name, icon, color, title_template, frequency, ignores_quiet_hours, is_active,"
    " notification_count, last_triggered_at, created_at"
)
ALERT = "1, 'alert', 1, 'AbCdEf1', 'Disk', 'bell', '#3B82F6', '{{ a }}', '1h', 1, 1, 2, 7, 6"
ROWS = (  # statements, each with the first and the last schema that it is for
    (
        *(1, 14),
        "INSERT INTO account (seq, email, plan, time_zone, quiet_hours, notification_count, created_at)"
        " VALUES (1, 'old@example.org', 'pro', 'Europe/Berlin', '22:00-07:00', 2, 5),"
        " (2, 'empty@example.org', 'starter', 'UTC', NULL, 0, 5);",
    ),
    (  # the counts have a table of their own
        *(15, SCHEMA_VERSION),
        "INSERT INTO account (seq, email, plan, time_zone, quiet_hours, created_at)"
        " VALUES (1, 'old@example.org', 'pro', 'Europe/Berlin', '22:00-07:00', 5),"
        " (2, 'empty@example.org', 'starter', 'UTC', NULL, 5);",
    ),
    (
        *(1, SCHEMA_VERSION),
        "INSERT INTO session (token_hash, account_seq, created_at, expires_at) VALUES (x'02', 1, 11, 99);"
        "INSERT INTO api_key (seq, id, account_seq, name, preview, key_hash, created_at)"
        " VALUES (1, 'key', 1, 'nas', 'sk_test_01234567', x'00', 6);"
        "INSERT INTO notification (seq, id, account_seq, api_key_seq, alert_seq, title, body, status, created_at)"
        " VALUES (1, 'first', 1, 1, NULL, 'MCP - a', 'b', 'delivered', 7),"
        " (2, 'second', 1, NULL, 1, 'MCP - c', 'd', 'pending', 8);"
        "INSERT INTO device (seq, id, account_seq, kind, token, name, api_key_seq, created_at)"
        " VALUES (1, 'device', 1, 'fcm', 'token', 'Phone', 1, 6), (2, 'newer', 1, 'fcm', 'other', 'Tablet', 1, 10);"
        "INSERT INTO delivery VALUES (2, 1, 'pending', 3, 9, 8, 'Not now.');",
    ),
    (
        3,
        SCHEMA_VERSION,
        "UPDATE account SET known_device_seq = 2 WHERE seq = 1; UPDATE session SET last_seen_at = 11;",
    ),
    (1, 1, f"INSERT INTO alert ({ALERT_COLUMNS}) VALUES ({ALERT});"),
    (2, SCHEMA_VERSION, f"INSERT INTO alert ({ALERT_COLUMNS}, switched_on_at) VALUES ({ALERT}, 6);"),
    (1, 5, "INSERT INTO metric VALUES (1, 1, 'p', 'm', 'M', 1.5, '%', 7, '{}');"),
    (6, SCHEMA_VERSION, "INSERT INTO metric_series VALUES (1, 1, 'p', 'm');"),
    (6, SCHEMA_VERSION, "INSERT INTO metric VALUES (1, 1, 'M', 1.5, '%', 7, '{}');"),
    (1, 16, "INSERT INTO idempotency_key VALUES (1, 'once', x'01', 1, 'delivered', 7);"),
    (17, SCHEMA_VERSION, "INSERT INTO idempotency_key VALUES (1, 'once', x'01', 'first', 'delivered', 7);"),
    (
        *(11, SCHEMA_VERSION),
        "INSERT INTO heartbeat VALUES (1, 'beat', 'uuid', 1, 'Backup', 3600, NULL, 600, 4, 'up', 8, 9, NULL, 6);"
        "INSERT INTO ping VALUES (1, 1, 'start', NULL, 'began', 7), (2, 1, 'success', 0, 'ended', 8);",
    ),
)


def rows_of(number):
    """The statements that add rows to a database with this schema."""
    return "".join(statement for first, last, statement in ROWS if first <= number <= last)


def as_of_now(statement):
    """A statement on a table of an earlier schema, rewritten for the newest one."""
    of_series = "metric.*, account_seq, project_id, metric_id FROM metric JOIN metric_series s ON s.seq = series_seq"
    of_all_time = "SELECT notification_count FROM notification_day WHERE account_seq = seq AND day = ''"
    rewritten = re.sub(r"FROM metric\b", f"FROM (SELECT {of_series})", statement)
    rewritten = re.sub(r"FROM notification_day\b", "FROM (SELECT * FROM notification_day WHERE day <> '')", rewritten)
    counted = (
        f"SELECT account.*, NULL AS rules_version, coalesce(({of_all_time}), 0) AS notification_count FROM account"
    )
    rewritten = re.sub(r"FROM account\b", f"FROM ({counted})", rewritten)
    rewritten = re.sub(r"FROM held\b", "FROM (SELECT held.*, sender_seq AS alert_seq FROM held)", rewritten)
    of_key = "SELECT k.*, seq AS notification_seq FROM idempotency_key k JOIN notification ON id = notification_id"
    return re.sub(r"FROM idempotency_key\b", f"FROM ({of_key})", rewritten)
