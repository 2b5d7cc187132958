-- When heartbeats were up, down or paused: their uptime.
CREATE TABLE heartbeat_change (
    seq INTEGER PRIMARY KEY,
    heartbeat_seq INTEGER NOT NULL REFERENCES heartbeat ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('new', 'up', 'down', 'paused')),
    changed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX heartbeat_change_of_heartbeat ON heartbeat_change (heartbeat_seq);
INSERT INTO heartbeat_change (heartbeat_seq, state, changed_at)
    SELECT seq, CASE state WHEN 'late' THEN 'up' ELSE state END,
           CASE state WHEN 'down' THEN down_since ELSE coalesce(last_ping_at, created_at) END
    FROM heartbeat WHERE state <> 'new';
