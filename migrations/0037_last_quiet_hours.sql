-- The quiet hours that an account had when it switched them off, so that it can switch them on again.
ALTER TABLE account ADD COLUMN last_quiet_hours TEXT;
