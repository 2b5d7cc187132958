-- Open streams of the ntfy app find what was acknowledged lately.
CREATE INDEX alarm_acknowledged ON alarm (account_seq, acknowledged_at) WHERE acknowledged_at IS NOT NULL;
