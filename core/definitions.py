"""What programs define by name: alerts, heartbeats, rules, and an account's settings, in the fields of the REST API.

The REST API and `pocketbell apply` share it. Refusals name fields as these spell them. Must not know requests.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from core import accounts, alerts, heartbeats, local_time, metric_rules, presets, week_windows
from core.local_time import COLLECTED_MS
from core.week_windows import OFF
from models import Account, Alert
from store import followers
from store import heartbeats as stored_heartbeats
from store import metric_rules as stored_rules
from store.database import transaction
from store.heartbeats import Beat
from store.metric_rules import Rule
from wire.errors import Refused
from wire.notification import checked_priority
from wire.validation import (
    checked_choice,
    checked_flag,
    checked_name,
    checked_seconds,
    checked_string,
    not_among,
    only_known,
)

Fields = dict[str, Any]
Known = tuple[str, ...]  # what a definition is known by: its kind, and the values of some fields
Check = Callable[[Any, str], Any]  # of a value and its field: returns what is saved


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of definition. `make` and `change` take fields that `checked` returned."""

    name: str
    checks: Mapping[str, Check]  # of each field that can be set
    optional: tuple[str, ...]  # null in these, or an empty text, means none; null in others counts as absent
    known_by: tuple[str, ...]  # required; what has the same values in them is the same one, written again
    spelled: Mapping[str, str]  # names in refusals of the rules below, to fields
    of_account: Callable[[int], list[Any]]  # newest first
    named: Callable[[int, str], list[Any]]  # at least those with the name of `known_by`
    find: Callable[[int, str], Any]  # `Refused` (404) if there is none with that id
    fields_of: Callable[[Any], Fields]  # as they are set, all of `checks` that it has
    make: Callable[[Account, Fields, int], Any]
    change: Callable[[int, str, Fields, int], Any]
    remove: Callable[[int], object]  # the row with that seq

    def checked(self, sent: Fields) -> Fields:
        """The fields of a request or file as they are saved; `Refused` (400) names the first wrong one."""
        return _checked(self.checks, sent, self.optional)

    def known(self, fields: Fields) -> Known:
        """The kind's name, and the values of the fields `known_by`; `Refused` (400) if one is missing."""
        missing = next((field for field in self.known_by if field not in fields), None)
        if missing:
            raise Refused(400, f"{missing} is required.", field=missing)
        return self.name, *(fields[field] for field in self.known_by)

    def create(self, account: Account, fields: Fields, now: int) -> Any:
        """Create one, and return it; `Refused` (400) if a required field is missing."""
        self.known(fields)
        with _spelled(self.spelled):
            return self.make(account, fields, now)

    def update(self, account_seq: int, id_: str, fields: Fields, now: int) -> Any:
        """Change these fields of one, and return it."""
        with _spelled(self.spelled):
            return self.change(account_seq, id_, fields, now)

    def delete(self, account_seq: int, id_: str) -> Any:
        """Delete one with its followers and return it; its notifications stay, and held ones go out as usual."""
        with transaction(account_seq):
            one = self.find(account_seq, id_)
            self.remove(one.seq)
            followers.forget(account_seq, (self.name, one.seq))
        return one

    def put(self, account: Account, fields: Fields, now: int) -> tuple[Any, bool]:
        """Change the one with the same `known_by`, or create it, and return it and whether it was created.

        `Refused` (409) if there are several.
        """
        with transaction(account.seq):
            known = self.known(fields)
            alike = self.named(account.seq, known[1])
            old = self.only([one for one in alike if self.known(self.fields_of(one)) == known])
            if old is not None:
                return self.update(account.seq, old.id, fields, now), False
            return self.create(account, fields, now), True

    def only(self, found: list[Any]) -> Any:
        """The one of those found with the same `known_by`, None if there is none; `Refused` (409) if several."""
        if len(found) > 1:
            sentence = f"{len(found)} {self.name}s have this {' and '.join(self.known_by)}. Delete or change one."
            raise Refused(409, sentence, field=self.known_by[0])
        return found[0] if found else None


def _checked(checks: Mapping[str, Check], sent: Fields, optional: Collection[str] = ()) -> Fields:
    known = only_known(sent, *checks).items()
    given = {field: value for field, value in known if value is not None or field in optional}
    return {field: checks[field]("" if value is None else value, field) for field, value in given.items()}


