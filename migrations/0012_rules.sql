-- Rules on metrics: the owner is told when one begins to hold, and when it no longer does.
ALTER TABLE account ADD COLUMN rules_version INTEGER;

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

-- When values of silent rules' metrics arrived: a row for each set of rules whose metrics one batch had. The times that
-- are newer than what `fires_at` follows from; moved into it now and then.
CREATE TABLE rule_arrival (
    account_seq INTEGER NOT NULL REFERENCES account,
    rule_seqs TEXT NOT NULL,               -- a JSON array in order
    arrived_at INTEGER NOT NULL,
    PRIMARY KEY (account_seq, rule_seqs)
) STRICT, WITHOUT ROWID;
