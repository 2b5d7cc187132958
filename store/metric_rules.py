"""The tables of rules on metrics and of when they fired, and their queries."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from store.database import THESE, run
from store.enabled import IS_ENABLED, OF_ENABLED
from store.rows import Change, Query, add_own, add_row, change_row, columns, counting, keep_newest, overdue
from store.senders import Subject, Watch

KEPT_FIRINGS = 100  # of a rule


class Changes(NamedTuple):
    """The columns of a rule that values and time change; schema.sql explains them."""

    state: str
    holds_since: int | None
    fires_at: int | None
    look_at: int | None


class RuleColumns(NamedTuple):
    """A rule, and its account's settings that a notification needs."""

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


class Rule(RuleColumns, Watch):
    """A rule as a sender of notifications. `metric_name` is the metric's newest name, None without values."""

    __slots__ = ()

    @property
    def changes(self) -> Changes:
        """The present values of these columns."""
        return Changes(self.state, self.holds_since, self.fires_at, self.look_at)

    @property
    def subject(self) -> Subject:
        """What a mute may name."""
        return "rule", self.seq


class Watched(NamedTuple):
    """The columns of a rule that tell whether a value may change it."""

    seq: int
    metric_id: str
    operator: str
    threshold: float | None
    for_s: int
    is_firing: int
    holds_since: int | None


class Firing(NamedTuple):
    """A period in which a rule fired; `ended_at` is None while it does."""

    began_at: int
    ended_at: int | None


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
# The account's rules, newest first.
of_account = Query(Rule, f"{RULES} WHERE r.account_seq = ? ORDER BY r.seq DESC").all
# The account's rules on this metric, newest first.
of_metric = Query(
    Rule, f"{RULES} WHERE r.account_seq = ? AND r.project_id = ? AND r.metric_id = ? ORDER BY r.seq DESC"
).all
# The accounts that have rules.
account_seqs = Query(int, "SELECT DISTINCT account_seq FROM metric_rule").all
LATEST_VALUES = (
    "SELECT r.seq, m.value, m.unit FROM metric_rule r JOIN metric_series s ON s.account_seq = r.account_seq"
    " AND s.project_id = r.project_id AND s.metric_id = r.metric_id JOIN metric m ON m.seq = (SELECT seq FROM metric"
    " WHERE series_seq = s.seq AND timestamp <= ? ORDER BY timestamp DESC, seq DESC LIMIT 1) WHERE r.account_seq = ?"
)
# The account's rule with that id.
find = Query(Rule, f"{RULES} WHERE r.account_seq = ? AND r.id = ?").first
# The rule as it is now; None if it was deleted.
one = Query(Rule, f"{RULES} WHERE r.seq = ? AND {IS_ENABLED}").first
IS_FIRING = "state = 'firing'"
# The rules of a project, in the order of their seqs.
watched = Query(
    Watched,
    f"SELECT {columns(Watched, 'metric_rule', is_firing=IS_FIRING)} FROM metric_rule"
    " WHERE account_seq = ? AND project_id = ? ORDER BY seq",
).all
# Let these silent rules wait for a value that arrived then. `look_at` stays, so that no index changes: it is earlier
# than needed, and is moved when that time has come.
expect = Change(f"UPDATE metric_rule SET fires_at = ? + for_s * 1000 WHERE seq IN {THESE} AND fires_at IS NOT NULL")
CHANGE = (
    "UPDATE metric_rule SET state = ?, holds_since = ?, fires_at = ?, look_at = ?,"
    " changed_at = CASE WHEN state = ? THEN changed_at ELSE ? END"
    " WHERE seq = ? AND state = ? AND holds_since IS ? AND fires_at IS ? AND look_at IS ?"
)
# Let the worker look at the rule then.
set_look_at = Change("UPDATE metric_rule SET look_at = ? WHERE seq = ?")
# Let the rules that are about to fire forget the values of a `metric`, or (None) of the `project`: they are gone.
begin_anew = Change(
    "UPDATE metric_rule SET holds_since = NULL, fires_at = NULL, look_at = :now WHERE account_seq = :account"
    " AND project_id = :project AND metric_id = coalesce(:metric, metric_id)"
    " AND state = 'ok' AND holds_since IS NOT NULL"
)
MOVED = "min(fires_at + :gap, :now + for_s * 1000)"
OF_ACCOUNTS = "account_seq IN (SELECT value FROM json_each(:accounts))"
MOVE_FIRING_SINCE = f"UPDATE metric_rule SET changed_at = changed_at + :by WHERE {IS_FIRING} AND {OF_ACCOUNTS}"
# Postpone the timed rules of these `accounts` by the `gap`, but not beyond the time of a rule that began `now`. Their
# times that began since `back` are right.
move = Change(
    f"UPDATE metric_rule SET fires_at = {MOVED}, look_at = min(look_at, {MOVED})"
    " WHERE fires_at IS NOT NULL AND fires_at - for_s * 1000 NOT BETWEEN :back AND :now"
    f" AND {OF_ACCOUNTS}"
)

