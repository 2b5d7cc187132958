-- Channels beside phones: chats and other services, at once or when no phone took a notification.
ALTER TABLE device ADD COLUMN after_s INTEGER CHECK (after_s BETWEEN 0 AND 3600);
ALTER TABLE device ADD COLUMN preset TEXT;
ALTER TABLE notification ADD COLUMN hops INTEGER;
CREATE TABLE fallback (
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    device_seq INTEGER NOT NULL,           -- no foreign key, as in delivery
    account_seq INTEGER NOT NULL REFERENCES account,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (notification_seq, device_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX fallback_due ON fallback (due_at);
