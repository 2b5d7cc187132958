"""The limits of each plan: requests, history and metrics."""

from typing import NamedTuple

from process.clock import DAY_MS


class Plan(NamedTuple):
    """The numbers of a plan."""

    rest_per_minute: int  # requests of an API key
    metrics_per_hour: int  # requests of the account
    history_days: int
    metric_values: int  # that the account keeps


PLANS = {
    "starter": Plan(100, 100, 30, 1_000_000),
    "pro": Plan(1_000, 1_000, 365, 10_000_000),
    "scale": Plan(1_000, 10_000, 1_095, 50_000_000),
}


def history_begin(plan: str, now: int) -> int:
    """The time (ms) from which on the plan shows and keeps the history."""
    return now - PLANS[plan].history_days * DAY_MS
