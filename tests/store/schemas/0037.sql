-- The complete newest schema. A file's PRAGMA user_version is its schema's number: that of the newest step in migrations/.
-- The numbered steps upgrade older files.
-- Times are integer milliseconds in UTC. `id` is public; `seq` is internal, for order and joins.

PRAGMA application_id = 1349214828;        -- 'Pkbl' marks our files

CREATE TABLE account (
    seq INTEGER PRIMARY KEY,
    email TEXT NOT NULL UNIQUE CHECK (email = lower(email)),
    password_hash TEXT,                    -- NULL until the owner sets a password through a one-time link
    plan TEXT NOT NULL CHECK (plan IN ('starter', 'pro', 'scale')),
    time_zone TEXT NOT NULL,               -- IANA name
    quiet_hours TEXT,                      -- windows of the week in the account's time zone (core/week_windows.py)
    created_at INTEGER NOT NULL,
    theme TEXT NOT NULL DEFAULT 'system' CHECK (theme IN ('system', 'light', 'dark')),
    hides_first_steps INTEGER NOT NULL DEFAULT 0 CHECK (hides_first_steps IN (0, 1)),
    known_device_seq INTEGER NOT NULL DEFAULT 0, -- Home warns about devices with a higher seq that an API key added
    ping_key TEXT,                         -- pings its heartbeats by their slugs; in clear, since Watches shows it
    has_dense_rows INTEGER NOT NULL DEFAULT 0 CHECK (has_dense_rows IN (0, 1)), -- in History
    is_administrator INTEGER NOT NULL DEFAULT 0 CHECK (is_administrator IN (0, 1)),
    disabled_at INTEGER,                   -- NULL: enabled (store/enabled.py)
    invited_until INTEGER,                 -- when its invitation expires; NULL once that was used, and for others
    last_seen_at INTEGER,                  -- in the web app, accurate to an hour; NULL: never
    has_mutes INTEGER NOT NULL DEFAULT 0 CHECK (has_mutes IN (0, 1)), -- 0: none is in the table mute
    has_followers INTEGER NOT NULL DEFAULT 0 CHECK (has_followers IN (0, 1)), -- 0: nobody follows anything of it
    last_quiet_hours TEXT                  -- what they were when they were switched off last
) STRICT;
CREATE UNIQUE INDEX account_ping_key ON account (ping_key);
CREATE INDEX account_disabled ON account (seq) WHERE disabled_at IS NOT NULL;

-- One row per calendar day, in the account's time zone, that has notifications, and one for all time: deleting
-- notifications lowers no count.
CREATE TABLE notification_day (
    account_seq INTEGER NOT NULL REFERENCES account,
    day TEXT NOT NULL,                     -- YYYY-MM-DD; '' for all time
    notification_count INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL DEFAULT 0, -- on the day '': of all that the account has stored now (core/storage.py)
    picture_bytes INTEGER NOT NULL DEFAULT 0, -- on the day '': of its pictures alone
    PRIMARY KEY (account_seq, day)
) STRICT, WITHOUT ROWID;

-- Links to the set-up page (account_seq NULL) or to the page that sets an account's password. Each works once.
CREATE TABLE one_time_link (
    token_hash BLOB PRIMARY KEY,
    account_seq INTEGER REFERENCES account,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    token_hash BLOB PRIMARY KEY,
    account_seq INTEGER NOT NULL REFERENCES account,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,           -- extended with each visit
    name TEXT NOT NULL DEFAULT '',         -- the browser's
    last_seen_at INTEGER NOT NULL DEFAULT 0 -- accurate to an hour
) STRICT, WITHOUT ROWID;

-- The code that a signed-in browser shows for a phone to sign in with. It ends with the browser's session.
CREATE TABLE phone_link (
    session_hash BLOB PRIMARY KEY REFERENCES session ON DELETE CASCADE, -- of the browser that shows it
    code_hash BLOB NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('shown', 'asked', 'confirmed', 'refused', 'used')),
    expires_at INTEGER NOT NULL,           -- of this state
    phone_hash BLOB UNIQUE,                -- of the secret in the cookie of the browser that asked; NULL until one did
    phone_name TEXT NOT NULL,              -- it and the next two: of that browser, '' until it asked
    phone_address TEXT NOT NULL,
    number TEXT NOT NULL                   -- shown on both, to compare
) STRICT, WITHOUT ROWID;

