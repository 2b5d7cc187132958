-- What the web app shows and remembers: sessions with a name, a theme, devices that were seen, what a template missed.
ALTER TABLE account ADD COLUMN theme TEXT NOT NULL DEFAULT 'system' CHECK (theme IN ('system', 'light', 'dark'));
ALTER TABLE account ADD COLUMN hides_first_steps INTEGER NOT NULL DEFAULT 0 CHECK (hides_first_steps IN (0, 1));
ALTER TABLE account ADD COLUMN known_device_seq INTEGER NOT NULL DEFAULT 0;
UPDATE account SET known_device_seq = coalesce((SELECT max(seq) FROM device WHERE account_seq = account.seq), 0);
ALTER TABLE session ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN last_seen_at INTEGER NOT NULL DEFAULT 0;
UPDATE session SET last_seen_at = created_at;
ALTER TABLE alert ADD COLUMN paused_at INTEGER;
ALTER TABLE notification ADD COLUMN missing TEXT;
CREATE INDEX notification_failed_or_held ON notification (account_seq) WHERE status IN ('failed', 'held');
CREATE INDEX notification_of_alert ON notification (alert_seq) WHERE alert_seq IS NOT NULL;
ALTER TABLE device ADD COLUMN last_seen_at INTEGER;
ALTER TABLE device ADD COLUMN resync_token_hash BLOB;
CREATE UNIQUE INDEX device_resync_token ON device (resync_token_hash) WHERE resync_token_hash IS NOT NULL;
