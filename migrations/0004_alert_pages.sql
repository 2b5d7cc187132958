-- The alert page: the last payload of each alert, unless its owner does not want it kept, and the preset it was made from.
ALTER TABLE alert ADD COLUMN preset TEXT;
ALTER TABLE alert ADD COLUMN keeps_payload INTEGER NOT NULL DEFAULT 1 CHECK (keeps_payload IN (0, 1));
CREATE TABLE alert_payload (
    alert_seq INTEGER PRIMARY KEY REFERENCES alert ON DELETE CASCADE,
    payload TEXT,
    received_at INTEGER NOT NULL
) STRICT;
