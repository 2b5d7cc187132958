"""Push providers at their worst, one fault and one kind at a time: what the sender sees, and what others notice."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.apns_service import ApnsService
from tests.support.certificates import Certificates, make
from tests.support.fcm_service import FcmService
from tests.support.processes import memory_mb
from tests.support.push_service import Browser as Phone
from tests.support.push_service import PushService
from tests.support.server import OWNER, Server, wait_until
from torture.figure import Figure
from torture.load import MAX_P99_S, Crowd, asked, ms, percentile, send
from torture.misbehaving import Provider, response
from torture.service import (
    FILE,
    PASSWORD,
    SignedIn,
    forget_peak,
    logged_faults,
    rows,
    seed,
    started,
    tell,
    worker_pid,
)

WITHIN_S = 6.0
IN_TIME = f"answered with 200 within {WITHIN_S:.0f} s"
GROWTH_MB = 60.0
KEPT_S = 1.5  # libcurl trusts a persistent connection for a second after its last check
KINDS = ("webpush", "apns", "fcm")
TRANSIENT, DEAD, CONFIGURATION, REFUSED, EITHER = "transient", "dead", "configuration", "refused", "either"
HTML = b"<!DOCTYPE html><html><title>Welcome</title><p>" + b"x" * 9_000
UNREGISTERED = json.dumps({"error": {"code": 404, "details": [{"errorCode": "UNREGISTERED"}]}}).encode()
DEEP = b'{"error":' + b"[" * 8_000
RETRY_AFTER = ("-1", "-99999999999", "0", "999999999999999999999", "1e9", "Wed, 21 Oct 2099 07:28:00 GMT", "garbage")
RETRY_AFTER += ("Wed, 99 Oct 99999 99:99:99 GMT", "Thu, 01 Jan 1970 00:00:00 GMT")
RETRY_AFTER += ("", "\xff", "x" * 9_000, "120", "٣")
BY_METHOD = ("hang", "no_answer", "reset", "reset_in_headers", "reset_in_body", "garbage", "huge_headers")
BY_METHOD += ("endless_continue", "drip_headers", "drip_body", "big_error", "big_chunked")


class Case(NamedTuple):
    """A fault, what it means for the device, and the `kinds` it is tried with."""

    name: str
    mode: bytes | str
    meaning: str
    kinds: tuple[str, ...] = KINDS


class Seen(NamedTuple):
    """The result of one push."""

    status: int
    seconds: float
    outcome: str
    device: dict[str, Any] | None  # None if it was removed
    next_in_s: float | None


def cases() -> Iterator[Case]:
    """All cases."""
    for name in BY_METHOD:
        yield Case(name.replace("_", " "), name, EITHER if name == "huge_headers" else TRANSIENT)
    yield Case("plain text for TLS", "plain_text", TRANSIENT, ("apns", "fcm"))
    yield Case("a handshake that hangs", "silent_handshake", TRANSIENT, ("apns", "fcm"))
    yield Case("refused connection", "refuse", TRANSIENT)
    yield Case("200 with HTML", response(200, HTML, kind="text/html"), EITHER)
    yield Case("204", b"HTTP/1.1 204 X\r\n\r\n", EITHER)
    yield Case("200 with broken gzip", response(200, b"\x1f\x8bxx", "Content-Encoding: gzip"), EITHER)
    for status in (301, 302, 303, 307, 308):
        yield Case(f"redirect {status}", response(status, b"", "Location: http://127.0.0.1:1/"), TRANSIENT)
    for status in (408, 425, 429, 500, 502, 503, 504, 599):
        yield Case(str(status), response(status, HTML, kind="text/html"), TRANSIENT)
    for number, value in enumerate(RETRY_AFTER):
        answer = response(429 if number % 2 else 503, b"{}", f"Retry-After: {value}") if value.isascii() else b""
        answer = answer or response(429, b"{}", "Retry-After: \xd9\xa3")
        yield Case(f"Retry-After: {value[:30]!r}", answer, TRANSIENT)
    yield Case("503 with deep JSON", response(503, DEEP), TRANSIENT)
    yield Case("410", response(410, b'{"reason":"Unregistered"}'), DEAD, ("webpush", "apns"))
    yield Case("404", response(404), DEAD, ("webpush",))
    yield Case("404 UNREGISTERED", response(404, UNREGISTERED), DEAD, ("fcm",))
    yield Case("404 of a proxy", response(404, HTML), CONFIGURATION, ("fcm", "apns"))
    yield Case("401", response(401, DEEP), CONFIGURATION, ("webpush", "fcm"))
    yield Case("403", response(403, b'{"reason":"InvalidProviderToken"}'), CONFIGURATION)
    yield Case("400 BadDeviceToken", response(400, b'{"reason":"BadDeviceToken"}'), REFUSED, ("apns",))


def figures(scratch: Path) -> Iterator[Figure]:
    """Each case with each kind of device, then a healthy account beside a hanging one."""
    certificates = make(scratch)
    context = certificates.context("http/1.1")
    providers = {"webpush": Provider(), "apns": Provider(context), "fcm": Provider(context)}
    with ExitStack() as stack:
        for provider in providers.values():
            stack.enter_context(closing(provider))
        healthy = stack.enter_context(closing(PushService()))
        environ = settings(certificates, providers, healthy)
        mine, other = seed(scratch / "data", [OWNER, "other@example.org"], keys=8, password=PASSWORD)
        server = stack.enter_context(started(scratch / "data", **environ))
        bench = Bench(server, mine.keys, providers, SignedIn(server, OWNER))
        yield from every_case(bench)
        yield from oauth_cases(bench)
        yield untrusted(scratch, bench)
        yield from beside(bench, other.keys, healthy)
        yield logged_faults(server)


def settings(certificates: Certificates, providers: dict[str, Provider], healthy: PushService) -> dict[str, str]:
    """Settings for a service with these three providers."""
    apns, fcm = ApnsService(certificates), FcmService(certificates)  # only for their keys
    told = {
        "WEBPUSH_HOSTS": f"{providers['webpush'].origin},{healthy.origin}",
        "APNS_URL": providers["apns"].origin,
        "APNS_KEY": apns.key_pem,
        "APNS_KEY_ID": apns.key_id,
        "APNS_TEAM_ID": apns.team_id,
        "APNS_TOPIC": apns.topic,
        "FCM_URL": providers["fcm"].origin,
        "FCM_SERVICE_ACCOUNT": json.dumps(fcm.service_account() | {"token_uri": f"{providers['fcm'].origin}/token"}),
        "SSL_CERT_FILE": certificates.ca_file,
    }
    apns.close()
    fcm.close()
    return told


class Bench:
    """A service that pushes to one device at a time."""

    def __init__(self, server: Server, keys: list[str], providers: dict[str, Provider], owner: SignedIn) -> None:
        self.server, self.keys, self.providers, self.owner, self.number = server, keys, providers, owner, 0

    @property
    def key(self) -> str:
        """One of several keys, since each has a rate limit; it changes with the next device."""
        return self.keys[self.number % len(self.keys)]

    def device(self, kind: str, key: str = "") -> str:
        """Add a device of that kind; its id."""
        self.number += 1
        token = f"{self.number:064x}"
        phone = Phone(f"{self.providers['webpush'].origin}/{token}")
        named = {"subscription": phone.subscription} if kind == "webpush" else {"token": token}
        answer = asked(self.server, "POST", "/api/v1/devices", {"kind": kind, **named}, key or self.key)
        return str(answer.json["device"]["id"])

    def remove(self, device: str, key: str = "") -> None:
        """Remove the device and its pending pushes."""
        asked(self.server, "DELETE", f"/api/v1/devices/{device}", key=key or self.key)

    def push(self, kind: str) -> Seen:
        """Push to a new device of that kind; the result."""
        device = self.device(kind)
        answer = send(self.server, self.key, timeout=60)
        listed = asked(self.server, "GET", "/api/v1/devices", key=self.key).json["devices"]
        found = next((one for one in listed if one["id"] == device), None)
        outcome = answer.json["notification"]["status"] if answer.status == 200 else ""
        if found and found["lastError"]:
            found["isShown"] = found["lastError"] in unescape(self.owner.page(self.server, "/app/devices"))
        next_at = "SELECT max(next_attempt_at) FROM delivery JOIN device ON device_seq = seq WHERE id = ?"
        ((next_ms,),) = rows(self.server.data_dir / FILE, next_at, [device])
        self.remove(device)
        return Seen(answer.status, answer.seconds, outcome, found, next_ms / 1000 - time.time() if next_ms else None)

    def recover(self, kind: str) -> bool:
        """Whether a push arrives when the provider works again; this also ends its run of failures."""
        self.providers[kind].mode = self.providers[kind].good
        return any(self.push(kind).outcome == "delivered" for _ in range(2))


def fault_of(case: Case, seen: Seen) -> str:
    """What is wrong with the result; empty if nothing is."""
    if seen.status != 200:
        return f"answered {seen.status}"
    if seen.seconds > WITHIN_S:
        return f"took {seen.seconds:.1f} s"
    stays = seen.device is not None
    right = {
        TRANSIENT: seen.outcome == "pending" and stays,
        CONFIGURATION: seen.outcome == "pending" and stays and bool(seen.device and seen.device.get("isShown")),
        DEAD: seen.outcome == "failed" and not stays,
        REFUSED: seen.outcome == "failed" and stays,
        EITHER: seen.outcome in ("pending", "delivered") and stays,
    }
    if not right[case.meaning]:
        return f"not {case.meaning}: {seen}"
    late = seen.next_in_s is not None and not -1 <= seen.next_in_s <= 48 * 3600 + 60
    return f"next try in {seen.next_in_s} s" if late else ""


def every_case(bench: Bench) -> Iterator[Figure]:
    """Each kind by itself: outcomes, times, memory."""
    pid = worker_pid(bench.server)
    for kind in KINDS:
        assert bench.recover(kind), kind
        forget_peak(pid)
        before, wrong, times, fives = memory_mb(pid), list[str](), list[float](), 0
        wanted = [case for case in cases() if kind in case.kinds]
        for case in wanted:
            seen = misbehave(bench, kind, case)
            times.append(seen.seconds)
            fives += seen.status >= 500
            if fault := fault_of(case, seen):
                wrong.append(f"{kind}, {case.name}: {fault}")
            if not bench.recover(kind):
                wrong.append(f"{kind}, after {case.name}: the next push to a healthy provider does not arrive")
        tell("wrong", *wrong)
        growth = memory_mb(pid, "VmHWM") - before
        what, must = f"{kind}: {len(wanted)} ways to misbehave", f"the outcome of its kind, {IN_TIME}"
        told = f"{len(wrong)} wrong, {fives} of 5xx, the longest {ms(max(times))}"
        yield Figure(what, must, told, not wrong)
        what, told = f"{kind}: growth of the worker's memory, at its peak", f"{growth:.0f} MB over {before:.0f} MB"
        yield Figure(what, f"below {GROWTH_MB:.0f} MB", told, growth < GROWTH_MB)


def misbehave(bench: Bench, kind: str, case: Case) -> Seen:
    """One push to a provider with this fault; `seen.status` is 0 if it was not called at all."""
    provider = bench.providers[kind]
    provider.mode, before = case.mode, provider.connections + provider.asked
    if case.mode == "refuse":
        provider.close()
        seen = bench.push(kind)
        provider.listen_again()
        time.sleep(KEPT_S)
        return seen
    if case.mode in ("plain_text", "silent_handshake"):
        reopened(provider)  # persistent connections are past the handshake
    seen = bench.push(kind)
    was_asked = provider.connections + provider.asked > before
    return seen if was_asked else seen._replace(outcome=f"{seen.outcome}, but the provider was not asked")


def oauth_cases(bench: Bench) -> Iterator[Figure]:
    """Google's OAuth: a token that is refused as too old makes the service request another, which fails."""
    provider, wrong, times = bench.providers["fcm"], list[str](), list[float]()
    bad = [*BY_METHOD[:6], response(200, HTML), response(500), response(200, b'{"access_token": 5}')]
    bad += [response(302, b"", "Location: http://127.0.0.1:1/"), response(429, b"{}", "Retry-After: -5"), "big_error"]
    for mode in bad:
        case = Case(f"oauth {mode!r:.60}", response(401, b"{}"), TRANSIENT)
        provider.mode, provider.oauth_mode = case.mode, mode
        seen = bench.push("fcm")
        times.append(seen.seconds)
        if fault := fault_of(case, seen):
            wrong.append(f"{case.name}: {fault}")
        provider.oauth_mode = "token"
        if not bench.recover("fcm"):
            wrong.append(f"after {case.name}: the next push to a healthy provider does not arrive")
    tell("wrong", *wrong)
    told = f"{len(wrong)} wrong, the longest {ms(max(times))}"
    yield Figure(f"fcm: {len(bad)} ways for OAuth to misbehave", f"pending, {IN_TIME}", told, not wrong)


