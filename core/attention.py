"""Everything that needs an account's owner, worst first, for Home and the navigation. Must not know requests."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import push
from core import local_time, metric_rules, proxies, storage
from core.buttons import LIFE_MS
from core.plans import history_begin
from core.value_text import cut
from models import Account, Alert, Device
from store import alarms, buttons, custom_metrics, heartbeats, key_limits, notification_days
from store import metric_rules as stored_rules
from store.heartbeats import Beat
from store.metric_rules import Rule
from store.senders import find_receivers
from wire.notification import bare

MAX_QUESTIONS = 20
MAX_TEXT = 100  # characters of what rings
LAST_IS_GONE = "Your last device no longer exists, according to its push service. Add another."
# The worst first: what rings, what keeps everything from arriving, what is broken, what waits, what may break.
KINDS = (
    "alarm",
    "storage",
    "no device",
    "heartbeat",
    "rule",
    "question",
    "alert",
    "device",
    "provider",
    "proxy",
    "https",
    "new device",
    "key",
)


class Need(NamedTuple):
    """Something that needs the owner: a sentence that begins with a name, why, and since when."""

    kind: str
    name: str  # the owner's or a sender's words; "" if it is about the whole service
    said: str
    why: str
    since: int | None = None
    ids: tuple[str, ...] = ()  # of the notification, heartbeat or alert, or of the project and the metric
    key: str = ""  # the name of the API key that did it, with which `why` ends


class Watched(NamedTuple):
    """An account's heartbeats, rules on metrics and devices, which a page shows beside what needs its owner."""

    beats: list[Beat]
    rules: list[Rule]
    devices: list[Device]

    @classmethod
    def of(cls, account_seq: int) -> "Watched":
        """Those of an account."""
        beats, rules = heartbeats.of_account(account_seq), stored_rules.of_account(account_seq)
        return cls(beats, rules, Device.of_account(account_seq))

    @property
    def receiving(self) -> list[Device]:
        """The devices without mail addresses that are not confirmed, which get nothing."""
        return [device for device in self.devices if device.confirm_by is None]


def count_watches(account_seq: int) -> int:
    """How many of the account's heartbeats are down, plus how many of its rules are firing."""
    return heartbeats.count_down(account_seq) + stored_rules.count_firing(account_seq)


def needs(account: Account, watched: Watched, is_secure: bool, now: int) -> list[Need]:
    """What needs the owner, who opened the web app at an address that is secure for other devices or is not."""
    return in_order(
        (
            *_to_answer(account, now),
            *_of_watches(account.seq, watched, now),
            *_of_devices(account, watched),
            *_of_service(account, watched.devices, is_secure, now),
        )
    )


def in_order(found: Iterable[Need]) -> list[Need]:
    """Sorted by kind, worst first, and within a kind by age, oldest first."""
    return sorted(found, key=lambda need: (KINDS.index(need.kind), need.since or 0))


def _to_answer(account: Account, now: int) -> Iterator[Need]:
    for alarm in alarms.waiting(account.seq):
        times = "once" if alarm.repeats == 1 else f"{alarm.repeats} times"
        why = f"repeated {times}" if alarm.repeats else ""
        yield Need("alarm", bare(alarm.title), cut(alarm.body, MAX_TEXT), why, alarm.created_at, (alarm.id,))
    since = max(now - LIFE_MS, history_begin(account.plan, now))
    for one in buttons.open_questions(account=account.seq, since=since, now=now, limit=MAX_QUESTIONS):
        yield Need("question", bare(one.title), "", "It waits for an answer", one.created_at, (one.id,))


def _of_watches(account_seq: int, watched: Watched, now: int) -> Iterator[Need]:
    for beat in watched.beats:
        if beat.state == "down":
            yield Need("heartbeat", beat.name, "is down", why_down(beat), beat.down_since, (beat.id,))
    for rule in watched.rules:
        if rule.state == metric_rules.FIRING:
            ids = (rule.project_id, rule.metric_id)
            newest = custom_metrics.newest(rule.account_seq, ids, 0, now, 1)
            unit = newest[0].unit if newest else None
            is_silent = rule.operator == metric_rules.SILENT or not newest
            said = "is silent" if is_silent else f"is {metric_rules.measured_text(newest[0].value, unit)}"
            why = f"Rule “{metric_rules.rule_words(rule, unit)}” firing"
            yield Need("rule", metric_rules.metric_title(rule), said, why, rule.changed_at, ids)
    for alert in Alert.of_account(account_seq):
        if alert.paused_at:
            yield Need("alert", alert.name, "is paused", "It got too many requests", alert.paused_at, (alert.id,))


def why_down(beat: Beat) -> str:
    """Why a heartbeat is down."""
    newest = heartbeats.newest_outcome(beat.seq)
    if newest is None or newest.kind != "fail":
        return "No ping came in time"
    return "Failed" if newest.exit_code is None else f"Failed with exit code {newest.exit_code}"


def _of_devices(account: Account, watched: Watched) -> Iterator[Need]:
    if not watched.receiving and find_receivers(account.seq).last_was_dead:
        yield Need("no device", "", "Notifications fail", LAST_IS_GONE)
    elif not watched.receiving and account.hides_first_steps:
        yield Need("no device", "", "No device gets your notifications", "They are only saved to History.")
    for device in watched.devices:
        if device.last_error:
            yield Need("device", device.name, "gets nothing", device.last_error.rstrip("."), device.last_error_at)
        if device.api_key and device.seq > account.known_device_seq:
            why, key = "Added with the API key", device.api_key.name
            gets = "gets your notifications" if device.confirm_by is None else "is not confirmed yet"
            yield Need("new device", device.name, gets, why, device.created_at, key=key)


def _of_service(account: Account, devices: list[Device], is_secure: bool, now: int) -> Iterator[Need]:
    if storage.is_full(account.seq, notification_days.stored_bytes(account.seq)):
        why = (
            f"{storage.what_is_full()} Delete some of History, or run ./pocketbell history delete or"
            " ./pocketbell metric delete on the server."
        )
        yield Need("storage", "", "New notifications, events and metrics are refused", why)
    kinds = {device.kind for device in devices}
    for kind, warning in push.warnings(account.email).items():
        if kind in kinds:
            yield Need("provider", "", "Some devices get nothing", warning)
    if proxy := proxies.warning(now):
        yield Need("proxy", "", "The list of trusted proxies needs a correction", proxy)
    if not is_secure:
        yield Need("https", "", "Phones and other computers need https", "This page uses http.")
    for key in key_limits.told(account.seq, now):
        ends = local_time.near_time(key.expires_at, account.time_zone, now)
        yield Need("key", key.name, "expires soon", f"Programs with this key stop working {ends}")
