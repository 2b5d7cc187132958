"""Sign-ins crowded by strangers from many addresses, or by one account in a loop. Others must still get in."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

from tests.support.server import Server
from torture.client import PASSWORD, Answer, Browser, account, command, counted, ms, started
from torture.figure import Figure
from torture.flood import Flood, Others, alone

OWNER, ORDINARY = "owner@example.org", "ordinary@example.org"
CONNECTIONS, TRIES, PAUSE_S = 8, 8, 0.3
MAX_WAIT_S = 5.0
MAX_P99_S = 0.5
FORM = "application/x-www-form-urlencoded"


def figures(scratch: Path) -> Iterator[Figure]:
    """Each crowd on its own service."""
    with started(scratch, "strangers") as server:
        emails = [f"made-up-{number}@example.org" for number in range(400)]
        yield from crowded(
            server, "8 connections of strangers from changing addresses", emails, "a wrong password", 1
        )
    with started(scratch, "loop") as server:
        what = "8 connections of one account from one address with the right password"
        yield from crowded(server, what, [ORDINARY] * 400, PASSWORD, 0)


def crowded(server: Server, what: str, emails: list[str], password: str, step: int) -> Iterator[Figure]:
    """Known browsers and links during the crowd; `step` is how fast the crowd's addresses change."""
    key = account(server, OWNER)
    account(server, ORDINARY)
    known = Browser(server.port).sign_in(OWNER)
    links = invited(server)
    before = alone(server, key)
    with Others(server, key) as others, crowd(server, emails, password, step).going_on() as answers:
        time.sleep(2)
        yield came_in(f"{what}: a known browser", lambda _: known_browser(known))
        yield came_in(f"{what}: a one-time link", lambda number: use(server, links[number]))
        if not step:
            yield came_in(f"{what}: a new browser from another address", lambda n: new_browser(server, n))
    told = f"the crowd: {counted(answers.elements())}"
    yield Figure(what, "no 5xx for it", told, max(answers, default=0) < 500)
    told = f"{others.told}, {counted(others.statuses.elements())}; {before}"
    holds = others.all_stored and others.p99_s < MAX_P99_S
    yield Figure(what, f"others' sends stored, below {ms(MAX_P99_S)} at p99", told, holds)


def crowd(server: Server, emails: list[str], password: str, step: int) -> Flood:
    """Keep sending sign-ins, all with the cookie of one page."""
    browser = Browser(server.port)
    browser.get("/app/login")
    requests = []
    for number, email in enumerate(emails):
        sender = f"10.{step * number // 200}.{step * number % 200}.1"
        headers = {"Content-Type": FORM, "Cookie": browser.cookie, "X-Forwarded-For": sender}
        form = urlencode({"csrf": browser.csrf, "email": email, "password": password})
        requests.append(("/app/login", headers, form))
    return Flood(server.port, CONNECTIONS, requests)


def came_in(what: str, way: Callable[[int], Answer]) -> Figure:
    """Try one way to sign in several times."""
    statuses, times = list[int](), list[float]()
    for number in range(TRIES):
        time.sleep(PAUSE_S)
        began = time.perf_counter()
        statuses.append(way(number).status)
        times.append(time.perf_counter() - began)
    holds = set(statuses) == {303} and max(times) < MAX_WAIT_S
    return Figure(
        what, f"in within {ms(MAX_WAIT_S)}, each time", f"{counted(statuses)}; at most {ms(max(times))}", holds
    )


def known_browser(browser: Browser) -> Answer:
    """Sign in from a browser that signed in before."""
    browser.get("/app/login")
    return browser.form("/app/login", email=OWNER, password=PASSWORD)


def new_browser(server: Server, number: int) -> Answer:
    """Sign in from an unknown address and browser."""
    browser = Browser(server.port)
    browser.get("/app/login")
    form = urlencode({"csrf": browser.csrf, "email": OWNER, "password": PASSWORD})
    headers = {"Content-Type": FORM, "Cookie": browser.cookie, "X-Forwarded-For": f"198.51.100.{number}"}
    began = time.perf_counter()
    answer = server.request("POST", "/app/login", form, headers)
    return Answer(answer.status, answer.getheaders(), answer.text.encode(), time.perf_counter() - began)


def invited(server: Server) -> list[str]:
    """One-time links of accounts without a password."""
    made = [command(server, "account", "create", f"invited-{number}@example.org").stdout for number in range(TRIES)]
    return [one.strip().partition(f":{server.port}")[2] for one in made]


def use(server: Server, path: str) -> Answer:
    """Set a password with a one-time link."""
    browser = Browser(server.port)
    browser.get(path)
    return browser.form(path, password=PASSWORD, time_zone="UTC")
