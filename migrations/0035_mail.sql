-- E-mail: addresses that must be confirmed, the service's own mails, and how many mails an account got in an hour.
ALTER TABLE device ADD COLUMN confirm_by INTEGER;
CREATE UNIQUE INDEX device_of_mail_token ON device (auth) WHERE kind = 'email' AND removed_at IS NULL;
CREATE TABLE mail (
    seq INTEGER PRIMARY KEY,
    account_seq INTEGER NOT NULL REFERENCES account,
    kind TEXT NOT NULL CHECK (kind IN ('confirm', 'test', 'more', 'invitation', 'password')),
    device_seq INTEGER,                    -- to its address; NULL: to the account's. No foreign key, as in delivery
    detail TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL
) STRICT;
CREATE INDEX mail_due ON mail (next_attempt_at);
CREATE INDEX mail_of_account ON mail (account_seq);
CREATE TABLE mail_limit (
    account_seq INTEGER PRIMARY KEY REFERENCES account,
    sent TEXT NOT NULL,
    more INTEGER NOT NULL,
    device_seq INTEGER,
    until INTEGER
) STRICT;
