"""What `torture.scale` asks both services all the time, and what they promised, to be looked up at the end."""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import Any, NamedTuple

from torture.load import SEND, Answer, asked, happen, measure, new_key, send, stored_id, together
from torture.scale_servers import Site
from torture.service import ADDRESS, Seeded, SignedIn

REST_S = 0.02  # between two requests of a thread: the machine must not be the bottleneck
MANY = 100
LEARNED_WITHIN_S = 2.0
ROTATED_EVERY_S = 1.5  # an alert takes 60 events a minute


class Fault(NamedTuple):
    """A time in which something was away, on the monotonic clock: surely from `away` to `back`."""

    name: str
    began: float
    away: float
    back: float
    ended: float


class Probe(NamedTuple):
    """A request whose duration matters."""

    what: str
    answer: Answer


class Load:
    """The promises, and the threads' works. Each work is repeated until the end."""

    def __init__(self, site: Site, accounts: list[Seeded]) -> None:
        self.site, self.accounts = site, accounts
        self.numbers, self.key_turn = itertools.count(), itertools.count()
        self.ids: dict[str, list[str]] = {one.email: [] for one in accounts}  # acknowledged sends and events
        self.batches: list[str] = []
        self.probes: list[Probe] = []
        self.idempotent: dict[str, set[str]] = {}  # the title, and the ids that both services answered
        self.polled: set[str] = set()
        self.alive: list[str] = []  # keys that were revoked and answered all the same
        self.ended = 0
        self.old_codes: list[int] = []  # what a code was answered after it had been rotated
        self.owner = SignedIn(site.services[0], accounts[4].email)
        self.to_phone: dict[str, float] = {}  # by text: when it was acknowledged
        self.learned: list[tuple[str, float, float]] = []  # what, when, after how long
        self.faults: list[Fault] = []
        self.fault_began: tuple[str, float] | None = None

    # --- sending --------------------------------------------------------------------------------------------

    def key_of(self, account: Seeded) -> str:
        """One of the keys of an account, in turn."""
        return account.keys[next(self.key_turn) % len(account.keys)]

    def note(self, what: str, answer: Answer) -> Answer:
        """Keep how long an answer took."""
        self.probes.append(Probe(what, answer))
        time.sleep(REST_S)
        return answer

    def send(self) -> None:
        """Send with any account at any service."""
        account = random.choice(self.accounts[:4])
        answer = self.note("send", send(self.site.any(), self.key_of(account), f"sent {next(self.numbers)}"))
        if id_ := stored_id(answer):
            self.ids[account.email].append(id_)

    def happen(self) -> None:
        """Let an alert's event come."""
        account = random.choice(self.accounts[:4])
        answer = self.note("event", happen(self.site.any(), random.choice(account.codes[1:])))
        if id_ := stored_id(answer):
            self.ids[account.email].append(id_)

    def measure(self) -> None:
        """Store a batch of metrics."""
        project = f"project-{next(self.numbers)}"
        account = self.accounts[0]
        answer = self.note("metrics", measure(self.site.any(), self.key_of(account), project))
        if answer.status == 200:
            self.batches.append(project)

    def read(self) -> None:
        """Read the counters and the newest page."""
        account = random.choice(self.accounts[:4])
        path = random.choice(("/api/v1/stats", "/api/v1/notifications?limit=20"))
        self.note("read", asked(self.site.any(), "GET", path, key=self.key_of(account)))

    def look(self) -> None:
        """Ask both for their health."""
        for server in self.site.services:
            self.note("healthz", asked(server, "GET", "/healthz"))
        time.sleep(0.1)

    # --- Idempotency-Key ------------------------------------------------------------------------------------

    def send_at_both(self) -> None:
        """The same request with one Idempotency-Key at both services at once, until both say what they stored."""
        number, key = next(self.numbers), self.key_of(self.accounts[1])
        title, ids = f"once {number}", set[str]()
        together([lambda place=place: self._insist(place, key, title, ids) for place in (0, 1)])
        self.idempotent[title] = ids

    def _insist(self, place: int, key: str, title: str, ids: set[str]) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            more = {"headers": {"Idempotency-Key": title.replace(" ", "-")}}
            answer = asked(self.site.services[place], "POST", SEND, {"title": title, "body": "b"}, key, **more)
            if id_ := stored_id(answer):
                ids.add(id_)
                return
            time.sleep(0.05 if answer.status == 409 else 0.3)

    # --- reading what others wrote --------------------------------------------------------------------------

    def poll(self) -> None:
        """Read from the top down to the newest that was seen before: what commits late must still be met."""
        account, newest = self.accounts[0], list[str]()
        cursor = ""
        while True:
            path = f"/api/v1/notifications?limit={MANY}&cursor={cursor}"
            answer = asked(self.site.any(), "GET", path, key=self.key_of(account))
            if answer.status != 200:
                return time.sleep(0.2)  # what was read is not kept: it begins anew
            page = [one["id"] for one in answer.json["notifications"]]
            newest += page
            cursor = answer.json["pagination"]["nextCursor"]
            if answer.json["pagination"]["isDone"] or any(id_ in self.polled for id_ in page):
                break
        self.polled.update(newest)
        return time.sleep(0.05)

    def revoke(self) -> None:
        """Make a key at one service, use it at both, revoke it at one: the other must know at once."""
        one, other = random.sample(self.site.services, 2)
        path, key = "/api/v1/api-keys", self.key_of(self.accounts[2])
        new = new_key(one, key, "short-lived")
        time.sleep(0.1)
        if not new:
            return
        asked(other, "GET", "/api/v1/stats", key=new["fullKey"])
        if asked(one, "DELETE", f"{path}/{new['id']}", key=key).status == 200:
            self.ended += 1
            for server in (other, one):
                if asked(server, "GET", "/api/v1/stats", key=new["fullKey"]).status == 200:
                    self.alive.append(new["id"])

    def rotate(self) -> None:
        """Rotate an alert's code at one service and let an event come at both: the other must know at once."""
        one, other = random.sample(self.site.services, 2)
        path, number = f"/app/alerts/{self.accounts[4].alerts[0]}", next(self.numbers)
        sender = {"X-Forwarded-For": f"10.1.{number // 250 % 250}.{number % 250}"}  # who tries many codes is refused
        with suppress(OSError, HTTPException):  # the service was killed
            code = ADDRESS.search(self.owner.page(one, f"{path}?tab=connect"))
            if code and happen(other, code[1]).status == 200 and self.owner.post(one, f"{path}/rotate") == 303:
                answers = [happen(server, code[1], headers=sender).status for server in (other, one)]
                self.old_codes += [status for status in answers if status == 200 or 400 <= status < 500]
        time.sleep(ROTATED_EVERY_S)

    def wait(self) -> None:
        """Wait at one service for an acknowledgement that another one takes."""
        one, other = random.sample(self.site.services, 2)
        key = self.key_of(self.accounts[3])
        ring = {"title": "ring", "body": "b", "acknowledge": {"everyS": 10_800, "forS": 10_800}}
        id_ = stored_id(asked(one, "POST", SEND, ring, key))
        if not id_:
            return time.sleep(0.2)
        path, ended = f"/api/v1/notifications/{id_}", list[float]()

        def wait() -> None:
            answer = asked(one, "GET", f"{path}?wait=20", key=key)
            told = answer.status == 200 and answer.json["notification"]["acknowledge"]["state"] == "acknowledged"
            ended.extend([time.monotonic()] if told else [])

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(random.uniform(0.2, 1.5))
        began = time.monotonic()
        if asked(other, "POST", f"{path}/acknowledge", None, key).status == 200:
            answered = time.monotonic()
            waiting.join()
            self.learned += [("wait", began, ended[0] - answered)] if ended else []
        return waiting.join()

    def send_to_phone(self, key: str) -> None:
        """Send at one service to the phone that listens at the other."""
        text = f"to the phone {next(self.numbers)}"
        if send(self.site.services[1], key, "t", text).status == 200:
            self.to_phone[text] = time.monotonic()
        time.sleep(0.5)

    # --- what is away ---------------------------------------------------------------------------------------

    def during(self, name: str, goes: Callable[[], Any], for_s: float = 0.0, comes: Callable[[], Any] = bool) -> None:
        """Let something go away, and come back after that time; note when."""
        self.fault_began = (name, time.monotonic())
        goes()
        away = time.monotonic()
        time.sleep(for_s)
        back = time.monotonic()
        comes()
        self.faults.append(Fault(*self.fault_began, away, back, time.monotonic()))
        self.fault_began = None

    def is_calm(self, began: float, ended: float, before_s: float = 8.0) -> bool:
        """Whether nothing was away in this time, nor shortly before."""
        spans = [(one.began, one.ended) for one in self.faults]
        spans += [(self.fault_began[1], ended)] if self.fault_began else []
        return not any(start <= ended and began <= end + before_s for start, end in spans)


def quota(site: Site, email: str) -> tuple[Counter[int], list[int]]:
    """300 requests of 12 threads at both services with a starter's new key: statuses, and what each said is left."""
    key = site.services[0].flask("key", "create", email, f"quota {time.monotonic_ns()}").strip()
    answers = list[tuple[int, int]]()

    def ask(place: int) -> None:
        for _ in range(25):
            answer = site.services[place % 2].get("/api/v1/stats", key)
            answers.append((answer.status, int(answer.headers["X-RateLimit-Remaining"])))

    together([lambda place=place: ask(place) for place in range(12)])
    return Counter(status for status, _ in answers), sorted(left for status, left in answers if status == 200)
