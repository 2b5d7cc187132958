-- People: administrators, disabled accounts, invitations, and when an account was last seen.
ALTER TABLE account ADD COLUMN is_administrator INTEGER NOT NULL DEFAULT 0 CHECK (is_administrator IN (0, 1));
ALTER TABLE account ADD COLUMN disabled_at INTEGER;
ALTER TABLE account ADD COLUMN invited_until INTEGER;
ALTER TABLE account ADD COLUMN last_seen_at INTEGER;
CREATE INDEX account_disabled ON account (seq) WHERE disabled_at IS NOT NULL;
UPDATE account SET is_administrator = 1 WHERE seq = (SELECT min(seq) FROM account);
UPDATE account SET last_seen_at =
    (SELECT max(last_seen_at) FROM session WHERE account_seq = account.seq AND last_seen_at > 0);