CREATE TABLE api_key (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: the notifications of a purged key stay
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    name TEXT NOT NULL,
    preview TEXT NOT NULL,                 -- the key's first 16 characters
    key_hash BLOB NOT NULL UNIQUE,         -- SHA-256
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER,                    -- an expired key is revoked soon after `expires_at`
    scope TEXT NOT NULL DEFAULT 'full' CHECK (scope IN ('full', 'send', 'read')),
    expires_at INTEGER,
    is_end_told INTEGER NOT NULL DEFAULT 0 CHECK (is_end_told IN (0, 1)) -- whether its owner knows that it ends soon
) STRICT;
CREATE INDEX api_key_live ON api_key (account_seq) WHERE revoked_at IS NULL;
CREATE INDEX api_key_revoked ON api_key (account_seq) WHERE revoked_at IS NOT NULL;
CREATE INDEX api_key_expiring ON api_key (expires_at) WHERE revoked_at IS NULL AND expires_at IS NOT NULL;

CREATE TABLE alert (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: the notifications of a deleted alert stay
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
    switched_on_at INTEGER NOT NULL,       -- when the owner last switched it on: starts the flood count afresh
    paused_at INTEGER,                     -- when a flood paused it; NULL once the owner switches it on or off
    preset TEXT,                           -- the id of the preset it was made from (core/presets.py)
    keeps_payload INTEGER NOT NULL DEFAULT 1 CHECK (keeps_payload IN (0, 1)),
    priority_template TEXT,
    url_template TEXT,
    tag_template TEXT,
    resolved_when TEXT,                    -- 'PATH = VALUE': an event for which it holds ends what has its tag
    repeats_urgent INTEGER NOT NULL DEFAULT 0 CHECK (repeats_urgent IN (0, 1)),
    urgent_passes_quiet_hours INTEGER NOT NULL DEFAULT 0 CHECK (urgent_passes_quiet_hours IN (0, 1)),
    image_template TEXT,
    has_mute_button INTEGER NOT NULL DEFAULT 0 CHECK (has_mute_button IN (0, 1))
) STRICT;
CREATE INDEX alert_of_account ON alert (account_seq);

-- The last payload of each alert, which helps the owner to write its templates.
CREATE TABLE alert_payload (
    alert_seq INTEGER PRIMARY KEY REFERENCES alert ON DELETE CASCADE,
    payload TEXT,                          -- JSON; NULL if it was too large to keep
    received_at INTEGER NOT NULL
) STRICT;

-- The latest requests to each alert with their answers, and nothing of what was sent.
CREATE TABLE alert_requests (
    alert_seq INTEGER PRIMARY KEY REFERENCES alert ON DELETE CASCADE,
    requests TEXT NOT NULL                 -- JSON array, newest first: arrays of time, status, words, how many, notification
) STRICT;

