"""Two invented weeks of a household with a small shop, for the pictures in the README.

Everything goes through the service's own doors, on a clock that the caller moves.
"""

import json
import math
import random
from datetime import UTC, datetime, timedelta

from core import alerts, presets
from models import Account
from tests.support.accounts import OWNER, PASSWORD, account_set
from tests.support.heartbeats import Pinged
from tests.support.rules import Ruled, send
from tests.support.service import Hook

NOW = datetime(2026, 11, 21, 17, 42, tzinfo=UTC)  # 18:42 in the account's time zone
ZONE = "Europe/Berlin"
DAYS, HOUR_MS = 14, 3_600_000
DEVICES = ("Pixel 9", "Firefox on Linux")

SHOP, SITE = "https://github.com/ana/shop", "https://shop.example.org"
REPOSITORY = {"full_name": "ana/shop"}


def run_of_ci(conclusion, number):
    run = {"name": "CI", "conclusion": conclusion, "html_url": f"{SHOP}/actions/runs/{number}"}
    return {"action": "completed", "workflow_run": run, "repository": REPOSITORY, "sender": {"login": "ana"}}


def issue(title, number):
    opened = {"title": title, "html_url": f"{SHOP}/issues/{number}"}
    return {"action": "opened", "issue": opened, "repository": REPOSITORY, "sender": {"login": "ben"}}


def monitor(is_up, said):
    message = f"[Shop] [{'Up' if is_up else 'Down'}] {said}"
    return {"heartbeat": {"status": int(is_up)}, "monitor": {"name": "Shop", "url": SITE}, "msg": message}


def home(title, message):
    return {"title": title, "message": message}


def sent(title, body, **more):
    return {"title": title, "body": body, **more}


def backup(gigabytes, seconds):
    minutes, rest = divmod(seconds, 60)
    return {"title": "Backup finished", "body": f"nas: {gigabytes} GB in {minutes} min {rest} s, 31 snapshots kept"}


# What happened on the last day, and on any other: when, who tells, what.
TODAY = (
    ("03:12", "nas", backup(84, 742)),
    ("07:55", "home", home("Freezer", "Door closed again after 4 minutes.")),
    ("09:31", "github", run_of_ci("success", 1841)),
    ("10:02", "deploy", sent(
        "Deploy shop 2.14?", "12 commits, all checks passed. Migration 0031 takes about 20 s.",
        priority="high", url=f"{SHOP}/compare/v2.13...v2.14",
        actions=[{"label": "Deploy", "answer": "yes"}, {"label": "Later", "answer": "no"}],
    )),
    ("10:09", "deploy", sent("shop 2.14 is live", "Deployed in 3 min 8 s. Error rate 0.02 %.", tag="shop")),
    ("12:47", "uptime", monitor(False, "timeout of 48000ms exceeded")),
    ("12:51", "uptime", monitor(True, "200 - OK")),
    ("14:20", "github", issue("Invoice shows the wrong VAT for Switzerland", 412)),
    ("16:05", "claude", sent("Tests finished", "1,204 passed, 2 skipped in 96 s. The flaky upload test is fixed.")),
    ("17:58", "home", home("Washing machine", "Done. 1.1 kWh, 2 h 14 min.")),
    ("18:33", "nas", sent("Disk almost full", "/srv is at 94 %: 212 GB free of 3.6 TB", priority="high", tag="disk")),
)  # fmt: skip
USUAL = (
    ("06:40", "home", home("Good morning", "3 °C, rain from 9 o'clock. First appointment: 10:30.")),
    ("09:12", "github", run_of_ci("success", 1800)),
    ("11:26", "github", issue("Search finds no umlauts", 398)),
    ("11:48", "github", run_of_ci("failure", 1809)),
    ("13:05", "deploy", sent("shop 2.13.2 is live", "Deployed in 2 min 51 s.", tag="shop")),
    ("15:37", "claude", sent("Review ready", "Pull request 405: three comments, nothing that blocks.")),
    ("17:22", "home", home("Front door", "Unlocked by Ben.")),
    ("19:03", "home", home("Washing machine", "Done. 0.9 kWh, 1 h 58 min.")),
    ("20:15", "nas", sent("Updates installed", "nas: 14 packages, no restart needed")),
)
KEYS = {"nas": "nas", "deploy": "Deploy script", "claude": "Claude Code"}


