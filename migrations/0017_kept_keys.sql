-- An Idempotency-Key has its notification's id instead of a reference to it, and stays when that is deleted.
CREATE TABLE kept_key AS
    SELECT i.account_seq, key, request_hash, id, answered_status, i.created_at
    FROM idempotency_key i JOIN notification n ON n.seq = i.notification_seq;
DROP TABLE idempotency_key;
CREATE TABLE idempotency_key (
    account_seq INTEGER NOT NULL REFERENCES account,
    key TEXT NOT NULL,
    request_hash BLOB NOT NULL,            -- SHA-256 of what the request says (core/idempotency.py)
    notification_id TEXT NOT NULL,         -- no foreign key: the key stays when its notification is deleted
    answered_status TEXT,                  -- the status in the first response; NULL if the process died before it
    created_at INTEGER NOT NULL,           -- also that of the notification
    PRIMARY KEY (account_seq, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_key_by_age ON idempotency_key (created_at);
INSERT INTO idempotency_key SELECT * FROM kept_key;
DROP TABLE kept_key;
