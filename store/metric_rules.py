"""The tables of rules on metrics and of when they fired, and their queries. Callers pass the time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import peewee

from models import Account, Model, new_id
from store.database import run
from store.rows import columns, reader
from wire.json_text import as_json

KEPT_FIRINGS = 100  # of a rule


class Rule(NamedTuple):
    """A rule with what is needed of its account: its condition, its state, and what decides when it may be heard.

    It sends notifications as a heartbeat does. `metric_name` is the metric's newest, None without values.
    """

    seq: int
    id: str
    account_seq: int
    project_id: str
    metric_id: str
    metric_name: str | None
    operator: str
    threshold: float | None
    for_s: int
    state: str
    changed_at: int | None
    holds_since: int | None
    fires_at: int | None
    look_at: int | None
    created_at: int
    email: str
    time_zone: str
    quiet_hours: str | None

    @property
    def key_seq(self) -> None:
        """A rule is no key."""

    @property
    def alert_seq(self) -> None:
        """A rule is no alert."""

    @property
    def frequency(self) -> str:
        """Nothing is collected."""
        return "instant"

    @property
    def urgent_passes_quiet_hours(self) -> int:
        """Quiet hours hold what is urgent, too."""
        return 0


class Firing(NamedTuple):
    """From when to when a rule fired; `ended_at` is None while it does."""

    began_at: int
    ended_at: int | None


class MetricRule(Model):
    """A rule on a metric, which need not have values."""

    seq = peewee.AutoField()
    id = peewee.TextField()
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    project_id = peewee.TextField()
    metric_id = peewee.TextField()
    operator = peewee.TextField()
    threshold = peewee.FloatField(null=True)
    for_s = peewee.IntegerField()
    state = peewee.TextField()
    changed_at = peewee.IntegerField(null=True)
    holds_since = peewee.IntegerField(null=True)
    fires_at = peewee.IntegerField(null=True)
    look_at = peewee.IntegerField(null=True)
    created_at = peewee.IntegerField()

    NAME = (
        "(SELECT m.metric_name FROM metric_series s JOIN metric m ON m.series_seq = s.seq"
        " WHERE s.account_seq = r.account_seq AND s.project_id = r.project_id AND s.metric_id = r.metric_id"
        " ORDER BY m.timestamp DESC, m.seq DESC LIMIT 1)"
    )
    OF_ACCOUNT = {"email": "a.email", "time_zone": "a.time_zone", "quiet_hours": "a.quiet_hours"}
    RULES = (
        f"SELECT {columns(Rule, 'r', metric_name=NAME, **OF_ACCOUNT)}"
        " FROM metric_rule r JOIN account a ON a.seq = r.account_seq"
    )
    READ = staticmethod(reader(Rule))
    ALL = f"{RULES} WHERE r.account_seq = ? ORDER BY r.seq DESC"
    OF_METRIC = f"{RULES} WHERE r.account_seq = ? AND r.project_id = ? AND r.metric_id = ? ORDER BY r.seq DESC"
    FIND = f"{RULES} WHERE r.account_seq = ? AND r.id = ?"
    ONE = f"{RULES} WHERE r.seq = ?"

    @classmethod
    def add(cls, account_seq: int, values: dict[str, Any], now: int) -> str:
        """The id of a new rule with these columns; call inside `transaction()`."""
        id_ = new_id(now)
        cls.create(id=id_, account=account_seq, created_at=now, **values)
        return id_

    @classmethod
    def remove(cls, seq: int) -> None:
        """Delete it with its firings; call inside `transaction()`."""
        run("DELETE FROM metric_rule WHERE seq = ?", (seq,))

    @classmethod
    def count(cls, account_seq: int) -> int:
        """How many the account has."""
        return int(run("SELECT count(*) FROM metric_rule WHERE account_seq = ?", (account_seq,)).fetchone()[0])

    @classmethod
    def of_account(cls, account_seq: int) -> list[Rule]:
        """The account's rules, newest first."""
        return list(map(cls.READ, run(cls.ALL, (account_seq,)).fetchall()))

    @classmethod
    def of_metric(cls, account_seq: int, project_id: str, metric_id: str) -> list[Rule]:
        """The account's rules on this metric, newest first."""
        return list(map(cls.READ, run(cls.OF_METRIC, (account_seq, project_id, metric_id)).fetchall()))

    @classmethod
    def find(cls, account_seq: int, id_: str) -> Rule | None:
        """The account's rule with that id."""
        return cls._one(cls.FIND, account_seq, id_)

    @classmethod
    def one(cls, seq: int) -> Rule | None:
        """The rule as it is now; None if it was deleted."""
        return cls._one(cls.ONE, seq)

    @classmethod
    def _one(cls, query: str, *values: object) -> Rule | None:
        row = run(query, values).fetchone()
        return cls.READ(row) if row else None


class RuleFiring(Model):
    """One of the newest times that a rule fired."""

    seq = peewee.AutoField()
    rule = peewee.ForeignKeyField(MetricRule, column_name="rule_seq", on_delete="CASCADE")
    began_at = peewee.IntegerField()
    ended_at = peewee.IntegerField(null=True)

    class Meta:
        table_name = "firing"

    OF_RULES = (
        "SELECT rule_seq, began_at, ended_at FROM firing WHERE rule_seq IN (SELECT value FROM json_each(:rules))"
        " AND began_at <= :until AND coalesce(ended_at, :until) >= :since ORDER BY began_at"
    )

    @classmethod
    def within(cls, rule_seqs: Sequence[int], since: int, until: int) -> list[tuple[int, Firing]]:
        """When these rules fired between these times, the oldest first, each with its rule's seq."""
        values = {"rules": as_json(list(rule_seqs)), "since": since, "until": until}
        return [(seq, Firing(*times)) for seq, *times in run(cls.OF_RULES, values).fetchall()]
