"""Every form and every page of the web app."""

import json
import re

from app import ROUTES
from core import accounts, metric_rules, people, phone_links
from models import Account, sha256_of
from process import clock
from store.database import EVERYBODY, run, transaction
from store.sessions import PhoneLink, Session
from tests.support.accounts import OWNER, PASSWORD
from tests.support.alarms import ring
from tests.support.followers import invited
from tests.support.pages import Visitor

RESYNC = "/app/devices/resync"  # guarded by a device's token
NEW_RULE = "/app/metrics/one"  # the metric is in its query
OF_PEOPLE = {
    "/app/people": {"email": "another@example.org", "plan": "pro"},
    "/app/people/<account_id>/administrator": {"on": "1"},
    "/app/people/<account_id>/delete": {"email": "colleague@example.org"},
}
OF_ALERT_WITH_NAME = ("/app/alerts/new", "/app/alerts/<alert_id>/settings")
POST_RULES = [r.rule for r in ROUTES if r.method == "POST" and r.rule.startswith("/app/") and r.rule != RESYNC]
PAGES_OF_THE_OWNER = [
    *("/app/", "/app/notifications", "/app/alerts", "/app/alerts/new", "/app/watches", "/app/metrics"),
    *("/app/devices", "/app/devices/phone", "/app/devices/this", "/app/keys", "/app/ring", "/app/quiet"),
    *("/app/people", "/app/settings"),
]
ALWAYS = OF_PEOPLE | {  # whatever there is
    "/app/devices/new": {"kind": "webhook", "url": "https://hooks.example.com/y", "when": "60"},
    "/app/mutes": {"what": "all", "duration": "2h"},
    "/app/followers/<what>/<subject_id>": {"email": "x@example.org"},
}


class Forms:
    """Every form of the web app with valid content, and whoever may send it."""

    def __init__(self, service, owner, push_service):
        self.service, self.owner = service, owner
        caller, now = service.caller(), clock.now_ms()
        rings = ring(caller, actions=[{"label": "Yes", "answer": "y"}])
        owner.enable(push_service.browser())
        caller.post("/devices", {"kind": "fcm", "token": "t"})
        accounts.set_quiet_hours(Account.find(OWNER), "09:00-11:00")
        hook = service.alert()
        of_grafana = {"alerts": [], "groupKey": "1", "orgId": 1, "title": "held"}
        assert hook.post(of_grafana).json["status"] == "held"
        invited_account = Account.find(service.account("invited@example.org"))
        link = accounts.make_link(invited_account, now).removeprefix("/app/setup/")
        self.ids = {"<token>": link, "<alert_id>": hook.id, "<notification_id>": rings}
        (self.ids["<key_id>"],) = run("SELECT id FROM api_key ORDER BY seq DESC").fetchone()
        (self.ids["<device_id>"],) = run("SELECT id FROM device ORDER BY seq").fetchone()
        service.account("colleague@example.org")
        self.ids["<account_id>"] = str(Account.find("colleague@example.org").seq)
        self.invited_id = str(people.invite("guest@example.org", "starter", False, now)[0].seq)
        webhook = {"kind": "webhook", "url": "https://hooks.example.com/x"}
        self.channel_id = caller.post("/devices", webhook).json["device"]["id"]
        self.ids["<channel_id>"] = self.channel_id
        with transaction(EVERYBODY):
            run("UPDATE device SET confirm_by = ? WHERE id = ?", (now + 10**6, self.channel_id))
        beat = caller.post("/heartbeats", {"name": "Backup", "periodS": 3600}).json["heartbeat"]
        self.ids["<heartbeat_id>"] = beat["id"]
        rule = metric_rules.create_rule(Account.find(OWNER), "home", "m", "silent 1h", None, now)
        self.ids["<rule_id>"] = rule.id
        muted = {"what": "alert", "id": hook.id, "forS": 3600}
        self.ids["<mute_id>"] = caller.post("/mutes", muted).json["mute"]["id"]
        self.ids |= {"<what>": "alert", "<subject_id>": hook.id}
        self.ids["<follower_id>"] = invited(caller, "alert", hook.id, "colleague@example.org")["id"]
        theirs = service.alert(email="colleague@example.org")
        one = invited(service.caller("colleague@example.org"), "alert", theirs.id, OWNER)
        self.ids["<followed_id>"] = one["id"]
        self.ids["<code>"], self.number = self._codes()
        self.ids["<session_id>"] = Session.find(sha256_of(self.other_session)).id
        self.subscription = push_service.browser().subscription
        self.visitor = Visitor(service)
        self.visitor.get("/app/login")

    def _codes(self):
        """A code that another browser of the owner shows, and the number of a phone that asks this one."""
        account, now = Account.find(OWNER), clock.now_ms()
        self.other_session = other = accounts.start_session(account, "another browser", now)
        with self.owner.client.session_transaction("/app/", base_url=self.owner.base_url) as kept:
            mine = kept["token"]
        phone_links.ask(phone_links.make_code(mine, account.seq, now), "Chrome on Android", "192.0.2.7", now)
        return phone_links.make_code(other, account.seq, now), PhoneLink.of_session(mine).number

    def content(self, rule):
        if rule == "/app/devices":
            return json.dumps({"subscription": self.subscription})
        if rule in ("/app/notifications/delete", "/app/notifications/acknowledge"):
            return {"id": self.ids["<notification_id>"], "confirmed": "1"}
        if rule in OF_ALERT_WITH_NAME:
            return {"name": "x", "icon": "flame", "color": "#00ff00", "frequency": "1h", "preset": "grafana"}
        if rule.startswith("/app/watches"):
            return {"name": "x", "period": "2h", "cron": "", "grace": "10m", "priority": "high"}
        if rule in ALWAYS:
            return ALWAYS[rule]
        if rule == "/app/ring":
            return {"title": "x", "text": "y", "device": self.ids["<device_id>"]}
        if rule == "/app/quiet":
            return {"days": "0-mo", "begin": "01:00", "end": "02:00"}
        if rule in (NEW_RULE, "/app/metrics/rules/<rule_id>"):
            return {"operator": ">", "value": "90", "for": "5m"}
        return {
            "name": "x", "email": OWNER, "password": PASSWORD, "time_zone": "Asia/Tokyo", "theme": "dark",
            "kind": "apns", "token": "ab" * 32, "begin": "01:00", "end": "02:00",
            "current": PASSWORD, "new": "another password", "seen": "99", "title": "{{ message }}",
            "body": "b", "preset": "grafana", "on": "0", "priority": "high", "position": "0",
            "minPriority": "high", "quietHours": "sa 01:00-02:00", "until": "hour",
            "code": self.ids["<code>"], "number": self.number, "answer": "yes", "dense": "1",
        }  # fmt: skip

    def send(self, rule, **more):
        return self.post(rule, self.content(rule), **more)

    def post(self, rule, content, **more):
        ids = self.ids | ({"<account_id>": self.invited_id} if rule.endswith("/withdraw") else {})
        ids |= {"<device_id>": self.channel_id} if rule.endswith("/confirm") else {}
        path = re.sub("<[a-z_]+>", lambda match: ids[match[0]], rule)
        sender = self.visitor if rule == "/app/login" else self.owner
        query = {"project": "home", "metric": "m"} if rule == NEW_RULE else None
        return sender.post(path, content, query_string=query, **more)
