"""Access: malformed credentials on every route, ids and cursors of another account, altered cursors."""

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from app import ASSISTANTS, CUSTOM_METRICS, ROUTES
from tests.support.push_service import Browser as Phone
from tests.support.server import Server
from tests.web.test_access import MALFORMED
from torture.client import (
    Answer,
    Browser,
    Connection,
    account,
    alerts_of,
    asked,
    counted,
    head,
    logged_faults,
    new_keys,
    raw,
    send,
    started,
    tell,
)
from torture.figure import Figure

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
NOT_HTTP = ("a NUL at the end", "a form feed at the end", "very long")  # no valid HTTP header: 400 before any route
OPEN = {f"{method} /p/<path:short_code>" for method in ("GET", "POST", "PUT")}
OPEN |= {"GET /healthz", "GET /", "GET /app/sw.js", "GET /app/login", "POST /app/login"}
OPEN |= {"GET /app/setup/<token>", "POST /app/setup/<token>", "GET /app", "GET /docs", "GET /openapi.json"}
OPEN |= {"GET /metrics", "GET /a/<path:token>", "POST /a/<path:token>"}  # they have their own tokens
WITH_A_KEY = ("/api/", ASSISTANTS)
CURSORS = 2_000
FORM = {
    "name": "taken",
    "icon": "bell",
    "color": "#000000",
    "frequency": "1h",
    "on": "0",
    "title": "taken",
    "body": "b",
}
FORM |= {"preset": "", "kind": "fcm", "token": "x" * 40, "seen": "1", "payload": "{}"}
IGNORED_COLUMNS = {"last_used_at", "last_seen_at", "expires_at"}
IGNORED_HEADERS = {"date", "set-cookie", "x-ratelimit-remaining", "x-ratelimit-reset", "x-request-id"}


def figures(scratch: Path) -> Iterator[Figure]:
    """Try every credential on every address, then one account against another."""
    with started(scratch, "access", INGEST_PER_MINUTE="1000000", WEBPUSH_HOSTS="push.example.com") as server:
        key = account(server, "a@example.org")
        yield from malformed(server, new_keys(server, key, 1)[0])
        yield pages_without_session(server)
        other = account(server, "b@example.org")
        browser, others = Browser(server.port).sign_in("a@example.org"), Browser(server.port).sign_in("b@example.org")
        secrets = furnished(server, other, others)
        furnished(server, key, browser)
        keys = [key, *new_keys(server, key, 8)]
        yield from foreign_ids(server, keys, browser, secrets)
        yield from bent_cursors(server, keys, other)
        yield logged_faults(server)


# --- malformed credentials ----------------------------------------------------------------------------------


def guarded_paths() -> list[str]:
    """Each address that needs a key, and two that do not exist."""
    paths = {re.sub("<[^>]*>", "some-id", route.rule) for route in ROUTES if route.rule.startswith(WITH_A_KEY)}
    return sorted(paths | {"/api/v1/unknown", "/api/v1/"})


def malformed(server: Server, key: str) -> Iterator[Figure]:
    """Every malformed credential on every address with every method gets 401 with the same body."""
    bodies, number, wrong = dict[str, set[bytes]](), 0, list[str]()
    connection = Connection(server.port)
    forms = {name: form for name, form in MALFORMED.items() if name not in NOT_HTTP}
    for name, form in forms.items():
        fields = [("Authorization", value) for value in form(key)]
        for path in guarded_paths():
            for method in METHODS:
                connection.send(head(method, path, [*fields, ("Content-Length", "0")]))
                answer, number = connection.answer(method == "HEAD"), number + 1
                if answer is None or answer.status != 401 or answer.header("WWW-Authenticate") != "Bearer":
                    wrong.append(f"{name}: {method} {path}: {answer}")
                    connection = Connection(server.port)
                elif method != "HEAD":
                    bodies.setdefault("metrics" if path == CUSTOM_METRICS else "rest", set()).add(answer.body)
    for line in wrong[:10]:
        tell("not a 401", line)
    variants = {surface: len(found) for surface, found in bodies.items()}
    what = f"{len(forms)} malformed credentials on {len(guarded_paths())} addresses with {len(METHODS)} methods"
    seen = f"{number} requests, {len(wrong)} not 401, bodies: {counted_bodies(variants)}"
    yield Figure(what, "401, one body for each surface", seen, not wrong and set(variants.values()) == {1})
    yield not_http(server, key)


def counted_bodies(variants: dict[str, int]) -> str:
    """The number of different bodies that each surface answers with."""
    return ", ".join(f"{count} ({surface})" for surface, count in sorted(variants.items()))


def not_http(server: Server, key: str) -> Figure:
    """Credentials that no HTTP header can contain."""
    seen = list[int]()
    for name in NOT_HTTP:
        fields = [("Authorization", value) for value in MALFORMED[name](key)]
        for path in guarded_paths():
            answer = raw(server.port, head("GET", path, fields))
            seen.append(answer.status if answer else 0)
    return Figure(
        f"{len(NOT_HTTP)} more that are no HTTP header", "400 or 401", counted(seen), set(seen) <= {400, 401}
    )


