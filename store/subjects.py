"""What a row of another table may name by its kind and its seq: an alert, an API key, a heartbeat or a rule.

A query joins them with `joined()`: then `ID` and `NAME` are those of what the row names, NULL if it is gone.
"""

from store.metric_rules import NAME as OF_METRIC

SUBJECTS = ("alert", "key", "heartbeat", "rule")
ID = "coalesce(l.id, k.id, h.id, r.id)"
NAME = f"coalesce(l.name, k.name, h.name, {OF_METRIC}, r.metric_id)"


def joined(table: str) -> str:
    """The joins of what the columns `what` and `subject_seq` of a table name."""
    return (
        f" LEFT JOIN alert l ON {table}.what = 'alert' AND l.seq = {table}.subject_seq"
        f" LEFT JOIN api_key k ON {table}.what = 'key' AND k.seq = {table}.subject_seq"
        f" LEFT JOIN heartbeat h ON {table}.what = 'heartbeat' AND h.seq = {table}.subject_seq"
        f" LEFT JOIN metric_rule r ON {table}.what = 'rule' AND r.seq = {table}.subject_seq"
    )
