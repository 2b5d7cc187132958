-- A batch of values reads the rules themselves, and moves the times of silent ones at once.
UPDATE metric_rule SET fires_at = coalesce(for_s * 1000 + (
        SELECT max(arrived_at) FROM rule_arrival
            WHERE replace(replace(replace(rule_seqs, ' ', ''), '[', ','), ']', ',') LIKE '%,' || metric_rule.seq || ',%'
    ), fires_at)
    WHERE fires_at IS NOT NULL;
DROP TABLE rule_arrival;
ALTER TABLE account DROP COLUMN rules_version;