CREATE TABLE notification (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: a cursor may be older than all remaining rows
    id TEXT NOT NULL UNIQUE,               -- 32 hexadecimal digits that begin with the time, so that the index grows at its end
    account_seq INTEGER NOT NULL REFERENCES account,
    api_key_seq INTEGER,                   -- the sender is a key or an alert, or else the owner. No foreign keys: the
    alert_seq INTEGER,                     -- notifications stay when the key or alert is deleted
    title TEXT NOT NULL,                   -- as delivered, with the prefix; all of Content (wire/notification.py) is here
    body TEXT NOT NULL,
    status TEXT NOT NULL                   -- 'held': see the table held. OR, since SQLite makes a table of what is IN
        CHECK (status = 'delivered' OR status = 'pending' OR status = 'held' OR status = 'failed'),
    created_at INTEGER NOT NULL,
    released_at INTEGER,                   -- if it was held and released on its own: when its delivery began; or when
                                           -- `deliver_at` had come, while it is still held
    is_digest INTEGER NOT NULL DEFAULT 0 CHECK (is_digest IN (0, 1)), -- a digest is pushed, but neither listed nor counted
    missing TEXT,                          -- JSON array of the variables that the event lacked; NULL if none
    priority INTEGER CHECK (priority BETWEEN 1 AND 5), -- it and the next three: as sent, or NULL
    url TEXT,
    tag TEXT,
    expires_at INTEGER,
    replaced_by INTEGER,                   -- the newer notification with its tag. No foreign key: that may be deleted
    actions TEXT,                          -- JSON array of its buttons, as sent; NULL if none
    acknowledge TEXT,                      -- JSON array: every how many seconds it repeats, and for how many; or NULL
    deliver_at INTEGER,                    -- when it is to be delivered, if not at once; 'held' until then
    tags TEXT,                             -- JSON array: what ntfy calls tags, for its app; NULL if none
    device_ids TEXT,                       -- JSON array of the devices that it goes to at deliver_at; NULL: to all
    image TEXT,                            -- the address of a picture elsewhere
    picture TEXT,                          -- JSON array: content type, bytes and file name of its row in picture
    hops INTEGER                           -- through how many services like this it came, if through any
) STRICT;
-- SQLite ends each entry of an index with its row's number; in PostgreSQL, the index has to name it.
CREATE INDEX notification_of_account ON notification (account_seq /*, seq*/);
CREATE INDEX notification_failed_or_held ON notification (account_seq /*, seq*/) WHERE status IN ('failed', 'held');
CREATE INDEX notification_pending ON notification (account_seq /*, seq*/) WHERE status = 'pending';
CREATE INDEX notification_of_alert ON notification (alert_seq /*, seq*/) WHERE alert_seq IS NOT NULL;
CREATE INDEX notification_of_tag ON notification (account_seq, tag, replaced_by) WHERE tag IS NOT NULL;
CREATE INDEX notification_expiring ON notification (expires_at) WHERE expires_at IS NOT NULL AND status = 'pending';
CREATE INDEX notification_released ON notification (account_seq, released_at) WHERE released_at IS NOT NULL;
CREATE INDEX notification_scheduled ON notification (deliver_at)
    WHERE deliver_at IS NOT NULL AND status = 'held' AND released_at IS NULL;
CREATE INDEX notification_scheduled_of_account ON notification (account_seq, deliver_at)
    WHERE deliver_at IS NOT NULL AND status = 'held' AND released_at IS NULL;
CREATE INDEX notification_with_buttons ON notification (account_seq, created_at) WHERE actions IS NOT NULL;

-- The pictures that came with notifications, served at GET /i/TOKEN.
CREATE TABLE picture (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    account_seq INTEGER NOT NULL REFERENCES account,
    token_hash BLOB NOT NULL UNIQUE,       -- SHA-256 of the token, which is derived (core/pictures.py)
    content_type TEXT NOT NULL,
    size INTEGER NOT NULL,                 -- bytes
    expires_at INTEGER NOT NULL,
    data BLOB NOT NULL                     -- last, so that the other columns are read without it
) STRICT;
CREATE INDEX picture_of_account ON picture (account_seq, notification_seq);
CREATE INDEX picture_by_age ON picture (expires_at);

-- One row for each notification whose status is 'held', even after its release in a digest, but for those that are to
-- be sent later. The rows are narrow, so that releasing many at once is fast.
CREATE TABLE held (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    account_seq INTEGER NOT NULL REFERENCES account,
    sender_seq INTEGER NOT NULL,           -- of the alert, the key, …; 0: of none
    created_at INTEGER NOT NULL,
    digest_seq INTEGER,                    -- the digest it was released in, or the newer notification with its tag that
                                           -- came while it was held: it has that one's status. NULL while it is held
    priority INTEGER NOT NULL DEFAULT 3 CHECK (priority BETWEEN 0 AND 5), -- 0: a newer one with its tag stands for it
    kind INTEGER NOT NULL DEFAULT 0 CHECK (kind BETWEEN 0 AND 6), -- of the sender (store/held_notifications.py)
    expires_at INTEGER                     -- the notification's
) STRICT;
CREATE INDEX held_still ON held (account_seq, kind, sender_seq, priority, created_at) WHERE digest_seq IS NULL;
CREATE INDEX held_expiring ON held (expires_at) WHERE expires_at IS NOT NULL AND digest_seq IS NULL;
CREATE INDEX held_in_digest ON held (digest_seq) WHERE digest_seq IS NOT NULL;

