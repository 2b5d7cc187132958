"""`GET /metrics`: figures for Prometheus about this process and what it did. Must not know SQL or push.

prometheus-client is imported when it is first needed.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from core.jobs import worker
from process import clock
from process.counters import counted
from store.deliveries import Delivery
from store.held import Held

COUNTERS = {
    "responses": ("Answers to requests.", ("method", "route", "status")),
    "notifications": ("Notifications, by what became of them at once.", ("source", "status")),
    "pushes": ("Pushes to devices.", ("provider", "outcome")),
}


def show_figures() -> tuple[str, int, dict[str, str]]:
    """GET /metrics."""
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

    return generate_latest(_registry()).decode(), 200, {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}


@cache
def _registry() -> Any:
    from prometheus_client import CollectorRegistry, ProcessCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Collector())
    return registry


class _Collector:
    """Reads the figures when they are asked for."""

    def collect(self) -> Iterator[Any]:
        """Each figure with its name and help."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, (help_, labels) in COUNTERS.items():
            family = CounterMetricFamily(f"pocketbell_{name}", help_, labels=labels)
            for values, number in sorted(counted(name).items()):
                family.add_metric(values, number)
            yield family
        due_at = Delivery.next_due_at()
        overdue_ms = max(0, clock.now_ms() - due_at) if due_at is not None else 0
        for name, help_, value in (
            ("notifications_held", "Waiting for quiet hours or a digest.", Held.count()),
            ("pushes_pending", "Pushes to be tried again.", Delivery.count_pending()),
            ("push_overdue_seconds", "Since the oldest of them was due.", overdue_ms / 1000),
            ("worker_lag_seconds", "Since the background worker's last round ended.", worker.lag_s()),
        ):
            yield GaugeMetricFamily(f"pocketbell_{name}", help_, value)
