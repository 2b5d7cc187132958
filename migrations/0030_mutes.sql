-- Mutes, and what they hold: sends with a key, or by the owner, are held by nothing else.
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
    until INTEGER NOT NULL
) STRICT;
CREATE INDEX mute_of_account ON mute (account_seq);
ALTER TABLE account ADD COLUMN has_mutes INTEGER NOT NULL DEFAULT 0 CHECK (has_mutes IN (0, 1));

ALTER TABLE held RENAME COLUMN alert_seq TO sender_seq;
ALTER TABLE held ADD COLUMN kind INTEGER NOT NULL DEFAULT 0 CHECK (kind BETWEEN 0 AND 6);
ALTER TABLE held ADD COLUMN expires_at INTEGER;
DROP INDEX held_still;
CREATE INDEX held_still ON held (account_seq, kind, sender_seq, priority, created_at) WHERE digest_seq IS NULL;
CREATE INDEX held_expiring ON held (expires_at) WHERE expires_at IS NOT NULL AND digest_seq IS NULL;

-- One whose time has come, and that a mute holds, is no longer to be sent later.
DROP INDEX notification_scheduled;
CREATE INDEX notification_scheduled ON notification (deliver_at)
    WHERE deliver_at IS NOT NULL AND status = 'held' AND released_at IS NULL;
DROP INDEX notification_scheduled_of_account;
CREATE INDEX notification_scheduled_of_account ON notification (account_seq, deliver_at)
    WHERE deliver_at IS NOT NULL AND status = 'held' AND released_at IS NULL;