CREATE TABLE device (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: account.known_device_seq may be that of a purged device
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    kind TEXT NOT NULL,                    -- one of the push providers
    token TEXT NOT NULL,                   -- for Web Push the subscription's endpoint, for a webhook or e-mail its address, for
                                           -- ntfy the topic's SHA-256 in hexadecimal digits; '' once removed
    p256dh TEXT,                           -- Web Push: the subscription's public key and secret
    auth TEXT,                             -- webhook: the secret that signs its requests; e-mail: the token of its pages
    origin TEXT,                           -- Web Push: the origin at which this browser last opened the web app
    name TEXT NOT NULL,
    api_key_seq INTEGER REFERENCES api_key,-- the key that added it; NULL if the owner did
    created_at INTEGER NOT NULL,
    last_delivered_at INTEGER,
    last_error TEXT,                       -- a sentence; NULL if the last push was accepted
    removed_at INTEGER,
    removed_as TEXT CHECK (removed_as IN ('dead', 'removed')),
    last_error_at INTEGER,
    last_seen_at INTEGER,                  -- when the web app was last opened in this browser
    resync_token_hash BLOB,                -- SHA-256 of the token with which its service worker renews the subscription
    min_priority INTEGER NOT NULL DEFAULT 1 CHECK (min_priority BETWEEN 1 AND 5), -- lower ones are not pushed to it
    poll_hash TEXT,                        -- ntfy: SHA-256 of the topic's address, by which NTFY_UPSTREAM wakes an iPhone
    quiet_hours TEXT,                      -- windows of the week in which nothing is pushed to it, as an account's
    after_s INTEGER CHECK (after_s BETWEEN 0 AND 3600), -- of a channel: after how many seconds it gets what no other
                                           -- device has; 0: it gets everything at once. NULL: it is no channel
    preset TEXT,                           -- webhook: the chat or the service whose form its requests have
    confirm_by INTEGER                     -- e-mail: until when the address can be confirmed; it gets nothing before. NULL:
                                           -- it was, or need not be
) STRICT;
CREATE UNIQUE INDEX device_token ON device (account_seq, kind, token) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX device_resync_token ON device (resync_token_hash) WHERE resync_token_hash IS NOT NULL;
CREATE UNIQUE INDEX device_of_mail_token ON device (auth) WHERE kind = 'email' AND removed_at IS NULL;
CREATE INDEX device_of_account ON device (account_seq, removed_at);
CREATE INDEX device_of_key ON device (api_key_seq);
CREATE INDEX device_of_topic ON device (token) WHERE kind = 'ntfy' AND removed_at IS NULL;

