-- The complete newest schema; PRAGMA user_version says which one a file has.
-- The numbered steps in migrations/ bring an older file here; the last one's number is that of this schema.
-- Times are integer milliseconds, UTC. `id` is what the outside sees; `seq` orders and joins.

PRAGMA application_id = 1349214828;        -- 'Pkbl': this file is ours

CREATE TABLE account (
    seq INTEGER PRIMARY KEY,
    email TEXT NOT NULL UNIQUE CHECK (email = lower(email)),
    password_hash TEXT,                    -- NULL until the owner has set one through a one-time link
    plan TEXT NOT NULL CHECK (plan IN ('starter', 'pro', 'scale')),
    time_zone TEXT NOT NULL,               -- IANA name
    quiet_hours TEXT,                      -- 'HH:MM-HH:MM' in the account's time zone
    notification_count INTEGER NOT NULL,   -- of all time: pruning the history does not lower it
    created_at INTEGER NOT NULL,
    theme TEXT NOT NULL DEFAULT 'system' CHECK (theme IN ('system', 'light', 'dark')),
    hides_first_steps INTEGER NOT NULL DEFAULT 0 CHECK (hides_first_steps IN (0, 1)),
    known_device_seq INTEGER NOT NULL DEFAULT 0 -- a device that an API key added after it is one to warn of
) STRICT;

-- One row per calendar day in the account's time zone on which something was recorded.
CREATE TABLE notification_day (
    account_seq INTEGER NOT NULL REFERENCES account,
    day TEXT NOT NULL,                     -- YYYY-MM-DD
    notification_count INTEGER NOT NULL,
    PRIMARY KEY (account_seq, day)
) STRICT, WITHOUT ROWID;

-- Opens the set-up page (no account yet) or the page that sets an account's password; used once.
CREATE TABLE one_time_link (
    token_hash BLOB PRIMARY KEY,
    account_seq INTEGER REFERENCES account,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    token_hash BLOB PRIMARY KEY,
    account_seq INTEGER NOT NULL REFERENCES account,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,           -- moves on with every visit
    name TEXT NOT NULL DEFAULT '',         -- of the browser
    last_seen_at INTEGER NOT NULL DEFAULT 0 -- to within an hour
) STRICT, WITHOUT ROWID;

CREATE TABLE api_key (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never given again: the notifications of a purged key stay
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    name TEXT NOT NULL,
    preview TEXT NOT NULL,                 -- the key's first 16 characters
    key_hash BLOB NOT NULL UNIQUE,         -- SHA-256
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX api_key_live ON api_key (account_seq) WHERE revoked_at IS NULL;
CREATE INDEX api_key_revoked ON api_key (account_seq) WHERE revoked_at IS NOT NULL;

CREATE TABLE alert (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never given again: the notifications of a deleted alert stay
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    short_code TEXT NOT NULL UNIQUE CHECK (length(short_code) = 7),
    name TEXT NOT NULL,
    icon TEXT NOT NULL,
    color TEXT NOT NULL,
    title_template TEXT,
    body_template TEXT,
    frequency TEXT NOT NULL CHECK (frequency IN ('instant', '15m', '1h', '1d')),
    ignores_quiet_hours INTEGER NOT NULL CHECK (ignores_quiet_hours IN (0, 1)),
    is_active INTEGER NOT NULL CHECK (is_active IN (0, 1)),
    notification_count INTEGER NOT NULL,
    last_triggered_at INTEGER,
    created_at INTEGER NOT NULL,
    switched_on_at INTEGER NOT NULL,       -- by its owner, last: a flood is counted from then on
    paused_at INTEGER,                     -- by a flood; NULL once its owner switched it on or off
    preset TEXT,                           -- the sender it was made for (core/presets.py)
    keeps_payload INTEGER NOT NULL DEFAULT 1 CHECK (keeps_payload IN (0, 1))
) STRICT;
CREATE INDEX alert_of_account ON alert (account_seq);

-- What came last to an alert, to write its templates with.
CREATE TABLE alert_payload (
    alert_seq INTEGER PRIMARY KEY REFERENCES alert ON DELETE CASCADE,
    payload TEXT,                          -- JSON; NULL: it was too large to keep
    received_at INTEGER NOT NULL
) STRICT;

CREATE TABLE notification (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never given again: a cursor may be older than all rows that are left
    id TEXT NOT NULL UNIQUE,               -- 32 hexadecimal digits that begin with the time, so that the index grows at its end
    account_seq INTEGER NOT NULL REFERENCES account,
    api_key_seq INTEGER,                   -- what sent it: a key or an alert; no foreign key, since an alert
    alert_seq INTEGER,                     -- may be deleted and its notifications stay
    title TEXT NOT NULL,                   -- as delivered, with the prefix; all of Content (wire/notification.py) is here
    body TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('delivered', 'pending', 'held', 'failed')), -- 'held': see the table held
    created_at INTEGER NOT NULL,
    released_at INTEGER,                   -- when one that was held was released as itself: pushing began then
    is_digest INTEGER NOT NULL DEFAULT 0 CHECK (is_digest IN (0, 1)), -- what is pushed for many: in no list, not counted
    missing TEXT                           -- JSON array of the variables that the event lacked; NULL: none
) STRICT;
CREATE INDEX notification_of_account ON notification (account_seq);
CREATE INDEX notification_failed_or_held ON notification (account_seq) WHERE status IN ('failed', 'held');
CREATE INDEX notification_pending ON notification (account_seq) WHERE status = 'pending';
CREATE INDEX notification_of_alert ON notification (alert_seq) WHERE alert_seq IS NOT NULL;

