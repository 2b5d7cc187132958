"""Keys revoked and short codes rotated while eight threads use them. Requests that begin afterwards must fail.

ROUNDS is the number of rounds of each.
"""

import http.client
import os
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.support.server import OWNER, Server, bearer, wait_until
from torture.figure import Figure
from torture.load import Crowd, asked, new_key
from torture.service import PASSWORD, Seeded, SignedIn, logged_faults, seed, started, tell

ROUNDS = int(os.environ.get("ROUNDS", "200"))
THREADS = 8
BEFORE_S, AFTER_S = 0.01, 0.02
COMMAND_EVERY = 15  # every 15th round uses the command line, which is its own process

Request = tuple[str, str, dict[str, str]]  # method, path, headers


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
    """Rounds of codes, and of keys of several accounts, since all keys of one have a limit together."""
    (account,) = seed(scratch / "data", [OWNER], hooks=ROUNDS, password=PASSWORD)
    emails = [f"keys-{first}@example.org" for first in range(0, ROUNDS, COMMAND_EVERY)]
    of_keys = seed(scratch / "data", emails, password=PASSWORD)
    with started(scratch / "data", INGEST_PER_MINUTE="1000000") as server:
        owner, users = SignedIn(server, OWNER), Users(server)
        owners = [(one, SignedIn(server, one.email)) for one in of_keys]
        yield told(
            "a key that is revoked through REST, the web app and the command line",
            [_revoked(server, *owners[number // COMMAND_EVERY], users, number) for number in range(ROUNDS)],
        )
        codes = enumerate(zip(account.alerts, account.codes, strict=True))
        yield told(
            "a code that is rotated through the web app and the command line",
            [_rotated(server, owner, users, number, *alert) for number, alert in codes],
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

    def __init__(self, server: Server) -> None:
        self.connections = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=20) for _ in range(THREADS)]

    def during(self, make: Callable[[int], Request], change: Callable[[], bool]) -> Round:
        """Use the credential in all threads, change it, and keep using it for a moment."""
        uses, numbers = list[Use](), count()
        works = [lambda one=one: uses.append(self._use(one, *make(next(numbers)))) for one in self.connections]
        crowd = Crowd(*works)
        time.sleep(BEFORE_S)
        wait_until(lambda: any(one.status == 200 for one in uses))  # on a busy machine
        done = change()
        acknowledged = time.perf_counter()
        time.sleep(AFTER_S)
        wait_until(lambda: any(one.begun > acknowledged for one in uses))
        crowd.end()
        assert done, "the change was refused"
        before = [one for one in uses if one.begun <= acknowledged]
        after = [one for one in uses if one.begun > acknowledged]
        good_after = sum(one.status == 200 for one in after)
        if good_after:
            tell("it still works after", [(one.begun - acknowledged, one.status) for one in after][:20])
        return Round(len(uses), sum(one.status == 200 for one in before), len(after), good_after)

    def _use(self, connection: http.client.HTTPConnection, method: str, path: str, headers: dict[str, str]) -> Use:
        """One request of a thread."""
        begun = time.perf_counter()
        connection.request(method, path, "{}" if method == "POST" else None, headers)
        answer = connection.getresponse()
        answer.read()
        return Use(begun, answer.status)


def _revoked(server: Server, account: Seeded, owner: SignedIn, users: Users, number: int) -> Round:
    """Revoke a new key, in every way in turn."""
    (key,) = account.keys
    made = new_key(server, key, f"k{number}")
    full, key_id = made["fullKey"], made["id"]

    def revoke(with_key: str) -> bool:
        return asked(server, "DELETE", f"/api/v1/api-keys/{key_id}", key=with_key).status == 200

    def by_rest() -> bool:
        by_itself = [full] if number % 2 == 0 else []  # on a busy machine the threads may have used up its limit
        return any(revoke(one) for one in (*by_itself, key))

    def by_form() -> bool:
        return owner.post(server, f"/app/keys/{key_id}/revoke") == 303

    def by_command() -> bool:
        return "Revoked" in server.flask("key", "revoke", account.email, key_id)

    way = by_command if number % COMMAND_EVERY == 0 else (by_rest, by_rest, by_form)[number % 3]
    return users.during(lambda _: ("GET", "/api/v1/stats", bearer(full)), way)


def _rotated(server: Server, owner: SignedIn, users: Users, number: int, alert_id: str, code: str) -> Round:
    """Rotate an alert, each once, since it takes 60 events a minute; many senders avoid a 429."""

    def by_form() -> bool:
        return owner.post(server, f"/app/alerts/{alert_id}/rotate") == 303

    def by_command() -> bool:
        return "/p/" in server.flask("alert", "rotate", OWNER, alert_id)

    def event(number_of_all: int) -> Request:
        sender = f"10.{number % 250}.{number_of_all // 250 % 250}.{number_of_all % 250}"
        return "POST", f"/p/{code}", {"X-Forwarded-For": sender}

    return users.during(event, by_command if number % COMMAND_EVERY == 0 else by_form)
