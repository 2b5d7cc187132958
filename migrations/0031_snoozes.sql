-- Notifications that are pushed again at a time that their owner chose.
CREATE TABLE snooze (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    account_seq INTEGER NOT NULL REFERENCES account,
    until INTEGER,                         -- when it is pushed again; NULL once it was, or is no longer to be
    times INTEGER NOT NULL DEFAULT 0       -- it was pushed again so often
) STRICT;
CREATE INDEX snooze_due ON snooze (until) WHERE until IS NOT NULL;