add, remove = partial(add_own, "metric_rule"), Change("DELETE FROM metric_rule WHERE seq = ?")
count, count_firing = counting("metric_rule"), counting("metric_rule", IS_FIRING)
due = overdue("metric_rule", "look_at", only=f"account_seq {OF_ENABLED}")  # they are to be looked at


def replace_condition(rule: Rule, values: dict[str, Any]) -> None:
    """Give it these columns, and forget when it fired and when its state changed."""
    change_row("metric_rule", rule.seq, changed_at=None, holds_since=None, **values)
    run("DELETE FROM firing WHERE rule_seq = ?", (rule.seq,))


def latest_values(account_seq: int, now: int) -> dict[int, tuple[float, str]]:
    """By the seq of each of the account's rules, the latest value of its metric, and its unit."""
    return {seq: (value, unit or "") for seq, value, unit in run(LATEST_VALUES, (now, account_seq))}


# --- states ---


def change(rule: Rule, changes: Changes, now: int) -> bool:
    """Make the changes unless the rule has changed since `rule` was read; returns whether it did.

    Call inside the transaction that records what the change tells the owner.
    """
    return run(CHANGE, (*changes, changes.state, now, rule.seq, *rule.changes)).rowcount > 0


def move_firing_since(account_seqs: list[int], by_ms: int) -> None:
    """After the clock was set, move the beginnings of open firings."""
    values = {"by": by_ms, "accounts": account_seqs}
    run(MOVE_FIRING_SINCE, values)
    run(MOVE_OPEN_FIRINGS, values)


MOVE_OPEN_FIRINGS = (
    "UPDATE firing SET began_at = began_at + :by WHERE ended_at IS NULL"
    f" AND rule_seq IN (SELECT seq FROM metric_rule WHERE {OF_ACCOUNTS})"
)
# Note from when on the rule no longer fires.
end_firing = Change("UPDATE firing SET ended_at = max(?, began_at) WHERE rule_seq = ? AND ended_at IS NULL")
FIRINGS = (
    "SELECT rule_seq, began_at, ended_at FROM firing WHERE rule_seq IN (SELECT value FROM json_each(:rules))"
    " AND began_at <= :until AND coalesce(ended_at, :until) >= :since ORDER BY began_at"
)


def begin_firing(rule_seq: int, now: int) -> None:
    """Note that the rule fires from now on, and keep its newest firings."""
    add_row("firing", {"rule_seq": rule_seq, "began_at": now})
    keep_newest("firing", "rule_seq", rule_seq, KEPT_FIRINGS)


def firings_within(rule_seqs: Sequence[int], since: int, until: int) -> list[tuple[int, Firing]]:
    """The firings of these rules between these times, oldest first, each with its rule's seq."""
    values = {"rules": list(rule_seqs), "since": since, "until": until}
    return [(seq, Firing(*times)) for seq, *times in run(FIRINGS, values).fetchall()]
