-- Pending deliveries are found by device, live and revoked keys each by an index of their own, so that what one account
-- piles up costs the others nothing. Devices can be purged without a scan of all deliveries.
DROP INDEX api_key_of_account;
CREATE INDEX api_key_live ON api_key (account_seq) WHERE revoked_at IS NULL;
CREATE INDEX api_key_revoked ON api_key (account_seq) WHERE revoked_at IS NOT NULL;
CREATE INDEX notification_pending ON notification (account_seq) WHERE status = 'pending';
CREATE INDEX device_of_key ON device (api_key_seq);

DROP INDEX delivery_due;
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
CREATE INDEX delivery_pending ON delivery (device_seq, next_attempt_at) WHERE status = 'pending';

CREATE TABLE server_note (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