def untrusted(scratch: Path, bench: Bench) -> Figure:
    """A provider whose certificate is from an unknown authority must get nothing of the push."""
    directory, provider = scratch / "unknown authority", bench.providers["apns"]
    directory.mkdir()
    was, provider.mode = provider.context, provider.good
    provider.context = make(directory).context("http/1.1")
    reopened(provider)
    before = provider.asked
    seen = bench.push("apns")
    sent = provider.asked - before
    provider.context = was
    reopened(provider)
    word = seen.device["lastError"] if seen.device else "removed"
    told = f"{seen.outcome} after {ms(seen.seconds)}, {sent} pushes sent: {word}"
    holds = seen.outcome == "pending" and sent == 0 and "certificate" in word
    return Figure("apns: a certificate that is not trusted", "pending, 0 pushes sent", told, holds)


def reopened(provider: Provider) -> None:
    """Close its connections, and accept new ones."""
    provider.close()
    provider.listen_again()
    time.sleep(KEPT_S)


def beside(bench: Bench, others: list[str], healthy: PushService) -> Iterator[Figure]:
    """16 clients of an account whose provider hangs, sends 100 MB or drips, and another account meanwhile."""
    for mode in ("hang", "big_error", "drip_headers"):
        phone = healthy.browser()
        body = {"kind": "webpush", "subscription": phone.subscription}
        mine = asked(bench.server, "POST", "/api/v1/devices", body, others[0]).json["device"]["id"]
        pid = worker_pid(bench.server)
        forget_peak(pid)
        before = memory_mb(pid)
        for _ in range(3):  # repeat before believing a bad figure
            slow, quick, delivered = hammered(bench, others, mode)
            if percentile(quick, 0.99) < MAX_P99_S:
                break
        growth = memory_mb(pid, "VmHWM") - before
        bench.remove(mine, others[0])
        p99_s, what = percentile(quick, 0.99), f"sends of another account while a provider does this: {mode}"
        own = f"the other's own sends at most {ms(max(slow))}, {len(slow)} of them"
        told = f"p99 {ms(p99_s)}, worst {ms(max(quick))}, {delivered} delivered of {len(quick)}; {own}"
        must = f"p99 < {ms(MAX_P99_S)}, all delivered; the other's own <= {WITHIN_S:.0f} s"
        holds = p99_s < MAX_P99_S and max(slow) <= WITHIN_S and delivered == len(quick)
        yield Figure(what, must, told, holds)
        what, told = f"memory meanwhile: {mode}", f"{growth:.0f} MB"
        yield Figure(what, f"below {GROWTH_MB:.0f} MB", told, growth < GROWTH_MB)


