-- Devices of the ntfy app: their topic is the credential, of which only hashes are kept. What ntfy calls tags is kept
-- for that app alone.
ALTER TABLE notification ADD COLUMN tags TEXT;
ALTER TABLE device ADD COLUMN poll_hash TEXT;
CREATE INDEX device_of_topic ON device (token) WHERE kind = 'ntfy' AND removed_at IS NULL;
CREATE INDEX notification_released ON notification (account_seq, released_at) WHERE released_at IS NOT NULL;