class Household:
    """An account with its keys, alerts, heartbeats and rules, and a way to let time pass."""

    def __init__(self, service, clock, push_service):
        self.service, self.clock = service, clock
        clock.set_wall(round((NOW - timedelta(days=DAYS)).timestamp() * 1000))
        made = service.flask("account", "create", OWNER, "--plan", "scale", "--password-stdin", stdin=PASSWORD)
        assert made.exit_code == 0, made.output
        account_set("--timezone", ZONE, "--quiet-hours", "23:00-06:30")
        self.callers = {who: service.caller(name=name) for who, name in KEYS.items()}
        self.alerts = {
            "github": self._alert("ana/shop", "github", "git-branch", "#24292F"),
            "uptime": self._alert("Shop", "uptime-kuma", "heart-pulse", "#3D9A50"),
            "home": self._alert("Home", "home-assistant", "house", "#18BCF2"),
        }
        self.browsers = [self._device(name, push_service.browser()) for name in DEVICES]
        caller = self.callers["nas"]
        self.beats = [Pinged(service, caller, "--cron", "0 3 * * *", "--grace", "1h", name="Nightly backup"),
                      Pinged(service, caller, "--period", "1d", "--grace", "3h", name="Photo sync")]  # fmt: skip
        self.rule = Ruled(service, caller, "< 50", project="nas", metric="free_gb", name="Free space")

    def live(self):
        """Two weeks, until NOW."""
        chance = random.Random(14)  # the same weeks each time
        for ago in range(DAYS - 1, 0, -1):
            picked = chance.sample(range(len(USUAL)), chance.randint(3, 8))
            events = [("03:11", "nas", backup(chance.randint(79, 84), chance.randint(650, 800)))]
            self._day(ago, events + [USUAL[number] for number in sorted(picked)])
        self._day(0, TODAY)
        self.clock.advance(NOW.timestamp() - self.clock.ms / 1000)
        self._measure(chance)

    def _go(self, days_ago, local):
        hours, minutes = map(int, local.split(":"))
        at = NOW.replace(hour=0, minute=0) - timedelta(days=days_ago) + timedelta(hours=hours - 1, minutes=minutes)
        self.clock.advance(at.timestamp() - self.clock.ms / 1000)

    def _day(self, ago, events):
        for local, who, what in events:
            self._go(ago, local)
            if who == "nas" and "Backup" in what["title"]:
                for beat in self.beats:
                    beat.ping()
            if who in self.alerts:
                answer = self.alerts[who].post(what)
            else:
                answer = self.callers[who].post("/notifications/send", what)
            assert answer.status_code == 200, answer.text
            self.service.work()

    def _alert(self, name, preset, icon, color):
        settings = {"name": name, **presets.of(preset).settings, "icon": icon, "color": color}
        made = alerts.create_alert(Account.find(OWNER).seq, settings, self.clock.ms)
        return Hook(self.service, OWNER, f"/p/{made.short_code}")

    def _device(self, name, browser):
        subscription = json.dumps(browser.subscription)
        added = self.service.flask("device", "add", OWNER, "webpush", subscription, "--name", name)
        assert added.exit_code == 0, added.output
        return browser

    def _measure(self, chance):
        """Values of two metrics, a batch for each day."""
        begin, caller = round((NOW - timedelta(days=DAYS)).timestamp() * 1000), self.callers["nas"]
        for day in range(DAYS):
            times = [begin + (day * 24 + step + 1) * HOUR_MS for step in range(24)]
            course = [20.5 + 1.6 * math.sin((step + 9) / 24 * 2 * math.pi) for step in range(24)]
            noise = [chance.uniform(-0.2, 0.2) for _ in times]
            warm = [(round(sum(both), 1), at) for *both, at in zip(course, noise, times, strict=True)]
            free = [(round(640 - 30 * (day + step / 24) - chance.uniform(0, 9)), at) for step, at in enumerate(times)]
            send(caller, *warm, project="home", metric="living_room", name="Living room", unit="°C")
            send(caller, *free, project="nas", metric="free_gb", name="Free space", unit="GB")