def hammered(bench: Bench, others: list[str], mode: str) -> tuple[list[float], list[float], int]:
    """Latencies of the hanging account's sends and of the healthy one's, and how many of those were delivered."""
    # An origin that failed before is paused for 30 s. Asking all the time would use up the key's requests.
    wait_until(lambda: bench.recover("webpush") or time.sleep(1), 60)
    device, before = bench.device("webpush"), bench.providers["webpush"].asked
    bench.providers["webpush"].mode = mode
    slow = list[float]()

    def hammer(key: str) -> None:
        answer = send(bench.server, key, timeout=60)
        slow.append(answer.seconds if answer.status == 200 else 99.0)
        time.sleep(0.2)

    crowd = Crowd(*[lambda key=key: hammer(key) for key in bench.keys * 2])
    time.sleep(0.5)
    answers = []
    for number in range(300):
        answers.append(send(bench.server, others[number % len(others)]))
        time.sleep(0.01)
    crowd.end()
    assert bench.providers["webpush"].asked > before, "the provider was not asked"
    bench.providers["webpush"].mode = bench.providers["webpush"].good
    bench.remove(device)
    delivered = sum(one.status == 200 and one.json["notification"]["status"] == "delivered" for one in answers)
    return slow, [one.seconds for one in answers], delivered
