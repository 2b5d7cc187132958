-- The count of all time is beside those of the days: one statement counts both, and writes no account anew.
INSERT INTO notification_day (account_seq, day, notification_count)
    SELECT seq, '', notification_count FROM account WHERE notification_count > 0;
ALTER TABLE account DROP COLUMN notification_count;

-- For a list of more than two, SQLite builds a table each time that it checks a row. What the rows hold is the same.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'status IN (''delivered'', ''pending'', ''held'', ''failed'')',
    'status = ''delivered'' OR status = ''pending'' OR status = ''held'' OR status = ''failed''')
    WHERE name = 'notification';
UPDATE sqlite_schema SET sql = replace(sql, 'status IN (''delivered'', ''pending'', ''failed'')',
    'status = ''delivered'' OR status = ''pending'' OR status = ''failed''') WHERE name = 'delivery';
PRAGMA writable_schema = RESET;
