-- The count of all time is beside those of the days: one statement counts both, and writes no account anew.
INSERT INTO notification_day (account_seq, day, notification_count)
    SELECT seq, '', notification_count FROM account WHERE notification_count > 0;
ALTER TABLE account DROP COLUMN notification_count;
