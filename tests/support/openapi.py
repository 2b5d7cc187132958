"""The OpenAPI document, with its references followed."""

import re
from io import BytesIO

import yaml

import app
from core import scheduler
from core.accounts import change_ping_key, find_account
from core.buttons import token_of
from models import Account
from store.database import EVERYBODY, run, transaction
from store.rows import new_id
from tests.support.followers import invited
from tests.support.heartbeats import EMAIL
from tests.support.picture_files import png
from tests.support.service import METRICS_TOKEN
from web import api_docs
from wire.notification import LAST_TIME

# libyaml is ten times as fast, and every worker reads this.
DOCUMENT = yaml.load(api_docs.FILE.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
SCHEMAS = DOCUMENT["components"]["schemas"]


def resolved(node):
    """The node with its references resolved, and closed to fields that it does not name."""
    if isinstance(node, list):
        return [resolved(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        found = DOCUMENT
        for name in node["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        return resolved(found)
    closed = {name: resolved(value) for name, value in node.items()}
    return {"additionalProperties": False, **closed} if "properties" in closed and "type" in closed else closed


class Described:
    """One operation as the document describes it."""

    def __init__(self, method, path, operation):
        self.method, self.path, self.operation = method.upper(), path, resolved(operation)
        self.id = operation["operationId"]
        security = operation.get("security", DOCUMENT["security"])
        self.scheme = next(iter(security[0])) if security else None
        self.answers = {int(status): answer for status, answer in self.operation["responses"].items()}
        self.parameters = self.operation.get("parameters", [])

    def __repr__(self):
        return self.id

    @property
    def rule(self):
        """The route's rule in `app.ROUTES`, with its names in camel case."""
        return f"{self.method} {self.path}"

    @property
    def body(self):
        sent = self.operation.get("requestBody")
        return sent["content"]["application/json"]["example"] if sent else None

    @property
    def query(self):
        return {one["name"]: one["example"] for one in self.parameters if one["in"] == "query" and "example" in one}

    def path_with(self, value, follower="0" * 7):
        names = {"signal": "fail", "slug": "fail", "metric": "revenue", "followerId": follower}
        return re.sub(r"\{\w+\}", value, self.path, count=1).format(**names)


OPERATIONS = {
    one.id: one
    for path, methods in DOCUMENT["paths"].items()
    for one in (Described(method, path, operation) for method, operation in methods.items())
}


def camel_cased(route):
    names = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route.rule)
    return f"{route.method} {re.sub(r'_([a-z])', lambda match: match[1].upper(), names)}"


def endpoint(operation):
    """The endpoint of the operation's route in the application."""
    return next(f"{one.method} {one.rule}" for one in app.ROUTES if camel_cased(one) == operation.rule)


DEFINED = re.compile(r"/api/v1/(alert|heartbeat|rule|mute)s/")
FOLLOWED_KINDS = {"alerts": "alert", "heartbeats": "heartbeat", "rules": "rule", "api-keys": "key"}


class World:
    """A service in which every operation can be called as its example says."""

    def __init__(self, service, monkeypatch, email=EMAIL):
        self.service, self.monkeypatch, self.email = service, monkeypatch, service.account(email)
        self.caller, self.hook = service.caller(email), service.alert(email=email)
        self.credentials = {"apiKey": self.caller.key, "metricsToken": METRICS_TOKEN}
        monkeypatch.setattr(scheduler.background, "is_alive", lambda: True)
        self.follower = "0" * 7  # the id of the last one that was invited

    def made(self, operation):
        """Make what the operation's path names, and return its id."""
        if operation.path.startswith("/api/v1/following/"):
            return self.invited()
        id_ = self._made(operation)
        if "{followerId}" in operation.path:
            kind, email = FOLLOWED_KINDS[operation.path.split("/")[3]], f"{new_id(0)}@example.org"
            self.follower = invited(self.caller, kind, id_, email)["id"]
        return id_

    def _made(self, operation):
        if "/api-keys/" in operation.path:
            return self.caller.post("/api-keys/generate", {"name": "nas"}).json["apiKey"]["id"]
        if operation.id in ("getNotification", "deleteNotification", "snoozeNotification"):
            return self.caller.send().json["notification"]["id"]
        if operation.id in ("showButton", "pressButton"):
            device = self.caller.post("/devices", OPERATIONS["addDevice"].body).json["device"]["id"]
            question = {"title": "Deploy?", "body": "now", "actions": [{"label": "Yes", "answer": "y"}]}
            sent = self.caller.post("/notifications/send", question).json["notification"]["id"]
            return token_of(sent, device, 0)
        if operation.path.startswith("/ping/"):
            beat = self.caller.post("/heartbeats", {"name": "Fail", "periodS": 3600}).json["heartbeat"]
            return self.ping_key() if "{slug}" in operation.path else beat["url"].rpartition("/")[2]
        if operation.id == "acknowledgeNotification":
            sent = {"title": "Disk", "body": "full", "acknowledge": True}
            return self.caller.post("/notifications/send", sent).json["notification"]["id"]
        if operation.id in ("changeDevice", "removeDevice", "showMailLink", "pressMailLink"):
            device = self.caller.post("/devices", OPERATIONS["addDevice"].body).json["device"]["id"]
            return device if "Device" in operation.id else _as_mail_address(device)
        if operation.id == "showPicture":
            parts = {"title": "Door", "body": "motion", "image": (BytesIO(png()), "cam.png")}
            sent = self.caller.request("POST", "/api/v1/notifications/send", data=parts).json["notification"]
            return sent["image"].rpartition("/")[2]
        if operation.id == "getMetric":
            batch = OPERATIONS["storeMetrics"].body
            self.caller.request("POST", OPERATIONS["storeMetrics"].path, batch)
            return batch["projectId"]
        if defined := DEFINED.match(operation.path):
            kind = defined[1]
            return self.call(OPERATIONS[f"create{kind.capitalize()}"]).json[kind]["id"]
        return self.hook.code

    def invited(self):
        """The id of an invitation that the caller has from another account."""
        other = "other@example.org"
        if not Account.find(other):
            self.service.account(other)
        hook = self.service.alert(email=other)
        return invited(self.service.caller(other), "alert", hook.id, self.email)["id"]

    def ping_key(self):
        account = find_account(self.email)
        return account.ping_key or change_ping_key(account)

    def call(self, operation, id_=None, key=True, headers=None, **sent):
        """Send the example, or what is in `sent` instead."""
        path = operation.path
        if "{" in path:
            value = id_ or self.made(operation)
            path = operation.path_with(value, self.follower)
        if not sent and operation.body:
            sent = {"json": operation.body}
        elif not sent:
            sent = {"query_string": operation.query}
        headers = dict(headers or {})
        if key and operation.scheme:
            headers["Authorization"] = f"Bearer {self.credentials[operation.scheme]}"
        return self.service.client.open(path, method=operation.method, headers=headers, **sent)


def _as_mail_address(device):
    """Make a mail address of a device; the token of its page."""
    token = device[-22:]
    with transaction(EVERYBODY):
        run(
            "UPDATE device SET kind = 'email', token = id, auth = ?, confirm_by = ? WHERE id = ?",
            (token, LAST_TIME, device),
        )
    return token
