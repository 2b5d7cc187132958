-- Buttons and answers, notifications that repeat until they are acknowledged, and those that are sent later. The new
-- columns are NULL where nothing was set, and the new tables hold rows only for notifications that use them.
ALTER TABLE notification ADD COLUMN actions TEXT;
ALTER TABLE notification ADD COLUMN acknowledge TEXT;
ALTER TABLE notification ADD COLUMN deliver_at INTEGER;
CREATE INDEX notification_scheduled ON notification (deliver_at) WHERE deliver_at IS NOT NULL AND status = 'held';
CREATE INDEX notification_scheduled_of_account ON notification (account_seq)
    WHERE deliver_at IS NOT NULL AND status = 'held';

CREATE TABLE button (
    token_hash BLOB PRIMARY KEY,
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    device_seq INTEGER NOT NULL,
    position INTEGER,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX button_of_notification ON button (notification_seq);
CREATE INDEX button_by_age ON button (expires_at);

CREATE TABLE answer (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    position INTEGER NOT NULL,
    answered_at INTEGER NOT NULL,
    device_seq INTEGER
) STRICT;

CREATE TABLE alarm (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    account_seq INTEGER NOT NULL REFERENCES account,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'acknowledged', 'expired', 'cancelled')),
    ends_at INTEGER,
    next_at INTEGER,
    repeats INTEGER NOT NULL,
    acknowledged_at INTEGER,
    device_seq INTEGER
) STRICT;
CREATE INDEX alarm_waiting ON alarm (account_seq) WHERE state = 'waiting';
CREATE INDEX alarm_due ON alarm (next_at) WHERE next_at IS NOT NULL;

-- What an alert makes of an event beside its text.
ALTER TABLE alert ADD COLUMN priority_template TEXT;
ALTER TABLE alert ADD COLUMN url_template TEXT;
ALTER TABLE alert ADD COLUMN tag_template TEXT;
ALTER TABLE alert ADD COLUMN resolved_when TEXT;
ALTER TABLE alert ADD COLUMN repeats_urgent INTEGER NOT NULL DEFAULT 0 CHECK (repeats_urgent IN (0, 1));
ALTER TABLE alert ADD COLUMN urgent_passes_quiet_hours INTEGER NOT NULL DEFAULT 0
    CHECK (urgent_passes_quiet_hours IN (0, 1));

-- By its priority a notification is held by more or less, and is grouped accordingly.
ALTER TABLE held ADD COLUMN priority INTEGER NOT NULL DEFAULT 3 CHECK (priority BETWEEN 0 AND 5);
DROP INDEX held_still;
CREATE INDEX held_still ON held (account_seq, alert_seq, priority, created_at) WHERE digest_seq IS NULL;
