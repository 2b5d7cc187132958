-- An account's ping key pings its heartbeats by their slugs; a ping may also be a log. Older accounts get a key when
-- their owner asks for one.
ALTER TABLE account ADD COLUMN ping_key TEXT;
CREATE UNIQUE INDEX account_ping_key ON account (ping_key);
CREATE TABLE kept_ping AS SELECT * FROM ping;
DROP TABLE ping;
CREATE TABLE ping (
    seq INTEGER PRIMARY KEY,
    heartbeat_seq INTEGER NOT NULL REFERENCES heartbeat ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('success', 'start', 'fail', 'log')),
    exit_code INTEGER,                     -- if it named one
    body TEXT NOT NULL,                    -- its beginning
    received_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ping_of_heartbeat ON ping (heartbeat_seq);
INSERT INTO ping (heartbeat_seq, kind, exit_code, body, received_at)
    SELECT heartbeat_seq, kind, exit_code, body, received_at FROM kept_ping ORDER BY seq;
DROP TABLE kept_ping;
