"""Every route: another account's ids are answered like unknown ones, and no hostile request causes a 500."""

import json
import random
import re

import pytest

from app import COMPATIBLE_ROUTES, ROUTES
from tests.support.accounts import OTHER
from tests.support.forms import PAGES_OF_THE_OWNER, Forms
from tests.support.rows import each
from tests.support.tables import everything
from web import guards

NAME = re.compile(r"<(?:\w+:)?(\w+)>")
WITH_ID = [  # a metric has names instead
    (route.method, route.rule.replace("<what>", "alert"))
    for route in ROUTES
    if "_id>" in route.rule and route.guard in (guards.signed_in, guards.administrator, guards.api_key)
]
JSON_DOORS = ("/api/", "/p/", "/ping/", "/mcp", "/healthz", "/livez", "/gotify/")
LEFT_OUT = ("/app/login", "/app/setup/<token>", "/app/settings/password")  # they hash passwords, which takes long
LEFT_OUT += ("/healthz", "/v1/health", "/gotify/health")  # no worker looks while the test moves the clock
TRIES = {"GET": 2, "DELETE": 2, "POST": 3, "PUT": 4, "PATCH": 4}
PIECES = ["%00", "%ff", "%2e%2e/", "..;/", "//", "%25", "%zz", "%0d%0aX:y", "%ed%a0%80", ";a=b", "%2F", "%5C"]
PIECES += ["*", "{{a}}", "<>", "a" * 3_000, "%F0%9F%98%80", "?", "'", '"']
QUERIES = (
    "limit=0 limit=1e3 limit=%D9%A3 limit=1&limit=2 cursor=%00 cursor=WzEsMV0.x search=%00 search=%ff search=%25_"
)
QUERIES += " before=-1 before=1e3 since=2026-02-30 until=0000-00-00 status=x alert=x range=7+d wait=x"
QUERIES += f" &&&= %ff=%ff project=%00&metric=%ff next=//evil limit={'9' * 5_000} search={'a' * 201}"
QUERIES += f" metric={'x' * 3_000} %ff%fe %00 =&=&&&;; email[]=a&__proto__=1 %ED%A0%80={{{{7*7}}}}"
QUERIES = [*QUERIES.split(), "&".join(f"a{n}=1" for n in range(2_000))]
HEADERS = {
    "Idempotency-Key": ("x" * 256, "\xff", "a b"),
    "Content-Encoding": ("gzip", "deflate, br"),
    "X-Forwarded-For": ("999.1.1.1", "[::1]:80", "2001:db8::1%eth0"),
    "Range": ("bytes=9-1", "lines=1"),
    "If-Modified-Since": ("Sat, 99 Jan 99999 00:00:00 GMT",),
    "Origin": ("null", "http://x:99999"),
    "Accept": ("application/json;q=\xff",),
    "X-At": ("tomorrow 25:00", "9" * 40),
    "Priority": ("u=\xff",),
    "Actions": ("view, x", "[{]"),
}
WRONG = [None, True, 0, -1, 1e308, 10**99, "", " ", "\0", "\ud800", "\u202e", "x" * 10_001, "😀" * 500, [], {}, [[]]]
WRONG += [[None] * 101, "{{ a }}", "{{" * 500, "{{ a | date: '%' }}", "\r\nX: y", 2**63, 0.1]
NAMES = (
    "title message body name kind token subscription period grace cron operator value for payload preset frequency on"
)
NAMES = (
    f"{NAMES} id ids projectId metrics topic actions deliverAt acknowledge priority time_zone begin end email".split()
)
KINDS = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "a/b; charset=x"]
BODIES = [
    *(b"{", b"[]", b"0", b"{}{}", b"[" * 20_000, b'{"n":1e999}', b'{"n":' + b"9" * 5_000 + b"}", b"\xff\xfe"),
    b"a=%",
]
BODIES += [b'{"title":"\\ud800","body":"b"}', b"payload=1&payload=2", b"--b\r\n\r\n", b"\x1f\x8b\x08", b"&" * 300]


BODY_OF = {"followers": {"email": "x@example.org"}, "snooze": {"forS": 60}}  # a wrong one is refused before the id


