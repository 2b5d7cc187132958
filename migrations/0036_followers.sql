-- Followers: other accounts that get a copy of what an alert, a key, a heartbeat or a rule sends.
CREATE TABLE follower (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account, -- the owner
    what TEXT NOT NULL CHECK (what IN ('alert', 'key', 'heartbeat', 'rule')),
    subject_seq INTEGER NOT NULL,          -- of the alert, the key, … No foreign keys, as in mute
    email TEXT NOT NULL CHECK (email = lower(email)), -- who was invited, whether or not there is such an account
    follower_seq INTEGER REFERENCES account, -- the account that accepted; NULL: nobody yet
    created_at INTEGER NOT NULL            -- when it was invited
) STRICT;
CREATE UNIQUE INDEX follower_of_subject ON follower (what, subject_seq, email);
CREATE INDEX follower_of_account ON follower (account_seq);
CREATE INDEX follower_by_email ON follower (email);
CREATE INDEX follower_by_account ON follower (follower_seq) WHERE follower_seq IS NOT NULL;

CREATE TABLE notification_copy (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    original_seq INTEGER NOT NULL,         -- the owner's notification. No foreign keys: it and the sender may be deleted
    owner_seq INTEGER NOT NULL,
    what TEXT NOT NULL CHECK (what IN ('alert', 'key', 'heartbeat', 'rule')),
    subject_seq INTEGER NOT NULL           -- of the sender
) STRICT;
CREATE INDEX notification_copy_of_original ON notification_copy (original_seq);

ALTER TABLE account ADD COLUMN has_followers INTEGER NOT NULL DEFAULT 0 CHECK (has_followers IN (0, 1));
ALTER TABLE alarm ADD COLUMN by_account_seq INTEGER;
ALTER TABLE answer ADD COLUMN by_account_seq INTEGER;