def pages_without_session(server: Server) -> Figure:
    """Every other route without a session, with a forged cookie, and with a wrong token."""
    seen, wrong = list[int](), list[str]()
    for route in ROUTES:
        if route.rule.startswith(WITH_A_KEY) or f"{route.method} {route.rule}" in OPEN:
            continue
        path = re.sub("<[^>]*>", "some-id", route.rule)
        for cookie in (
            "",
            "pocketbell=x.y",
            "pocketbell=eyJ0b2tlbiI6IngifQ.AAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "session=1",
        ):
            answer = asked(server.port, route.method, path, urlencode(FORM), Cookie=cookie)
            seen.append(answer.status)
            away = answer.status == 303 and answer.header("Location").startswith("/app/login")
            if not away and not (answer.status == 401 and "resync" in path):
                wrong.append(f"{route.method} {path}: {answer.status}")
    for line in wrong:
        tell("without a session", line)
    what = "pages and forms without a session or with a forged one"
    return Figure(what, "303 to the sign-in (401 for resync)", f"{len(seen)}: {counted(seen)}", not wrong)


# --- one account against another ----------------------------------------------------------------------------


def furnished(server: Server, key: str, browser: Browser) -> dict[str, list[str]]:
    """Give the account one of everything; returns the ids and cursors."""
    alerts, word = alerts_of(browser, 2), f"hidden-{key[14:24]}"
    asked(server.port, "POST", f"/p/{alerts[0][1]}", {"title": word})
    sent = [send(server, key, f"{word} {n}").json["notification"]["id"] for n in range(3)]
    phone = {"kind": "webpush", "subscription": Phone("https://push.example.com/x").subscription}
    token = {"kind": "apns", "token": "ab" * 32}
    devices = [asked(server.port, "POST", "/api/v1/devices", one, key).json["device"]["id"] for one in (phone, token)]
    keys = [one["id"] for one in asked(server.port, "GET", "/api/v1/api-keys", key=key).json["apiKeys"]]
    metric = {"metricId": f"m-{key[8:14]}", "metricName": word, "value": 1}
    asked(server.port, "POST", CUSTOM_METRICS, {"projectId": f"p-{key[8:14]}", "metrics": [metric]}, key)
    pages = [asked(server.port, "GET", f"/api/v1/notifications?limit={n}", key=key).json for n in (1, 2, 100)]
    cursors = [page["pagination"]["nextCursor"] for page in pages]
    named = {"project": [f"p-{key[8:14]}"], "metric": [f"m-{key[8:14]}"]}
    return {
        "id": [*(alert for alert, _ in alerts), *sent, *devices, *keys],
        "cursor": cursors,
        **named,
        "word": [word],
    }


def foreign_ids(server: Server, keys: list[str], browser: Browser, secrets: dict[str, list[str]]) -> Iterator[Figure]:
    """Use each id of the other account at each route, and one that never existed: the answers must be identical."""
    before, number, wrong, statuses = rows_of(server, "b@example.org"), 0, list[str](), Counter[int]()
    for method, path, known in attempts(secrets):
        unknown = made_up(known)
        answers = []
        for one in (known, unknown):
            answers.append(used(server, keys[number % len(keys)], browser, method, path.replace("ID", quote(one))))
        number += 2
        statuses[answers[0].status] += 1
        if compared(answers[0], known) != compared(answers[1], unknown) or answers[0].status >= 500:
            wrong.append(f"{method} {path} {known}: {answers[0]}\n      unknown: {answers[1]}")
        if secrets["word"][0].encode() in answers[0].body:
            wrong.append(f"{method} {path}: shows what is the other's")
    for line in wrong[:5]:
        tell("foreign is not unknown", line)
    what = f"{number} requests with ids, names and cursors of another account, and with unknown ones"
    shares = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    yield Figure(what, "same answers, byte for byte", f"{len(wrong)} differ ({shares})", not wrong)
    after = rows_of(server, "b@example.org")
    changed = [table for table in before if before[table] != after[table]]
    seen = f"{len(changed)} of {len(before)} tables, {sum(map(len, before.values()))} rows"
    yield Figure("the other account's rows that changed", "0", seen, not changed)


