-- A device may have quiet hours. A delivery that falls into them is neither made nor tried later: 'quiet'.
ALTER TABLE device ADD COLUMN quiet_hours TEXT;

CREATE TABLE kept_delivery AS SELECT * FROM delivery;
DROP TABLE delivery;
CREATE TABLE delivery (
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    device_seq INTEGER NOT NULL,           -- no foreign key: purging a device would make SQLite scan this table
    status TEXT NOT NULL                   -- 'quiet': not pushed, now or later, in the device's quiet hours
        CHECK (status = 'delivered' OR status = 'pending' OR status = 'failed' OR status = 'quiet'),
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER,               -- while pending: when the retry is due; a claim moves it to the end of its lease
    answered_at INTEGER,
    error TEXT,
    PRIMARY KEY (notification_seq, device_seq)
) STRICT, WITHOUT ROWID;
INSERT INTO delivery SELECT * FROM kept_delivery;
DROP TABLE kept_delivery;
CREATE INDEX delivery_pending ON delivery (device_seq, next_attempt_at) WHERE status = 'pending';
