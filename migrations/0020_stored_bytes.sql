-- How many bytes of text and numbers an account has stored, beside its count of all time.
ALTER TABLE notification_day ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;
INSERT INTO notification_day (account_seq, day, notification_count, stored_bytes)
    SELECT account_seq, '', 0, sum(bytes) FROM (
        SELECT account_seq, length(CAST(title || body || coalesce(missing, '') || coalesce(url, '') || coalesce(tag, '')
            || coalesce(actions, '') || coalesce(acknowledge, '') || coalesce(tags, '') AS BLOB)) AS bytes
            FROM notification
        UNION ALL
        SELECT account_seq, length(CAST(project_id || metric_id AS BLOB)) FROM metric_series
        UNION ALL
        SELECT s.account_seq, 16 + length(CAST(metric_name || coalesce(unit, '') || coalesce(metadata, '') AS BLOB))
            FROM metric m JOIN metric_series s ON s.seq = m.series_seq
    ) stored GROUP BY account_seq
    ON CONFLICT (account_seq, day) DO UPDATE SET stored_bytes = excluded.stored_bytes;