-- The status of one notification on one device.
CREATE TABLE delivery (
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    device_seq INTEGER NOT NULL,           -- no foreign key: purging a device would make SQLite scan this table
    status TEXT NOT NULL                   -- 'quiet': not pushed, now or later, in the device's quiet hours
        CHECK (status = 'delivered' OR status = 'pending' OR status = 'failed' OR status = 'quiet'),
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER,               -- while pending: when the retry is due; a claim moves it to the end of its lease
    answered_at INTEGER,
    error TEXT,
    PRIMARY KEY (notification_seq, device_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_pending ON delivery (device_seq, next_attempt_at) WHERE status = 'pending';

-- The channels that get a notification if no other device has it by then (core/channels.py).
CREATE TABLE fallback (
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    device_seq INTEGER NOT NULL,           -- no foreign key, as in delivery
    account_seq INTEGER NOT NULL REFERENCES account,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (notification_seq, device_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX fallback_due ON fallback (due_at);

-- The service's own mails that are to be sent. What a link in one needs is derived, so none is here (core/mails.py).
CREATE TABLE mail (
    seq INTEGER PRIMARY KEY,
    account_seq INTEGER NOT NULL REFERENCES account,
    kind TEXT NOT NULL CHECK (kind IN ('confirm', 'test', 'more', 'invitation', 'password')),
    device_seq INTEGER,                    -- to its address; NULL: to the account's. No foreign key, as in delivery
    detail TEXT NOT NULL,                  -- 'more': how many; a link: the name from which its token is derived
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL       -- a claim moves it to the end of its lease
) STRICT;
CREATE INDEX mail_due ON mail (next_attempt_at);
CREATE INDEX mail_of_account ON mail (account_seq);

-- How many mails an account got lately.
CREATE TABLE mail_limit (
    account_seq INTEGER PRIMARY KEY REFERENCES account,
    sent TEXT NOT NULL,                    -- JSON array: when, within the last hour
    more INTEGER NOT NULL,                 -- how many were not sent since the limit was reached
    device_seq INTEGER,                    -- which gets the mail that says so
    until INTEGER                          -- when it does; NULL if nothing was left out
) STRICT;

-- The buttons whose press a device sends to us: one row for each button on each device.
CREATE TABLE button (
    token_hash BLOB PRIMARY KEY,           -- SHA-256 of the token in the button's address
    notification_seq INTEGER NOT NULL REFERENCES notification ON DELETE CASCADE,
    device_seq INTEGER NOT NULL,           -- no foreign key, as in delivery
    position INTEGER,                      -- of its answer in the notification's actions; NULL: it acknowledges
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX button_of_notification ON button (notification_seq);
CREATE INDEX button_by_age ON button (expires_at);

-- The first answer to a notification, which is the only one.
CREATE TABLE answer (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    position INTEGER NOT NULL,             -- in the notification's actions
    answered_at INTEGER NOT NULL,
    device_seq INTEGER,                    -- NULL: in the web app
    by_account_seq INTEGER                 -- who answered; NULL: its own account. No foreign key: that may be deleted
) STRICT;

-- A notification that is pushed again until it is acknowledged, or another one that was acknowledged.
CREATE TABLE alarm (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    account_seq INTEGER NOT NULL REFERENCES account,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'acknowledged', 'expired', 'cancelled')),
    ends_at INTEGER,                       -- NULL while the notification is held
    next_at INTEGER,                       -- when the next push is due, a repeat or "Acknowledged"; a claim moves it
    repeats INTEGER NOT NULL,              -- made so far
    acknowledged_at INTEGER,
    device_seq INTEGER,                    -- where it was acknowledged; NULL: in the web app or by a program
    by_account_seq INTEGER                 -- who acknowledged it, as in answer
) STRICT;
CREATE INDEX alarm_waiting ON alarm (account_seq) WHERE state = 'waiting';
CREATE INDEX alarm_due ON alarm (next_at) WHERE next_at IS NOT NULL;

-- Notifications that are pushed again at a time that their owner chose.
CREATE TABLE snooze (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    account_seq INTEGER NOT NULL REFERENCES account,
    until INTEGER,                         -- when it is pushed again; NULL once it was, or is no longer to be
    times INTEGER NOT NULL DEFAULT 0       -- it was pushed again so often
) STRICT;
CREATE INDEX snooze_due ON snooze (until) WHERE until IS NOT NULL;

CREATE TABLE idempotency_key (
    account_seq INTEGER NOT NULL REFERENCES account,
    key TEXT NOT NULL,
    request_hash BLOB NOT NULL,            -- SHA-256 of what the request says (core/idempotency.py)
    notification_id TEXT NOT NULL,         -- no foreign key: the key stays when its notification is deleted
    answered_status TEXT,                  -- the status in the first response; NULL if the process died before it
    created_at INTEGER NOT NULL,           -- also that of the notification
    PRIMARY KEY (account_seq, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_key_by_age ON idempotency_key (created_at);

-- A metric of a project. Values refer to it by this one number, which keeps their index narrow.
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

-- A job that is expected to ping, and is reported as down when it does not.
CREATE TABLE heartbeat (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: the limit of pings counts by it
    id TEXT NOT NULL UNIQUE,
    ping_id TEXT NOT NULL UNIQUE,          -- the UUID in its address, which is a credential
    account_seq INTEGER NOT NULL REFERENCES account,
    name TEXT NOT NULL,
    period_s INTEGER,                      -- it pings at least that often, or else
    cron TEXT,                             -- whenever this expression says, in the account's time zone
    grace_s INTEGER NOT NULL,
    priority INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 5),
    state TEXT NOT NULL CHECK (state IN ('new', 'up', 'late', 'down', 'paused')),
    last_ping_at INTEGER,                  -- a success or a failure: no start, no log
    deadline_at INTEGER,                   -- when 'up' becomes 'late', or 'late' 'down'; NULL in other states
    down_since INTEGER,                    -- NULL unless it is down, or was when it was paused
    created_at INTEGER NOT NULL,
    CHECK ((period_s IS NULL) <> (cron IS NULL))
) STRICT;
CREATE INDEX heartbeat_of_account ON heartbeat (account_seq);
CREATE INDEX heartbeat_due ON heartbeat (deadline_at) WHERE deadline_at IS NOT NULL;

-- The newest pings of each heartbeat.
CREATE TABLE ping (
    seq INTEGER PRIMARY KEY,
    heartbeat_seq INTEGER NOT NULL REFERENCES heartbeat ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('success', 'start', 'fail', 'log')),
    exit_code INTEGER,                     -- if it named one
    body TEXT NOT NULL,                    -- its beginning
    received_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ping_of_heartbeat ON ping (heartbeat_seq);

-- When each heartbeat was up (late counts as that), down or paused: the newest changes.
CREATE TABLE heartbeat_change (
    seq INTEGER PRIMARY KEY,
    heartbeat_seq INTEGER NOT NULL REFERENCES heartbeat ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('new', 'up', 'down', 'paused')),
    changed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX heartbeat_change_of_heartbeat ON heartbeat_change (heartbeat_seq);

-- A rule on a metric: its owner is told when it begins to hold, and when it no longer does.
CREATE TABLE metric_rule (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_seq INTEGER NOT NULL REFERENCES account,
    project_id TEXT NOT NULL,              -- it and the next: not the series, which goes with its last value
    metric_id TEXT NOT NULL,
    operator TEXT NOT NULL CHECK (operator IN ('>', '>=', '<', '<=', '=', '!=', 'silent')),
    threshold REAL,                        -- NULL for 'silent'
    for_s INTEGER NOT NULL,                -- for so long it must hold; for 'silent', no value must arrive
    state TEXT NOT NULL CHECK (state IN ('ok', 'firing')),
    changed_at INTEGER,                    -- when the state last changed; NULL: never
    holds_since INTEGER,                   -- the timestamp of the value since which it holds; NULL while it does not
    fires_at INTEGER,                      -- if it is to fire by the clock: when, unless a value comes before
    look_at INTEGER,                       -- when to look next: at most fires_at, or when a value is no longer future
    created_at INTEGER NOT NULL,
    CHECK ((operator = 'silent') = (threshold IS NULL))
) STRICT;
CREATE INDEX metric_rule_of_metric ON metric_rule (account_seq, project_id, metric_id);
CREATE INDEX metric_rule_due ON metric_rule (look_at) WHERE look_at IS NOT NULL;

-- When each rule fired: the newest times.
CREATE TABLE firing (
    seq INTEGER PRIMARY KEY,
    rule_seq INTEGER NOT NULL REFERENCES metric_rule ON DELETE CASCADE,
    began_at INTEGER NOT NULL,
    ended_at INTEGER                       -- NULL while it fires
) STRICT;
CREATE INDEX firing_of_rule ON firing (rule_seq, began_at);

-- What must not ring for a while, or, with `cron`, again and again.
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
CREATE INDEX mute_of_account ON mute (account_seq);

-- What changed in silence within a mute that comes again: the owner is told at its end if it is still so.
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

-- Other accounts that get a copy of what something sends, and those that are invited to.
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

-- The notifications of followers: copies of one that something of another account sent.
CREATE TABLE notification_copy (
    notification_seq INTEGER PRIMARY KEY REFERENCES notification ON DELETE CASCADE,
    original_seq INTEGER NOT NULL,         -- the owner's notification. No foreign keys: it and the sender may be deleted
    owner_seq INTEGER NOT NULL,
    what TEXT NOT NULL CHECK (what IN ('alert', 'key', 'heartbeat', 'rule')),
    subject_seq INTEGER NOT NULL           -- of the sender
) STRICT;
CREATE INDEX notification_copy_of_original ON notification_copy (original_seq);

-- Keys of the service itself, such as the Web Push key pair. They are in the database so that backups contain them.
CREATE TABLE server_key (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What the service itself remembers across restarts.
CREATE TABLE server_note (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
