-- What a notification may carry beside its text. All of it is NULL where it was not set, and the indexes hold only rows
-- where it was, so that a plain notification costs what it did before.
ALTER TABLE notification ADD COLUMN priority INTEGER CHECK (priority BETWEEN 1 AND 5);
ALTER TABLE notification ADD COLUMN url TEXT;
ALTER TABLE notification ADD COLUMN tag TEXT;
ALTER TABLE notification ADD COLUMN expires_at INTEGER;
ALTER TABLE notification ADD COLUMN replaced_by INTEGER;
CREATE INDEX notification_of_tag ON notification (account_seq, tag, replaced_by) WHERE tag IS NOT NULL;
CREATE INDEX notification_expiring ON notification (expires_at) WHERE expires_at IS NOT NULL AND status = 'pending';
ALTER TABLE device ADD COLUMN min_priority INTEGER NOT NULL DEFAULT 1 CHECK (min_priority BETWEEN 1 AND 5);

-- Deleting a notification rewrites the digest that it went out in, which is found by this index.
CREATE INDEX held_in_digest ON held (digest_seq) WHERE digest_seq IS NOT NULL;
