-- The index of the values holds a number in the place of account, project and metric.
CREATE TEMP TABLE ids AS SELECT DISTINCT account_seq, project_id, metric_id FROM metric; -- by the index, which is in order
DROP INDEX metric_series;
CREATE TABLE metric_series (
    seq INTEGER PRIMARY KEY,
    account_seq INTEGER NOT NULL REFERENCES account,
    project_id TEXT NOT NULL,
    metric_id TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX metric_series_ids ON metric_series (account_seq, project_id, metric_id);
INSERT INTO metric_series (account_seq, project_id, metric_id) SELECT account_seq, project_id, metric_id FROM temp.ids;
DROP TABLE temp.ids;

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
CREATE INDEX metric_of_series ON metric (series_seq, timestamp, value); -- now: to sort millions takes their memory
INSERT INTO metric (seq, series_seq, metric_name, value, unit, timestamp, metadata)
    SELECT old.seq, series.seq, metric_name, value, unit, timestamp, metadata
    FROM metric_of_schema_5 old CROSS JOIN metric_series series USING (account_seq, project_id, metric_id);
DROP TABLE metric_of_schema_5;
