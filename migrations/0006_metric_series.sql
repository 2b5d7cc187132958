-- The index of the values holds a number in the place of account, project and metric.
DROP INDEX metric_series;
CREATE TABLE metric_series (
    seq INTEGER PRIMARY KEY,
    account_seq INTEGER NOT NULL REFERENCES account,
    project_id TEXT NOT NULL,
    metric_id TEXT NOT NULL
) STRICT;
INSERT INTO metric_series (account_seq, project_id, metric_id)
    SELECT DISTINCT account_seq, project_id, metric_id FROM metric ORDER BY 1, 2, 3;
CREATE UNIQUE INDEX metric_series_ids ON metric_series (account_seq, project_id, metric_id);

ALTER TABLE metric RENAME TO metric_of_schema_5;
CREATE TABLE metric (
    seq INTEGER PRIMARY KEY,
    series_seq INTEGER NOT NULL REFERENCES metric_series,
    metric_name TEXT NOT NULL,
    value REAL NOT NULL,
    unit TEXT,
    timestamp INTEGER NOT NULL,
    metadata TEXT
) STRICT;
INSERT INTO metric (seq, series_seq, metric_name, value, unit, timestamp, metadata)
    SELECT old.seq, series.seq, metric_name, value, unit, timestamp, metadata
    FROM metric_of_schema_5 old JOIN metric_series series USING (account_seq, project_id, metric_id) ORDER BY old.seq;
DROP TABLE metric_of_schema_5;
CREATE INDEX metric_of_series ON metric (series_seq, timestamp, value);
