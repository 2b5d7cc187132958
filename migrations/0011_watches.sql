-- Heartbeats: a job that is expected to ping is reported as down when it does not.
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
    last_ping_at INTEGER,                  -- of any kind but a start
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
    kind TEXT NOT NULL CHECK (kind IN ('success', 'start', 'fail')),
    exit_code INTEGER,                     -- if it named one
    body TEXT NOT NULL,                    -- its beginning
    received_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ping_of_heartbeat ON ping (heartbeat_seq);
