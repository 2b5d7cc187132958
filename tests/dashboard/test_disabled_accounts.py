"""The credentials of a disabled account are answered on every route like unknown ones."""

import re
import uuid
from io import BytesIO

import pytest

from app import COMPATIBLE_ROUTES, ROUTES
from core import accounts, people
from models import Account
from process import clock
from tests.support.accounts import OTHER, OWNER, PASSWORD
from tests.support.buttons import ANSWERS, paths
from tests.support.ntfy_app import add_phone
from tests.support.pages import Visitor, given_token, make_account
from tests.support.picture_files import png
from tests.support.tables import query
from web import guards

NAME = re.compile(r"<(?:\w+:)?(\w+)>")
PUBLIC = {  # answered alike to all who ask
    *("/healthz", "/livez", "/openapi.json", "/docs", "/docs/<name>", "/docs/pictures/<name>", "/", "/app"),
    *(
        *("/metrics", "/app/sw.js", "/app/login", "/app/forgot", "/app/phone", "/v1/health", "/gotify/version"),
        *("/gotify/health",),
    ),
}
GUARDED = [route for route in ROUTES + COMPATIBLE_ROUTES if route.rule not in PUBLIC]

WORKING = {  # with one of the credentials each
    *("/api/v1/stats", "/ping/<ping_id>", "/a/<path:token>", "/i/<path:token>", "/<topics:topics>/json", "/app/"),
    *("/v1/account", "/app/phone/<code>", "/app/setup/<token>"),
}


class Holder:
    """Somebody with a credential of each kind: in paths, by the beginning of the route; a key, a token, a browser."""

    def __init__(self, service, in_path, key, token, browser):
        self.service, self.in_path, self.key, self.token, self.browser = service, in_path, key, token, browser

    def ask(self, route, ids):
        """The status, the location and the text of the answer, without the credentials."""
        begin = "topics" if "topics>" in route.rule else route.rule.partition("<")[0]
        path = NAME.sub(lambda name: self.in_path.get(begin) or ids.get(f"<{name[1]}>", "x"), route.rule, count=1)
        path = NAME.sub(lambda name: ids.get(f"<{name[1]}>", "x"), path)
        if route.guard is guards.device_token:
            answer = self.service.client.post(path, headers={"Authorization": f"Bearer {self.token}"})
        elif route.rule.startswith("/app/"):
            send = self.browser.post if route.method == "POST" else self.browser.get
            answer = send(path, **({"data": {"password": PASSWORD}} if route.method == "POST" else {}))
        else:
            headers = {"Authorization": f"Bearer {self.key}"} if route.guard in guards.OF_KEYS[:3] else {}
            query = {"poll": "1"} if "topics>" in route.rule else None
            answer = self.service.client.open(path, method=route.method, headers=headers, query_string=query)
        text = "" if answer.mimetype in ("text/html", "image/png") else answer.text
        return answer.status_code, self._without(answer.location or ""), self._without(text)

    def _without(self, text):
        for secret in self.in_path.values():
            text = text.replace(secret, "CREDENTIAL")
        return text


@pytest.fixture
def holder(service, owner, push_service, forms):
    """The owner, whose credentials work."""
    browser, caller = push_service.browser(), service.caller()
    token = given_token(owner, browser)
    caller.post("/notifications/send", {"title": "t", "body": "b", "actions": ANSWERS})
    button = next(iter(paths(browser).values()))
    parts = {"title": "Door", "body": "motion", "image": (BytesIO(png()), "cam.png")}
    picture = caller.request("POST", "/api/v1/notifications/send", data=parts)
    in_path = {
        "/p/": query(service, "SELECT short_code FROM alert ORDER BY seq")[0][0],
        "/ping/": query(service, "SELECT ping_id FROM heartbeat")[0][0],
        "/a/": button.rpartition("/")[2],
        "/i/": picture.json["notification"]["image"].rpartition("/")[2],
        "topics": add_phone(caller).topic,
        "/app/phone/": forms.ids["<code>"],
        "/app/setup/": accounts.make_link(Account.find(OWNER), clock.now_ms()).rpartition("/")[2],
    }
    return Holder(service, in_path, caller.key, token, owner)


@pytest.fixture
def guesser(service, holder):
    """Somebody whose credentials have the right form and are nobody's."""
    in_path = {begin: secret[::-1] for begin, secret in holder.in_path.items()}
    in_path |= {"/ping/": str(uuid.uuid4()), "topics": f"pb{'0' * 40}"}
    return Holder(service, in_path, f"sk_test_{'0' * 48}", holder.token[::-1], Visitor(service))


def test_a_disabled_account_is_on_every_route_as_if_there_were_none(service, holder, guesser, forms, moved_clock):
    make_account(service, OTHER)
    people.set_administrator(Account.find(OTHER).seq, True)
    guesser.browser.get("/app/login")
    working = [route for route in GUARDED if route.method == "GET" and route.rule in WORKING]
    assert {holder.ask(route, forms.ids)[0] for route in working} == {200} and len(working) == len(WORKING)
    people.disable(Account.find(OWNER).seq, clock.now_ms())
    for route in GUARDED:
        moved_clock.advance(61)  # too many unknown codes are refused
        mine, unknown = holder.ask(route, forms.ids), guesser.ask(route, forms.ids)
        assert mine == unknown, (route.method, route.rule)
        assert mine[0] in (303, 401, 403, 404, 429), (route.method, route.rule)


def test_a_ping_key_of_a_disabled_account_is_an_unknown_one(service, owner):
    make_account(service, OTHER)
    people.set_administrator(Account.find(OTHER).seq, True)
    service.caller().post("/heartbeats", {"name": "Backup", "periodS": 3600})
    key = accounts.change_ping_key(Account.find(OWNER))
    assert service.client.get(f"/ping/{key}/backup").status_code == 200
    people.disable(Account.find(OWNER).seq, clock.now_ms())
    assert service.client.get(f"/ping/{key}/backup").status_code == 404


def test_a_disabled_account_signs_in_like_one_that_does_not_exist(service, owner, visitor):
    make_account(service, OTHER)
    people.set_administrator(Account.find(OTHER).seq, True)
    people.disable(Account.find(OWNER).seq, clock.now_ms())
    answers = [visitor.sign_in(email, PASSWORD) for email in (OWNER, "nobody@example.org")]
    assert [answer.status_code for answer in answers] == [422, 422]
    assert answers[0].text.replace(OWNER, "") == answers[1].text.replace("nobody@example.org", "")