-- Of each notification whose status is 'held': whether it is held still. Narrow, so that many are released at once.
CREATE TABLE held (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    account_seq INTEGER NOT NULL REFERENCES account,
    alert_seq INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    digest_seq INTEGER                     -- the digest it was released in: what became of that is its status
) STRICT;
CREATE INDEX held_still ON held (account_seq, alert_seq, created_at) WHERE digest_seq IS NULL;

CREATE TABLE device (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never given again: account.known_device_seq may be a purged one
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    kind TEXT NOT NULL,                    -- one of the push providers
    token TEXT NOT NULL,                   -- a Web Push subscription's endpoint; '' once removed
    p256dh TEXT,                           -- Web Push: the subscription's public key and secret
    auth TEXT,
    origin TEXT,                           -- Web Push: where this browser had the web app open, last
    name TEXT NOT NULL,
    api_key_seq INTEGER REFERENCES api_key,-- the key that added it; NULL: the owner did
    created_at INTEGER NOT NULL,
    last_delivered_at INTEGER,
    last_error TEXT,                       -- a sentence; NULL when the last push was accepted
    removed_at INTEGER,
    removed_as TEXT CHECK (removed_as IN ('dead', 'removed')),
    last_error_at INTEGER,
    last_seen_at INTEGER,                  -- when the web app was last opened in this browser
    resync_token_hash BLOB                 -- SHA-256 of what its service worker sends a new subscription with
) STRICT;
CREATE UNIQUE INDEX device_token ON device (account_seq, kind, token) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX device_resync_token ON device (resync_token_hash) WHERE resync_token_hash IS NOT NULL;
CREATE INDEX device_of_account ON device (account_seq, removed_at);
CREATE INDEX device_of_key ON device (api_key_seq);

-- What became of one notification on one device.
CREATE TABLE delivery (
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    device_seq INTEGER NOT NULL,           -- no foreign key: SQLite would scan the table when a device is purged
    status TEXT NOT NULL CHECK (status IN ('delivered', 'pending', 'failed')),
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER,               -- while pending: when it is due; a claim moves it forward
    answered_at INTEGER,
    error TEXT,
    PRIMARY KEY (notification_seq, device_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_pending ON delivery (device_seq, next_attempt_at) WHERE status = 'pending';

CREATE TABLE idempotency_key (
    account_seq INTEGER NOT NULL REFERENCES account,
    key TEXT NOT NULL,
    request_hash BLOB NOT NULL,            -- SHA-256 of what the request says (core/idempotency.py)
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    answered_status TEXT,                  -- the status in the first answer; NULL if the process died before it
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_seq, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_key_of_notification ON idempotency_key (notification_seq);
CREATE INDEX idempotency_key_by_age ON idempotency_key (created_at);

-- A metric of a project: its values carry this number alone, so that their index stays narrow.
CREATE TABLE metric_series (
    seq INTEGER PRIMARY KEY,
    account_seq INTEGER NOT NULL REFERENCES account,
    project_id TEXT NOT NULL,
    metric_id TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX metric_series_ids ON metric_series (account_seq, project_id, metric_id);

CREATE TABLE metric (
    seq INTEGER PRIMARY KEY,
    series_seq INTEGER NOT NULL REFERENCES metric_series,
    metric_name TEXT NOT NULL,
    value REAL NOT NULL,
    unit TEXT,
    timestamp INTEGER NOT NULL,
    metadata TEXT                          -- JSON
) STRICT;
CREATE INDEX metric_of_series ON metric (series_seq, timestamp, value);

-- Keys of this service itself, such as the Web Push key pair: they travel with a backup.
CREATE TABLE server_key (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What the service remembers of itself between two starts.
CREATE TABLE server_note (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