@contextmanager
def _spelled(fields: Mapping[str, str]) -> Iterator[None]:
    """Let refusals name their field as it is spelled here."""
    try:
        yield
    except Refused as refused:
        field = fields.get(refused.field)
        if field and not refused.message.startswith(field):
            raise Refused(refused.status, f"{field}: {refused.message}", field=field) from None
        refused.field = field or refused.field
        raise


# --- checks of a field ---


def _name(value: Any, field: str) -> str:
    return checked_name(checked_string(value, field), field)


def _preset(value: Any, field: str) -> str:
    text = checked_string(value, field)
    if text and text not in presets.BY_ID:
        names = ", ".join(sorted(presets.BY_ID))
        raise Refused(400, f"{field}: there is no {not_among(text, presets.BY_ID)} There are {names}.", field=field)
    return text


def _condition(value: Any, field: str) -> str:
    with _spelled({"rule": field, "duration": field}):
        return metric_rules.as_written(checked_string(value, field))


# --- alerts ---

OF_TEMPLATES = {
    "title": "title_template",
    "body": "body_template",
    "priority": "priority_template",
    "link": "url_template",
    "tag": "tag_template",
    "image": "image_template",
    "resolvedWhen": "resolved_when",
}
OF_ALERT: dict[str, tuple[str, Check]] = {  # field to column and check
    "name": ("name", _name),
    "icon": ("icon", checked_string),
    "color": ("color", checked_string),
    "isActive": ("is_active", checked_flag),
    **{field: (column, checked_string) for field, column in OF_TEMPLATES.items()},
    "frequency": ("frequency", partial(checked_choice, of=COLLECTED_MS)),
    "repeatUrgent": ("repeats_urgent", checked_flag),
    "muteButton": ("has_mute_button", checked_flag),
    "preset": ("preset", _preset),
}


def preset_settings(preset_id: str, alert: Alert) -> dict[str, str]:
    """The columns with which an alert uses a preset; it keeps an icon and a color that its owner chose."""
    used = presets.of(alert.preset)
    is_own_look = (alert.icon, alert.color) != (used.icon, used.color)
    look = {"icon": alert.icon, "color": alert.color} if is_own_look else {}
    return presets.BY_ID[preset_id].settings | look


def _alert_columns(fields: Fields) -> dict[str, Any]:
    columns = {OF_ALERT[field][0]: value for field, value in fields.items() if field in OF_ALERT}
    columns |= alerts.QUIET_HOURS[fields["quietHours"]] if "quietHours" in fields else {}
    return columns | ({"preset": fields["preset"] or None} if "preset" in fields else {})


def _make_alert(account: Account, fields: Fields, now: int) -> Alert:
    preset = presets.BY_ID[fields["preset"]].settings if fields.get("preset") else {}
    return alerts.create_alert(account.seq, preset | _alert_columns(fields), now)


def _change_alert(account_seq: int, id_: str, fields: Fields, now: int) -> Alert:
    with transaction(account_seq):
        preset = fields.get("preset")
        values = preset_settings(preset, alerts.find_alert(account_seq, id_)) if preset else {}
        return alerts.change_alert(account_seq, id_, values | _alert_columns(fields), now)


def _alert_fields(alert: Alert) -> Fields:
    fields = {field: getattr(alert, column) for field, (column, _) in OF_ALERT.items()}
    flags = {field: bool(fields[field]) for field in ("isActive", "repeatUrgent", "muteButton")}
    return fields | flags | {"quietHours": alerts.quiet_hours_word(alert)}


ALERT = Kind(
    "alert",
    {
        **{field: check for field, (_, check) in OF_ALERT.items()},
        "quietHours": partial(checked_choice, of=alerts.QUIET_HOURS),
    },
    optional=(*OF_TEMPLATES, "preset"),
    known_by=("name",),
    spelled={column: field for field, (column, _) in OF_ALERT.items()},
    of_account=Alert.of_account,
    named=Alert.named,  # there may be a thousand others
    find=alerts.find_alert,
    fields_of=_alert_fields,
    make=_make_alert,
    change=_change_alert,
    remove=Alert.remove,
)


# --- heartbeats ---


def _heartbeat_settings(fields: Fields) -> dict[str, Any]:
    """The settings as `core/heartbeats.py` takes them: its durations are texts."""
    texts = {"period": "periodS", "grace": "graceS"}
    durations = {setting: f"{fields[field]}s" for setting, field in texts.items() if field in fields}
    return {field: fields[field] for field in ("name", "cron", "priority") if field in fields} | durations


