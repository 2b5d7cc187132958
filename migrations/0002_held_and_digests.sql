-- Notifications can be held and released in digests. The seq of an alert or a notification is never given again, and
-- switching an alert on starts its flood count afresh.
DROP INDEX alert_of_account;
DROP INDEX notification_of_account;
DROP INDEX delivery_due;
DROP INDEX idempotency_key_of_notification;
ALTER TABLE alert RENAME TO old_alert;
ALTER TABLE delivery RENAME TO old_delivery;
ALTER TABLE idempotency_key RENAME TO old_idempotency_key;
ALTER TABLE notification RENAME TO old_notification;

CREATE TABLE alert (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    short_code TEXT NOT NULL UNIQUE CHECK (length(short_code) = 7),
    name TEXT NOT NULL,
    icon TEXT NOT NULL,
    color TEXT NOT NULL,
    title_template TEXT,
    body_template TEXT,
    frequency TEXT NOT NULL CHECK (frequency IN ('instant', '15m', '1h', '1d')),
    ignores_quiet_hours INTEGER NOT NULL CHECK (ignores_quiet_hours IN (0, 1)),
    is_active INTEGER NOT NULL CHECK (is_active IN (0, 1)),
    notification_count INTEGER NOT NULL,
    last_triggered_at INTEGER,
    created_at INTEGER NOT NULL,
    switched_on_at INTEGER NOT NULL
) STRICT;
CREATE INDEX alert_of_account ON alert (account_seq);

CREATE TABLE notification (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    api_key_seq INTEGER,
    alert_seq INTEGER,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('delivered', 'pending', 'held', 'failed')),
    created_at INTEGER NOT NULL,
    released_at INTEGER,
    is_digest INTEGER NOT NULL DEFAULT 0 CHECK (is_digest IN (0, 1))
) STRICT;
CREATE INDEX notification_of_account ON notification (account_seq);

CREATE TABLE held (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    account_seq INTEGER NOT NULL REFERENCES account,
    alert_seq INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    digest_seq INTEGER
) STRICT;
CREATE INDEX held_still ON held (account_seq, alert_seq, created_at) WHERE digest_seq IS NULL;

CREATE TABLE delivery (
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    device_seq INTEGER NOT NULL REFERENCES device,
    status TEXT NOT NULL CHECK (status IN ('delivered', 'pending', 'failed')),
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER,
    answered_at INTEGER,
    error TEXT,
    PRIMARY KEY (notification_seq, device_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_due ON delivery (next_attempt_at) WHERE status = 'pending';

CREATE TABLE idempotency_key (
    account_seq INTEGER NOT NULL REFERENCES account,
    key TEXT NOT NULL,
    request_hash BLOB NOT NULL,
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    answered_status TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_seq, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_key_of_notification ON idempotency_key (notification_seq);
CREATE INDEX idempotency_key_by_age ON idempotency_key (created_at);

ALTER TABLE device ADD COLUMN last_error_at INTEGER;
INSERT INTO alert SELECT *, created_at FROM old_alert;
INSERT INTO notification SELECT *, NULL, 0 FROM old_notification;
INSERT INTO delivery SELECT * FROM old_delivery;
INSERT INTO idempotency_key SELECT * FROM old_idempotency_key;

DROP TABLE old_delivery;
DROP TABLE old_idempotency_key;
DROP TABLE old_notification;
DROP TABLE old_alert;