def as_stranger(stranger, caller, forms, method, rule, known, used):
    """What a stranger is answered who uses this id, without the id."""
    path = NAME.sub(used, rule)
    if rule.startswith("/api/"):
        answer = caller.request(method, path, json=BODY_OF.get(rule.rpartition("/")[2], {}))
    else:
        answer = stranger.post(path, forms.content(rule)) if method == "POST" else stranger.get(path)
    return answer.status_code, (answer.location or "").replace(used, "ID"), answer.text.replace(used, "ID")


def test_another_accounts_id_is_answered_like_an_unknown_one_on_every_route(service, stranger, forms):
    caller = service.caller(OTHER)
    before = everything()
    for method, rule in WITH_ID:
        known = forms.ids[f"<{NAME.search(rule)[1]}>"]
        answers = [as_stranger(stranger, caller, forms, method, rule, known, used) for used in (known, known[::-1])]
        assert answers[0] == answers[1], (method, rule)
        assert answers[0][0] in (303, 404), (method, rule)
    changed = [table for table, rows in everything().items() if rows != before[table]]
    assert set(changed) <= {"api_key", "session"}  # when the stranger's were last used


# Settings say how often a key was used; People is for administrators alone.
PAGES = [path for path in PAGES_OF_THE_OWNER if path not in ("/app/settings", "/app/people")]
PAGES += [f"/app/notifications?{query}" for query in ("search=held", "status=held", "since=2026-11-21")]
LISTS = ("/notifications", "/alerts", "/watches", "/stats", "/api-keys", "/devices", "/mutes")


def test_no_page_or_list_shows_data_of_another_account(service, owner, stranger, push_service):
    caller, theirs = service.caller(OTHER), service.caller()
    metric = {"metricId": "cpu", "metricName": "CPU", "value": 1}

    def shown():
        pages = {path: stranger.page(path).text for path in PAGES}
        pages["new"] = stranger.get("/app/notifications/new?after=0").json
        return pages | {path: caller.get(path).json for path in LISTS}

    caller.get("/stats")  # the key is used from now on
    before = shown()
    Forms(service, owner, push_service)
    theirs.request("POST", "/api/webhooks/custom", json={"projectId": "web", "metrics": [metric]})
    assert shown() == before


def hostile(chance, route, ids, number):
    """The path, the headers and the body of a hostile request to a route; every other body has fields."""
    path = NAME.sub(lambda name: chance.choice([ids.get(f"<{name[1]}>", "x"), "x", "0"]), route.rule)
    if chance.random() < 0.3:
        at = chance.randrange(1, len(path) + 1)
        path = path[:at] + chance.choice(PIECES) + path[at:]
    path += f"?{chance.choice(QUERIES)}"
    headers = {name: chance.choice(HEADERS[name]) for name in chance.sample(list(HEADERS), 3)}
    body = {name: chance.choice(WRONG) for name in chance.sample(NAMES, 12)}
    other = chance.choice([json.dumps([body]).encode(), *chance.sample(BODIES, 2)])
    data = other if number % 2 else json.dumps(body).encode()
    return path, headers | {"Content-Type": chance.choice(KINDS)}, data


@each("route", [route for route in ROUTES + COMPATIBLE_ROUTES if route.rule not in LEFT_OUT])
def test_no_hostile_request_causes_a_500(service, owner, forms, caller, moved_clock, route):
    chance = random.Random(f"{route.method} {route.rule}")
    for path, headers, data in [hostile(chance, route, forms.ids, n) for n in range(TRIES[route.method])]:
        moved_clock.advance(61)
        if route.rule.startswith("/app"):
            headers["X-CSRF-Token"] = owner.token
        else:
            headers["Authorization"] = f"Bearer {caller.key}"
        client = owner.client if route.rule.startswith("/app") else service.client
        answer = client.open(path, method=route.method, data=data, headers=headers)
        assert answer.status_code < 500, (route.method, path, headers, data)
        if route.rule.startswith(JSON_DOORS) and answer.data and path.startswith(JSON_DOORS):
            json.loads(answer.text, parse_constant=pytest.fail)


@each("path", [f"{path}?{query}" for path in ("/app/notifications", *LISTS[:1], "/metrics") for query in QUERIES])
def test_no_hostile_query_causes_a_500(owner, caller, path):
    answer = owner.get(path) if path.startswith("/app") else caller.get(path)
    assert answer.status_code < 500