def _heartbeat_fields(beat: Beat) -> Fields:
    schedule = {"periodS": beat.period_s} if beat.cron is None else {"cron": beat.cron}
    return {"name": beat.name, **schedule, "graceS": beat.grace_s, "priority": beat.priority}


HEARTBEAT = Kind(
    "heartbeat",
    {
        "name": _name,
        "periodS": partial(checked_seconds, least=heartbeats.MIN_S, most=heartbeats.MAX_PERIOD_S),
        "cron": checked_string,
        "graceS": partial(checked_seconds, least=heartbeats.MIN_S, most=heartbeats.MAX_GRACE_S),
        "priority": checked_priority,
    },
    optional=(),
    known_by=("name",),
    spelled={"period": "periodS", "cron": "cron"},
    of_account=stored_heartbeats.of_account,
    named=lambda account_seq, _: stored_heartbeats.of_account(account_seq),
    find=heartbeats.find_heartbeat,
    fields_of=_heartbeat_fields,
    make=lambda account, fields, now: heartbeats.create_heartbeat(account, _heartbeat_settings(fields), now),
    change=lambda account_seq, id_, fields, now: heartbeats.change_heartbeat(
        account_seq, id_, _heartbeat_settings(fields), now
    ),
    remove=stored_heartbeats.remove,
)


# --- rules ---


def _make_rule(account: Account, fields: Fields, now: int) -> Rule:
    lasting = _lasting(fields)
    return metric_rules.create_rule(account, fields["project"], fields["metric"], fields["when"], lasting, now)


def _change_rule(account_seq: int, id_: str, fields: Fields, now: int) -> Rule:
    """A rule that becomes a silent one forgets for how long it had to hold."""
    with transaction(account_seq):
        saved = _rule_fields(metric_rules.find_rule(account_seq, id_))
        becomes_silent = fields.get("when", "").startswith(metric_rules.SILENT)
        wanted = {**saved, **({"forS": 0} if becomes_silent else {}), **fields}
        ids = (wanted["project"], wanted["metric"])
        return metric_rules.change_rule(account_seq, id_, wanted["when"], _lasting(wanted), now, ids)


def _lasting(fields: Fields) -> str | None:
    return f"{fields['forS']}s" if fields.get("forS") else None


def _rule_fields(rule: Rule) -> Fields:
    return {
        "project": rule.project_id,
        "metric": rule.metric_id,
        "when": metric_rules.condition_text(rule),
        "forS": 0 if rule.operator == metric_rules.SILENT else rule.for_s,
    }


RULE = Kind(
    "rule",
    {
        "project": _name,
        "metric": _name,
        "when": _condition,
        "forS": partial(checked_seconds, least=0, most=metric_rules.MAX_FOR_S),
    },
    optional=(),
    known_by=("project", "metric", "when"),
    spelled={"rule": "when", "duration": "forS"},
    of_account=stored_rules.of_account,
    named=lambda account_seq, _: stored_rules.of_account(account_seq),
    find=metric_rules.find_rule,
    fields_of=_rule_fields,
    make=_make_rule,
    change=_change_rule,
    remove=stored_rules.remove,
)

KINDS = (ALERT, HEARTBEAT, RULE)


# --- the account ---


def _zone(value: Any, field: str) -> str:
    with _spelled({"time_zone": field}):
        return local_time.checked_zone(checked_string(value, field))


ACCOUNT_CHECKS = {"timeZone": _zone, "quietHours": week_windows.checked_setting}


def account_fields(account: Account) -> Fields:
    """The settings of an account that programs may change."""
    return {"timeZone": account.time_zone, "quietHours": account.quiet_hours or OFF}


def checked_account(sent: Fields) -> Fields:
    """The settings of a request or file, as `Kind.checked` returns fields."""
    return _checked(ACCOUNT_CHECKS, sent)


def account_change(account: Account, fields: Fields, now: int) -> Callable[[], Account]:
    """What makes the change to these checked settings, and returns the account; it may be called in a transaction.

    A new time zone is prepared before, outside a transaction: that takes a while.
    """
    wanted = dict(fields.items() - account_fields(account).items())
    hours, zone = wanted.get("quietHours"), wanted.get("timeZone")
    change = accounts.zone_change(account, zone, now) if zone else None

    def make() -> Account:
        with transaction(account.seq):
            if hours:
                accounts.set_quiet_hours(account, None if hours == OFF else hours)
            if change:
                change()
            return Account.with_seq(account.seq) or account

    return make
