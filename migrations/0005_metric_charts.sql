-- The charts of a metric read its values from the index alone.
DROP INDEX metric_series;
CREATE INDEX metric_series ON metric (account_seq, project_id, metric_id, timestamp, value);
