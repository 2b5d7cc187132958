"""A site with everything on it, for tests that look at every page."""

import json
from urllib.parse import urlencode

from core import alerts, firing, local_time, pictures
from models import Account, sha256_of
from process import clock
from process.clock import DAY_MS
from store import alert_events, mutes
from store.custom_metrics import MetricValue
from store.database import EVERYBODY, run, transaction
from store.rows import new_id
from tests.support.picture_files import png
from tests.support.times import MINUTE_MS

ROWS = 1_000
DEVICES = 20
KEYS, REVOKED_KEYS, ALERTS, SESSIONS, SERIES = 40, 15, 40, 12, 60


PICTURED = range(ROWS - 9, ROWS)  # numbers of notifications of all kinds
PICTURE = png()

SENDERS = {"alert": "alert", "key": "api_key", "heartbeat": "heartbeat"}  # the table of each that is muted
OFFLINE = "/app/static/offline.html"
LONG_NAME = "W" * 100
LONG_EMAIL = f"{'long' * 58}@name.localhost"
CHANNELS = (
    {"kind": "webhook", "after_s": 0, "preset": "slack"},
    {"kind": "email", "after_s": 300, "token": LONG_EMAIL},
    {"kind": "email", "after_s": 90, "confirm_by": 9**15},
)
TEXTS = [
    "Backup finished",
    "W" * 200,
    "אזהרה: הדיסק של web-1 מלא ב־98 %",
    "تنبيه: القرص ممتلئ بنسبة 98 ٪ (web-1)",
    "🔥🚨 👩‍👩‍👧‍👦 🏳️‍🌈 CPU 94 %",
    "<script>alert(1)</script> & “quotes” {{ host }}",
    "備份完成。磁碟空間不足。",
    "first line\nsecond line\n\n\tfifth " + "and so on " * 60,
]

BUTTONS = json.dumps(
    [
        {"label": "W" * 40, "answer": "y"},
        {"label": "אזהרה <b>🔥</b>", "answer": "n"},
        {"label": "Log", "url": "https://example.org/" + "w" * 1_980},
    ]
)


