"""`GET /metrics`: figures about this process and its work, for Prometheus. Must not know SQL or providers.

prometheus-client is imported when it is first needed.
"""

from collections.abc import Iterator
from typing import Any

from config import VERSION
from core import scheduler, sharing
from process import clock, counters
from store import deliveries, held_notifications
from store.database import size_bytes
from store.engine import SCHEMA_VERSION, DatabaseError

COUNTERS = {
    "responses": ("Responses to requests.", ("method", "route", "status")),
    "notifications": ("Notifications by their first status.", ("source", "status")),
    "pushes": ("Pushes to devices by outcome.", ("provider", "outcome")),
    "sign_in_failures": ("Passwords that were wrong, or not looked at after too many.", ("reason",)),
}
HISTOGRAMS = {
    "request_seconds": ("Time from the first byte of a request to the last of its answer.", "route"),
    "push_delay_seconds": ("Time from when a push was due until its provider had taken it.", "provider"),
}


def show_figures() -> tuple[str, int, dict[str, str]]:
    """GET /metrics."""
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

    collector: Any = _Collector()
    return generate_latest(collector).decode(), 200, {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}


class _Collector:
    """Reads the figures when they are asked for."""

    def collect(self) -> Iterator[Any]:
        """Each figure with its name and help."""
        from prometheus_client import ProcessCollector
        from prometheus_client import metrics_core as families

        yield from ProcessCollector(registry=None).collect()
        build = {"version": VERSION, "schema": str(SCHEMA_VERSION)}
        yield families.InfoMetricFamily("pocketbell_build", "Version and schema of this Pocketbell.", build)
        counters.share()
        for name, (help_, labels) in COUNTERS.items():
            family = families.CounterMetricFamily(f"pocketbell_{name}", help_, labels=labels)
            for values, number in sorted(counters.counted(name).items()):
                family.add_metric(values, number)
            yield family
        for name, (help_, label) in HISTOGRAMS.items():
            times = families.HistogramMetricFamily(f"pocketbell_{name}", help_, labels=[label])
            for labelled, (buckets, sum_s) in counters.histograms(name).items():
                times.add_metric([labelled], buckets, sum_s)
            yield times
        try:
            stored, is_up = _stored(), 1
        except DatabaseError:
            stored, is_up = [], 0
        lag_s = scheduler.background.lag_s()
        for name, help_, value in (
            ("database_up", "Whether the database can be read.", is_up),
            ("worker_lag_seconds", "Seconds since the background worker finished its last round.", lag_s),
            *stored,
        ):
            yield families.GaugeMetricFamily(f"pocketbell_{name}", help_, value)
        if (away := sharing.is_away()) is not None:
            help_ = "Whether this process counts in Redis."
            yield families.GaugeMetricFamily("pocketbell_redis_up", help_, int(not away))


def _stored() -> list[tuple[str, str, float]]:
    """The figures that the database has; raises `DatabaseError`."""
    due_at = deliveries.next_due_at()
    overdue_ms = max(0, clock.now_ms() - due_at) if due_at is not None else 0
    return [
        ("notifications_held", "Notifications held for quiet hours, a mute or a digest.", held_notifications.count()),
        ("pushes_pending", "Pushes waiting for another attempt.", deliveries.count_pending()),
        ("database_bytes", "How much of a disk the database takes.", size_bytes()),
        ("push_overdue_seconds", "Seconds since the oldest waiting push was due.", overdue_ms / 1000),
    ]
