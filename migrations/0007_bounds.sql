-- Pending deliveries are found by device, live and revoked keys each by an index of their own, so that what one account
-- piles up costs the others nothing. Old keys and devices can be purged: their seq is never given again, and no scan of
-- all deliveries is needed. What kinds of devices there are is the push providers' matter.
CREATE INDEX notification_pending ON notification (account_seq) WHERE status = 'pending';

DROP INDEX api_key_of_account;
DROP INDEX device_token;
DROP INDEX device_resync_token;
DROP INDEX device_of_account;
DROP INDEX delivery_due;
ALTER TABLE api_key RENAME TO old_api_key;
ALTER TABLE device RENAME TO old_device;

CREATE TABLE api_key (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    name TEXT NOT NULL,
    preview TEXT NOT NULL,
    key_hash BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;
INSERT INTO api_key SELECT * FROM old_api_key;

CREATE TABLE device (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    kind TEXT NOT NULL,
    token TEXT NOT NULL,
    p256dh TEXT,
    auth TEXT,
    origin TEXT,
    name TEXT NOT NULL,
    api_key_seq INTEGER REFERENCES api_key,
    created_at INTEGER NOT NULL,
    last_delivered_at INTEGER,
    last_error TEXT,
    removed_at INTEGER,
    removed_as TEXT CHECK (removed_as IN ('dead', 'removed')),
    last_error_at INTEGER,
    last_seen_at INTEGER,
    resync_token_hash BLOB
) STRICT;
INSERT INTO device SELECT * FROM old_device;

ALTER TABLE delivery RENAME TO old_delivery;
CREATE TABLE delivery (
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    device_seq INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('delivered', 'pending', 'failed')),
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER,
    answered_at INTEGER,
    error TEXT,
    PRIMARY KEY (notification_seq, device_seq)
) STRICT, WITHOUT ROWID;
INSERT INTO delivery SELECT * FROM old_delivery;
DROP TABLE old_delivery;
DROP TABLE old_device;
DROP TABLE old_api_key;
CREATE INDEX api_key_live ON api_key (account_seq) WHERE revoked_at IS NULL;
CREATE INDEX api_key_revoked ON api_key (account_seq) WHERE revoked_at IS NOT NULL;
CREATE UNIQUE INDEX device_token ON device (account_seq, kind, token) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX device_resync_token ON device (resync_token_hash) WHERE resync_token_hash IS NOT NULL;
CREATE INDEX device_of_account ON device (account_seq, removed_at);
CREATE INDEX device_of_key ON device (api_key_seq);
CREATE INDEX delivery_pending ON delivery (device_seq, next_attempt_at) WHERE status = 'pending';

CREATE TABLE server_note (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
