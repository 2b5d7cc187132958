-- An alert's pushes may have a button that mutes it for an hour.
ALTER TABLE alert ADD COLUMN has_mute_button INTEGER NOT NULL DEFAULT 0 CHECK (has_mute_button IN (0, 1));
