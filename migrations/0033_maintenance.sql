-- A mute may come again, as cron says. Heartbeats and rules change in silence within it.
CREATE TABLE kept_mute AS SELECT * FROM mute;
DROP TABLE mute;
CREATE TABLE mute (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    what TEXT NOT NULL CHECK (what IN ('all', 'alert', 'key', 'heartbeat', 'rule')),
    subject_seq INTEGER NOT NULL,          -- of the alert, the key, …; 0 for all. No foreign keys: they would make each
                                           -- event, which updates its alert, look here
    mode TEXT NOT NULL CHECK (mode IN ('hold', 'history')),
    urgent_passes INTEGER NOT NULL CHECK (urgent_passes IN (0, 1)),
    created_at INTEGER NOT NULL,
    until INTEGER,                         -- NULL if it comes again
    cron TEXT,                             -- when it begins, each time, in the account's time zone; else NULL
    for_s INTEGER,                         -- for how long, then
    CHECK ((until IS NULL) = (cron IS NOT NULL) AND (cron IS NULL) = (for_s IS NULL))
) STRICT;
INSERT INTO mute (seq, id, account_seq, what, subject_seq, mode, urgent_passes, created_at, until)
    SELECT seq, id, account_seq, what, subject_seq, mode, urgent_passes, created_at, until FROM kept_mute;
DROP TABLE kept_mute;
CREATE INDEX mute_of_account ON mute (account_seq);
CREATE TABLE silent_change (
    account_seq INTEGER NOT NULL REFERENCES account,
    what TEXT NOT NULL CHECK (what IN ('heartbeat', 'rule')),
    subject_seq INTEGER NOT NULL,
    was_wrong INTEGER NOT NULL CHECK (was_wrong IN (0, 1)), -- down or firing, as its owner knows it
    is_wrong INTEGER NOT NULL CHECK (is_wrong IN (0, 1)),   -- since the latest change, which these say
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    priority INTEGER NOT NULL,
    PRIMARY KEY (what, subject_seq)
) STRICT, WITHOUT ROWID;