def large_payload():
    """300 paths: long ones, right-to-left, emoji, markup."""
    odd = [*TEXTS, "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "key with a dot. and more"]
    payload = {text[:150]: text for text in odd}
    payload |= {f"{number:03}{'k' * 190}": "W" * 100 for number in range(40)}
    payload["labels"] = {f"label-{number}": {"value": "אזהרה " * 3, "at": number} for number in range(150)}
    return payload


class Full:
    """An account with everything an account can have, in its most awkward form."""

    def __init__(self, site, push_service):
        self.site = site
        self.cookie = site.cookie(LONG_EMAIL)
        self.now = clock.now_ms()
        self.account = Account.find(LONG_EMAIL).seq
        with transaction(EVERYBODY, self.account):
            self._set_account()
            self._add_keys()
            self._add_alerts()
            self._add_devices(push_service)
            self._add_sessions()
            self._add_people()
            self._add_notifications()
            self._add_metrics()
            self._add_payloads()
            self._add_heartbeats()
            self._add_rules()
            self._add_mutes()

    def _insert(self, table, rows):
        names = list(rows[0])
        values = [[row[name] for name in names] for row in rows]
        insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        for one in values:
            run(insert, one)

    def _set_account(self):
        zone, hour = "America/Argentina/ComodRivadavia", 60 * MINUTE_MS
        begin, end = (local_time.local_time(self.now + shift, zone)[-5:] for shift in (-hour, hour))
        run("UPDATE account SET plan = 'scale', time_zone = ?, quiet_hours = ?", (zone, f"{begin}-{end}"))

    def _add_keys(self):
        self._insert(
            "api_key",
            [
                {
                    "id": new_id(self.now),
                    "account_seq": self.account,
                    "name": (LONG_NAME, "x y " * 25, TEXTS[2], TEXTS[4], "ci")[number % 5],
                    "preview": f"sk_test_{number:08x}",
                    "key_hash": number.to_bytes(32, "big"),
                    "created_at": self.now - number * DAY_MS,
                    "last_used_at": self.now - number * 50 * MINUTE_MS if number % 3 else None,
                    "revoked_at": self.now if number > KEYS else None,
                }
                for number in range(1, KEYS + REVOKED_KEYS + 1)
            ],
        )

    def _add_alerts(self):
        self.alerts = [new_id(self.now) for _ in range(ALERTS)]  # the id of the alert with the number 1, 2, …
        self._insert(
            "alert",
            [
                {
                    "id": self.alerts[number - 1],
                    "account_seq": self.account,
                    "short_code": f"{number:07}",
                    "name": (LONG_NAME, TEXTS[3], "CPU", TEXTS[5][:100], TEXTS[4])[number % 5],
                    "icon": ("bell", "no-such-icon", "server")[number % 3],
                    "color": ("#FFFFFF", "#000000", "#3B82F6", "#FFE48A")[number % 4],
                    "frequency": "instant",
                    "ignores_quiet_hours": 0,
                    "is_active": int(number % 4 > 0 and number % 7 > 0),
                    "notification_count": (0, 7, 1_234_567)[number % 3],
                    "last_triggered_at": (None, self.now, self.now - 40 * DAY_MS)[number % 3],
                    "created_at": self.now - 40 * DAY_MS,
                    "switched_on_at": 0,
                    "paused_at": None if number % 4 else self.now - number * 90 * MINUTE_MS,
                }
                for number in range(1, ALERTS + 1)
            ],
        )

    def _add_payloads(self):
        """The last payloads of the alerts whose pages are looked at."""
        self.alert_ids = {"fresh": self.alerts[1], "large": self.alerts[2], "recent": self.alerts[4]}
        self.alert_ids.update(proposed=self.alerts[5], oversized=self.alerts[6])
        grafana = {"alerts": [], "orgId": 1, "title": TEXTS[2], "message": TEXTS[5], "commonAnnotations": {}}
        payloads = {"large": large_payload(), "recent": {"title": "W" * 10_000}, "proposed": grafana}
        for name, payload in payloads.items():
            self._put(name, json.dumps(payload, ensure_ascii=False))
        self._put("oversized", None)
        template = "{{ title | upcase }} {{ W.W }} {{ not.there }} {{ " + "k" * 190 + " }}"
        values = {"title_template": template, "body_template": "\n".join(TEXTS)}
        alerts.change_alert(self.account, self.alert_ids["large"], values, self.now)
        run("UPDATE alert SET preset = 'github' WHERE id = ?", (self.alert_ids["fresh"],))
        seq = 1 + self.alerts.index(self.alert_ids["recent"])
        statuses = [(200, 400, 429, 413)[number % 4] for number in range(30)]
        words = [f"{number} " + ("delivered", "W" * 200, TEXTS[2], "…")[number % 4] for number in range(30)]
        seen = [
            [self.now, status, said, 2_000 if status == 429 else 1, new_id(self.now) if status == 200 else None]
            for status, said in zip(statuses, words, strict=True)
        ]
        with transaction(EVERYBODY):
            alert_events.put_requests(json.dumps(seen), seq)

    def _add_heartbeats(self):
        """One in each state, with long and hostile texts, and the pings that are kept of the first."""
        states = ("down", "late", "up", "new", "paused", "up")
        self.beats = [new_id(self.now) for _ in states]
        rows = [
            {
                "id": self.beats[number],
                "ping_id": f"00000000-0000-4000-8000-{number:012}",
                "account_seq": self.account,
                "name": TEXTS[number][:100] if number else LONG_NAME,
                "period_s": None if number % 2 else 31_536_000 + 3_661,
                "cron": ",".join(map(str, range(36))) + " * * * *" if number % 2 else None,
                "grace_s": 2_678_400,
                "priority": 1 + number % 5,
                "state": state,
                "last_ping_at": None if state == "new" else self.now - number * DAY_MS,
                "deadline_at": self.now + DAY_MS if state in ("up", "late") else None,
                "down_since": self.now - DAY_MS if state == "down" else None,
                "created_at": self.now,
            }
            for number, state in enumerate(states)
        ]
        self._insert("heartbeat", rows)
        pings = [
            {
                "heartbeat_seq": 1,
                "kind": ("success", "fail", "start")[number % 3],
                "exit_code": (0, 255, None)[number % 3],
                "body": ("", "W" * 10_000, "\n".join(TEXTS))[number % 3] if number < 6 else "",
                "received_at": self.now - (30 - number) * MINUTE_MS,
            }
            for number in range(30)
        ]
        self._insert("ping", pings)

    def _add_rules(self):
        """On a metric with values, on one with extreme values, on one without any; one fires on and on."""
        series = (self.first_series, self.first_series, self.first_series, self.extreme_series, ("W" * 100, TEXTS[2]))
        self.unknown_series = series[-1]
        rows = [
            {
                "id": new_id(self.now),
                "account_seq": self.account,
                "project_id": project,
                "metric_id": metric,
                "operator": (">", "silent", "!=", "<", ">=")[number],
                "threshold": None if number == 1 else (21.5, 0, -1e-300, 1.7976931348623157e308, 5e-324)[number],
                "for_s": 2_678_399 if number < 3 else 0,
                "state": "ok" if number == 2 else "firing",
                "changed_at": self.now - number * DAY_MS,
                "holds_since": None,
                "fires_at": None,
                "look_at": None,
                "created_at": self.now,
            }
            for number, (project, metric) in enumerate(series)
        ]
        self.rules = [row["id"] for row in rows]
        self._insert("metric_rule", rows)
        times = [(self.now - n * 300 * MINUTE_MS, self.now - (n * 300 - n % 200) * MINUTE_MS) for n in range(1, 130)]
        firings = [{"rule_seq": 1, "began_at": began, "ended_at": ended} for began, ended in reversed(times)]
        firings += [{"rule_seq": seq, "began_at": self.now - MINUTE_MS, "ended_at": None} for seq in (1, 2, 4, 5)]
        self._insert("firing", firings)

    def _add_mutes(self):
        """Of everything, for a while and again and again; and of one of each kind of sender."""
        ends, again = {"until": self.now + DAY_MS}, {"cron": "*/59 1,3,5-23/7 1-7 */2 sun", "for_s": 60}
        for what, times in (("all", ends), ("all", again), ("alert", ends), ("key", ends), ("heartbeat", again)):
            subject_seq = what != "all" and run(f"SELECT min(seq) FROM {SENDERS[what]}").fetchone()[0]
            values = {"what": what, "subject_seq": int(subject_seq), "mode": "history", "urgent_passes": 0}
            mutes.add(self.account, values | times, self.now)

    def _put(self, name, payload):
        values = {"alert_seq": 1 + self.alerts.index(self.alert_ids[name]), "payload": payload}
        self._insert("alert_payload", [{**values, "received_at": self.now}])

    def _add_metrics(self):
        """60 series with what a name, a unit and a value can be; the values of the last are older than each range."""
        names, units = (LONG_NAME * 2, TEXTS[2], TEXTS[4], "CPU", TEXTS[5]), ("W" * 32, "°C", None, "٪", "<b>%</b>")
        numbers = (1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 0.1, 123_456_789_012_345.0, -0.0, 21.5)
        ids = []
        for series in range(SERIES):
            project, metric, values = ("W" * 100, "home", TEXTS[3])[series % 3], f"{series}/<&?#{'i' * 80}", []
            for step in range(60):
                age = step * (10 + step) * 60 * MINUTE_MS // 4 if series < SERIES - 1 else (40 + step) * DAY_MS
                value = numbers[(series + step) % 7] if series % 2 else 20 + step / 7
                unit = units[series % 5 if series % 4 else 0]
                values.append(MetricValue(metric, names[series % 5], value, unit, self.now - age, None))
            firing.store_values(self.account, project, values)
            ids.append((project, metric))
        self.first_series, self.extreme_series, self.last_series = ids[0], ids[1], ids[-1]

    def _add_devices(self, push_service):
        words = "X" * 60
        errors = (f"The push service answered 403 ({words}).", "Notifications will not reach Apple devices.", None)
        self._insert(
            "device",
            [
                {
                    "id": new_id(self.now),
                    "account_seq": self.account,
                    "kind": ("webpush", "apns", "fcm")[number % 3],
                    "token": f"https://push.example.com/{number}",
                    **{name: push_service.browser().subscription["keys"][name] for name in ("p256dh", "auth")},
                    **dict.fromkeys(("after_s", "preset", "confirm_by")),
                    **(CHANNELS[number % 3] if number > DEVICES - 3 else {}),
                    "origin": self.site.base,
                    "name": (LONG_NAME, TEXTS[2], TEXTS[4], "Chrome on Linux")[number % 4],
                    "api_key_seq": number if number % 2 else None,
                    "created_at": self.now - 50 * DAY_MS,
                    "last_delivered_at": (None, self.now, self.now - 40 * DAY_MS)[number % 3],
                    "last_error": errors[number % 3],
                    "last_error_at": self.now,
                    "min_priority": 1 + number % 5,
                }
                for number in range(1, DEVICES + 1)
            ],
        )

    def _add_sessions(self):
        self._insert(
            "session",
            [
                {
                    "token_hash": number.to_bytes(32, "big"),
                    "account_seq": self.account,
                    "created_at": self.now - number * DAY_MS,
                    "expires_at": self.now + DAY_MS,
                    "name": ("", "Chrome on Linux", "Safari on iPhone")[number % 3],
                    "last_seen_at": self.now - number * DAY_MS,
                }
                for number in range(SESSIONS)
            ],
        )

    def _add_people(self):
        rows = {"ordinary": {}, "disabled": {"disabled_at": 1}, "guest": {"invited_until": self.now + DAY_MS}}
        rows |= {"late": {"invited_until": 1}, "אזהרה": {"is_administrator": 1, "last_seen_at": self.now}}
        for name, more in rows.items():
            row = {"email": f"{name}{LONG_EMAIL[20:]}", "plan": "pro", "time_zone": "UTC", "created_at": self.now}
            self._insert("account", [row | more])
        self._add_followers()

    def _add_followers(self):
        """20 of an alert, invited or not; and what others share: an invitation and something that it follows."""
        other = run("SELECT max(seq) FROM account").fetchone()[0]
        row = {"account_seq": self.account, "what": "alert", "subject_seq": 2, "created_at": self.now}
        rows = [
            {**row, "id": new_id(self.now), "email": f"{number}{LONG_EMAIL[2:]}", "follower_seq": None}
            for number in range(20)
        ]
        self._insert("follower", rows)
        theirs = {"short_code": "theirs1", "icon": "bell", "color": "#000000", "frequency": "instant"}
        theirs |= dict.fromkeys(("ignores_quiet_hours", "is_active", "notification_count", "switched_on_at"), 0)
        for number, follower in enumerate((None, self.account)):
            alert = {"seq": 900 + number, "id": new_id(self.now), "account_seq": other, "name": LONG_NAME}
            code = {"short_code": f"theirs{number}", "created_at": self.now}
            self._insert("alert", [{**theirs, **alert, **code}])
            of_them = {"account_seq": other, "what": "alert", "subject_seq": 900 + number, "created_at": self.now}
            self._insert(
                "follower", [{**of_them, "id": new_id(self.now), "email": LONG_EMAIL, "follower_seq": follower}]
            )

    def _add_notifications(self):
        """The oldest first, as they came; of `kinds`, the last of each is kept in `self.ids`."""
        kinds = ("key", "alert", "deleted", "page", "pending", "failed", "no device", "held", "in a digest")
        self.ids, rows, held, deliveries, alarms = {}, [], [], [], []
        for seq in range(1, ROWS + 1):
            kind, text, at = (
                kinds[seq % len(kinds)],
                TEXTS[seq % len(TEXTS)],
                self.now - (ROWS - seq) * 40 * MINUTE_MS,
            )
            row = {
                "seq": seq,
                "id": new_id(at),
                "account_seq": self.account,
                "api_key_seq": 1 + seq % KEYS if kind in ("key", "no device") else None,
                "alert_seq": None if kind in ("key", "page", "no device") else 1 + seq % ALERTS,
                "title": f"MCP - {text}",
                "body": TEXTS[seq % 7],
                "status": "delivered",
                "created_at": at,
                "is_digest": 0,
                "missing": None,
                **dict.fromkeys(("priority", "url", "tag", "expires_at", "replaced_by", "acknowledge", "deliver_at")),
                "actions": None,
                "picture": json.dumps(["image/png", len(PICTURE), LONG_NAME]) if seq in PICTURED else None,
            }
            if kind == "key":
                row["priority"], row["url"], row["tag"] = 1 + seq % 5, "https://" + "w" * 1_990, "W" * 64
                row["expires_at"], row["replaced_by"] = at + DAY_MS, min(seq + len(kinds), ROWS)
            if kind == "alert":
                row["missing"] = json.dumps(["runbook", LONG_NAME, TEXTS[2], *(f"labels.{n}" for n in range(20))])
            if kind == "deleted":
                row["alert_seq"] = 999
            if kind in ("pending", "failed"):
                row["status"] = kind
                row["acknowledge"], row["deliver_at"], row["actions"] = "[60, 10800]", at, BUTTONS
                state = "waiting" if kind == "pending" else "acknowledged"
                alarms.append(self._alarm(seq, state))
            if kind in ("held", "in a digest"):
                row["status"] = "held"
                values = {"notification_seq": seq, "account_seq": self.account, "sender_seq": row["alert_seq"]}
                held.append({**values, "created_at": at, "digest_seq": ROWS + 1 if kind == "in a digest" else None})
            if kind in ("key", "alert", "pending", "failed"):
                deliveries += self._deliveries(seq, kind, DEVICES if seq > ROWS - len(kinds) else 2)
            self.ids[kind] = row["id"]
            rows.append(row)
        digest = {**rows[-1], "seq": ROWS + 1, "id": new_id(self.now), "title": "MCP - 111 notifications"}
        rows.append({**digest, "body": "\n".join(TEXTS), "is_digest": 1, "status": "pending", "missing": None})
        rows[-1].update(alert_seq=None, api_key_seq=None)
        long = next(row for row in rows if row["id"] == self.ids["page"])
        long.update(title="W" * 1_000, body="W" * 5_000 + " רשת" * 1_250)
        self.ids.update(digest=digest["id"], long=long["id"])
        self._insert("notification", rows)
        copied = {"notification_seq": rows[PICTURED[0]]["seq"], "original_seq": 5_000, "owner_seq": self.account + 1}
        self._insert("notification_copy", [{**copied, "what": "alert", "subject_seq": 900}])
        self._insert("picture", [self._picture(row) for row in rows if row["picture"]])
        self._insert("held", held)
        self._insert("alarm", alarms)
        self._insert("answer", [self._answer(one["notification_seq"]) for one in alarms if one["acknowledged_at"]])
        self._insert("delivery", deliveries + self._deliveries(ROWS + 1, "pending", DEVICES))
        days = local_time.last_days(30, "UTC", self.now)
        counts = [{"account_seq": self.account, "day": day, "notification_count": 36} for day in days]
        counts.append({"account_seq": self.account, "day": "", "notification_count": 1_234_567})
        self._insert("notification_day", counts)

    def _picture(self, row):
        token_hash, kind = (
            sha256_of(pictures.token_of(row["id"])),
            {"content_type": "image/png", "size": len(PICTURE)},
        )
        of = {"notification_seq": row["seq"], "account_seq": self.account, "expires_at": self.now + DAY_MS}
        return {**of, **kind, "token_hash": token_hash, "data": PICTURE}

    def _alarm(self, seq, state):
        return {
            "notification_seq": seq,
            "account_seq": self.account,
            "state": state,
            "ends_at": self.now + DAY_MS,
            "next_at": None,
            "repeats": 50,
            "acknowledged_at": self.now if state == "acknowledged" else None,
            "device_seq": 4 if state == "acknowledged" else None,
        }

    def _answer(self, seq):
        return {"notification_seq": seq, "position": 0, "answered_at": self.now, "device_seq": 4}

    def _deliveries(self, seq, kind, count):
        statuses = {"key": ("delivered", "pending", "failed"), "alert": ("delivered", "failed")}.get(kind, (kind,))
        error = "The push service answered 403 (" + "X" * 60 + ")."
        found = [(device, statuses[device % len(statuses)]) for device in range(1, count + 1)]
        return [
            {
                "notification_seq": seq,
                "device_seq": device,
                "status": status,
                "attempts": device % 3 if status == "pending" else 2,
                "next_attempt_at": self.now + 30 * MINUTE_MS if status == "pending" else None,
                "answered_at": None if status == "pending" and device % 3 == 0 else self.now,
                "error": None if status == "delivered" else error,
            }
            for device, status in found
        ]


PLAIN = {
    "home": "/app/", "history": "/app/notifications", "ring": "/app/ring", "alerts": "/app/alerts",
    "new alert": "/app/alerts/new", "watches": "/app/watches", "new heartbeat": "/app/watches/new",
    "metrics": "/app/metrics", "devices": "/app/devices", "phone, no https": "/app/devices/phone",
    "this device": "/app/devices/this", "keys": "/app/keys", "quiet": "/app/quiet", "people": "/app/people",
    "settings": "/app/settings",
}  # fmt: skip
SEARCHES = {
    "history with everything asked": "/app/notifications?search=W&status=delivered&since={day}&until={day}",
    "history of a term in right-to-left text": "/app/notifications?search=%D7%93%D7%99%D7%A1%D7%A7",
    "history without a match": f"/app/notifications?search={'nothing' * 28}",
    "history, older": "/app/notifications?before=500",
    "history, selecting": "/app/notifications?select=1",
}


def full_pages(full):
    """The addresses of a full site, by name."""
    day = local_time.local_day(full.now - 5 * DAY_MS, "UTC")
    searches = {name: path.format(day=day) for name, path in SEARCHES.items()}
    kinds = {f"notification: {kind}": f"/app/notifications/{id_}" for kind, id_ in full.ids.items()}
    of_alerts = {f"alert: {kind}": f"/app/alerts/{id_}?tab=message" for kind, id_ in full.alert_ids.items()}
    parts = ("connect", "activity", "settings")
    of_alerts |= {f"alert, {part}": f"/app/alerts/{full.alert_ids['recent']}?tab={part}" for part in parts}
    shared = {"followers": f"/app/followers/alert/{full.alerts[1]}"}
    watches = {f"watch: {kind}": f"/app/watches/{full.beats[n]}" for n, kind in enumerate(("down", "late"))}
    watches["watch, editing"] = f"{watches['watch: down']}?edit=1"
    return {**PLAIN, **searches, **kinds, **of_alerts, **shared, **watches, **metric_pages(full)}


def metric_pages(full):
    """The address of a metric's page in each range."""
    asked = {f"metric, {name}": (full.first_series, name) for name in ("24 h", "7 d", "30 d", "1 y")}
    asked |= {"metric, extreme": (full.extreme_series, "7 d"), "metric without values": (full.last_series, "30 d")}
    asked |= {"metrics, 30 d": (("", ""), "30 d"), "metric that is unknown": (full.unknown_series, "24 h")}
    pages = {
        name: f"/app/metrics{'/one' if series[0] else ''}?"
        + urlencode({"project": series[0], "metric": series[1], "range": chosen})
        for name, (series, chosen) in asked.items()
    }
    kinds = {
        kind: f"{pages['metric, 7 d']}&rule={id_}" for kind, id_ in zip(("value", "silent"), full.rules, strict=False)
    }
    return {**pages, **{f"metric, changing a {kind} rule": path for kind, path in kinds.items()}}
