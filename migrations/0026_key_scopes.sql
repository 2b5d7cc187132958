-- What a key may do, until when, and whether its owner was told that it ends soon.
ALTER TABLE api_key ADD COLUMN scope TEXT NOT NULL DEFAULT 'full' CHECK (scope IN ('full', 'send', 'read'));
ALTER TABLE api_key ADD COLUMN expires_at INTEGER;
ALTER TABLE api_key ADD COLUMN is_end_told INTEGER NOT NULL DEFAULT 0 CHECK (is_end_told IN (0, 1));
CREATE INDEX api_key_expiring ON api_key (expires_at) WHERE revoked_at IS NULL AND expires_at IS NOT NULL;
