"""Keys revoked and short codes rotated while eight threads use them. Requests that begin afterwards must fail."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.server import Server
from torture.client import Browser, Connection, account, alerts_of, asked, command, head, logged_faults, started, tell
from torture.figure import Figure
from web import rate_limits

THREADS = 8
EMAIL = "owner@example.org"
BEFORE_S, AFTER_S = 0.01, 0.02
COMMAND_EVERY = 15  # every 15th round uses the command line, which is its own process


class Use(NamedTuple):
    """A request: when it began, and its status."""

    begun: float
    status: int


class Round(NamedTuple):
    """One round: all uses, the successful ones before, those that began after, and those of them that succeeded."""

    uses: int
    good_before: int
    begun_after: int
    good_after: int


def figures(scratch: Path) -> Iterator[Figure]:
    """200 rounds of codes, and as many of keys as a program can make in an hour."""
    rounds = int(os.environ.get("ROUNDS", "200"))
    with started(scratch, "races", INGEST_PER_MINUTE="1000000") as server:
        key = account(server, EMAIL)
        browser = Browser(server.port).sign_in(EMAIL)
        users = Users(server.port)
        yield told(
            "a key that is revoked through REST, the web app and the command line",
            revoked(server, key, browser, users, min(rounds, rate_limits.NEW_KEYS.amount)),
        )
        yield told(
            "a code that is rotated through the web app and the command line", rotated(server, browser, users, rounds)
        )
        yield logged_faults(server)


def told(what: str, rounds: list[Round]) -> Figure:
    """The row of all rounds. It counts only if the credential was used before and after in each of them."""
    uses, good, after, bad = (sum(numbers) for numbers in zip(*rounds, strict=True))
    empty = sum(not one.good_before or not one.begun_after for one in rounds)
    seen = f"{bad} of {after} (of {uses} requests {good} succeeded before); {empty} rounds without one of either"
    must = f"in {len(rounds)} rounds 0 requests succeed that were begun after the acknowledgement"
    return Figure(f"{THREADS} threads use {what}", must, seen, bad == 0 and empty == 0)


class Users:
    """The threads' connections, kept from round to round."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connections: list[Connection | None] = [None] * THREADS

    def during(self, make: Callable[[int], bytes], change: Callable[[], bool]) -> Round:
        """Use the credential in all threads, change it, and keep using it for a moment."""
        stop, uses = threading.Event(), list[Use]()

        def use(place: int) -> None:
            number = place
            while not stop.is_set():
                uses.append(self.one(place, make(number)))
                number += THREADS

        threads = [threading.Thread(target=use, args=(place,)) for place in range(THREADS)]
        for thread in threads:
            thread.start()
        time.sleep(BEFORE_S)
        done = change()
        acknowledged = time.perf_counter()
        time.sleep(AFTER_S)
        stop.set()
        for thread in threads:
            thread.join()
        assert done, "the change was refused"
        before = [one for one in uses if one.begun <= acknowledged]
        after = [one for one in uses if one.begun > acknowledged]
        good_after = sum(one.status == 200 for one in after)
        if good_after:
            tell("it still works after", [(one.begun - acknowledged, one.status) for one in after][:20])
        return Round(len(uses), sum(one.status == 200 for one in before), len(after), good_after)

    def one(self, place: int, data: bytes) -> Use:
        """One request of a thread."""
        connection = self.connections[place] or Connection(self.port)
        begun = time.perf_counter()
        connection.send(data)
        answer = connection.answer()
        if answer is None or answer.header("Connection") == "close":
            connection.close()
            self.connections[place] = None
        else:
            self.connections[place] = connection
        return Use(begun, answer.status if answer else 0)


def revoked(server: Server, key: str, browser: Browser, users: Users, rounds: int) -> list[Round]:
    """Revoke a new key in each round, in every way in turn."""
    seen = list[Round]()
    for number in range(rounds):
        made = asked(server.port, "POST", "/api/v1/api-keys/generate", {"name": f"k{number}"}, key).json["apiKey"]
        full, key_id = made["fullKey"], made["id"]

        def by_rest(full: str = full, key_id: str = key_id, own: bool = number % 2 == 0) -> bool:
            with_key = full if own else key  # a key can revoke itself
            return asked(server.port, "DELETE", f"/api/v1/api-keys/{key_id}", key=with_key).status == 200

        def by_form(key_id: str = key_id) -> bool:
            return browser.form(f"/app/keys/{key_id}/revoke").status == 303

        def by_command(key_id: str = key_id) -> bool:
            return command(server, "key", "revoke", EMAIL, key_id).returncode == 0

        way = by_command if number % COMMAND_EVERY == 0 else (by_rest, by_rest, by_form)[number % 3]
        data = head("GET", "/api/v1/stats", {"Authorization": f"Bearer {full}"})
        seen.append(users.during(lambda _, data=data: data, way))
    return seen


def rotated(server: Server, browser: Browser, users: Users, rounds: int) -> list[Round]:
    """Rotate a new alert in each round, since an alert takes 60 events a minute; many addresses avoid a 429."""
    seen = list[Round]()
    for number, (alert_id, code) in enumerate(alerts_of(browser, rounds)):

        def by_form(alert_id: str = alert_id) -> bool:
            return browser.form(f"/app/alerts/{alert_id}/rotate").status == 303

        def by_command(alert_id: str = alert_id) -> bool:
            return command(server, "alert", "rotate", EMAIL, alert_id).returncode == 0

        def event(count: int, code: str = code, number: int = number) -> bytes:
            sender = f"10.{number % 250}.{count // 250 % 250}.{count % 250}"
            return head("POST", f"/p/{code}", {"X-Forwarded-For": sender, "Content-Length": "2"}, b"{}")

        seen.append(users.during(event, by_command if number % COMMAND_EVERY == 0 else by_form))
    return seen
