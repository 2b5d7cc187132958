-- Pictures: that came with notifications, at addresses elsewhere, and by an alert's template.
CREATE TABLE picture (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    account_seq INTEGER NOT NULL REFERENCES account,
    token_hash BLOB NOT NULL UNIQUE,
    content_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE INDEX picture_of_account ON picture (account_seq, notification_seq);
CREATE INDEX picture_by_age ON picture (expires_at);
ALTER TABLE notification ADD COLUMN image TEXT;
ALTER TABLE notification ADD COLUMN picture TEXT;
ALTER TABLE notification_day ADD COLUMN picture_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE alert ADD COLUMN image_template TEXT;