def attempts(secrets: dict[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    """Method, path (with ID in it), and the other account's value."""
    for route in ROUTES:
        if "<" in route.rule and not route.rule.startswith(("/p/", "/a/", "/app/setup")):
            for one in secrets["id"]:
                yield route.method, re.sub("<[^>]*>", "ID", route.rule), one
    for one in secrets["id"]:
        yield "GET", "/app/notifications?alert=ID", one
    for one in secrets["cursor"]:
        yield "GET", "/api/v1/notifications?cursor=ID", one
        yield "GET", "/api/v1/notifications?search=hidden&cursor=ID", one
    for one in secrets["project"]:
        for page in ("", "/one", "/one.csv"):
            yield "GET", f"/app/metrics{page}?project=ID&metric={secrets['metric'][0]}", one


def made_up(known: str) -> str:
    """A value of the same form that was never issued. Names are also indexes into a list: the neighbour is used."""
    if known.startswith("p-"):
        return known + "0"
    generator = random.Random(known)
    return "".join(generator.choice("0123456789abcdef") if c.isalnum() else c for c in known)


def used(server: Server, key: str, browser: Browser, method: str, path: str) -> Answer:
    """Send the request as its owner would."""
    if path.startswith("/api"):
        return asked(server.port, method, path, {} if method == "POST" else None, key)
    cookie, csrf = browser.cookie, browser.csrf
    script = path.endswith("/preview")
    body = {name: FORM[name] for name in ("title", "body", "payload")} if script else urlencode(FORM)
    kind = "application/json" if script else "application/x-www-form-urlencoded"
    headers = {"Cookie": cookie, "X_CSRF_Token": csrf, "Content_Type": kind}
    return asked(server.port, method, path, body if method == "POST" else None, **headers)


def compared(answer: Answer, used_id: str) -> tuple[Any, ...]:
    """The parts of an answer that must not depend on the id."""
    headers = [(name, value) for name, value in answer.headers if name.lower() not in IGNORED_HEADERS]
    texts = (used_id.encode(), quote(used_id).encode())
    body = answer.body
    for text in texts:
        body = body.replace(text, b"ID")
    return answer.status, [(n, v.replace(used_id, "ID")) for n, v in headers if n != "Content-Length"], body


def rows_of(server: Server, email: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of an account, without the times of last use."""
    rows = dict[str, list[tuple[Any, ...]]]()
    with sqlite3.connect(server.data_dir / "pocketbell.db") as database:
        (seq,) = database.execute("SELECT seq FROM account WHERE email = ?", (email,)).fetchone()
        for (table,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            if "account_seq" in columns:
                kept = ", ".join(column for column in columns if column not in IGNORED_COLUMNS)
                rows[table] = database.execute(f"SELECT {kept} FROM {table} WHERE account_seq = ?", (seq,)).fetchall()
        rows["account"] = database.execute("SELECT * FROM account WHERE seq = ?", (seq,)).fetchall()
    database.close()
    return rows


# --- cursors ------------------------------------------------------------------------------------------------


def bent_cursors(server: Server, keys: list[str], other: str) -> Iterator[Figure]:
    """Alter cursors of both accounts in many ways, and use them from one account."""
    own, foreign = cursors_of(server, keys[0]), cursors_of(server, other)
    theirs = {
        one["id"]
        for one in asked(server.port, "GET", "/api/v1/notifications?limit=100", key=other).json["notifications"]
    }
    generator, statuses, leaked, taken = random.Random(1), Counter[int](), 0, 0
    for number in range(CURSORS):
        bent = bend(generator, own, foreign)
        path = f"/api/v1/notifications?cursor={quote(bent)}"
        answer = asked(server.port, "GET", path, key=keys[number % len(keys)])
        statuses[answer.status] += 1
        if answer.status == 200:
            taken += bent not in own
            leaked += bool(theirs & {one["id"] for one in answer.json["notifications"]})
    shares = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    seen = f"{leaked} with rows of another account, {taken} that were never issued were accepted ({shares})"
    holds = not leaked and not taken and set(statuses) <= {200, 400} and statuses[400] > CURSORS * 0.9
    yield Figure(f"{CURSORS} altered cursors", "0 rows of another account, 0 accepted, 0 answers of 5xx", seen, holds)


def cursors_of(server: Server, key: str) -> list[str]:
    """Cursors that were issued to the account."""
    pages = [asked(server.port, "GET", f"/api/v1/notifications?limit={n}", key=key).json for n in (1, 2, 3, 100)]
    return [page["pagination"]["nextCursor"] for page in pages]


def bend(generator: random.Random, own: list[str], foreign: list[str]) -> str:
    """An altered cursor, or one combined from two."""
    one, two = generator.choice(own + foreign), generator.choice(own + foreign)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \x00é"
    at = generator.randrange(len(one))
    how = generator.randrange(7)
    if how == 0:
        return one[:at] + generator.choice(alphabet) + one[at + 1 :]
    if how == 1:
        return one[:at] + one[at + 1 + generator.randrange(5) :]
    if how == 2:
        return one.partition(".")[0] + "." + two.partition(".")[2]
    if how == 3:
        return one[:-1] + generator.choice(alphabet)  # the last base64 character has spare bits
    if how == 4:
        return one + generator.choice(("=", ".", " ", "A", "%", "\n"))
    if how == 5:
        return "".join(generator.choice(alphabet) for _ in range(generator.randrange(1, 60)))
    return generator.choice(foreign)
