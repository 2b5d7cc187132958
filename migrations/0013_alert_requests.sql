-- The latest requests to each alert outlast a restart.
CREATE TABLE alert_requests (
    alert_seq INTEGER PRIMARY KEY REFERENCES alert ON DELETE CASCADE,
    requests TEXT NOT NULL                 -- JSON array, newest first: arrays of time, status, words, how many, notification
) STRICT;
