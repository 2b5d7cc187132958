"""CPU of handing a push to its provider: the request, its encryption, HTTP/2 over TLS, and reading the answer.

The provider answers at once, in its own process (`provider.py`); nothing is stored. Eight threads push at the
same time, each over its own connection, as those of the service do.
"""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bench import measure, stand_in
from bench.measure import Row, low_cpu_us
from tests.support.certificates import key_pem
from tests.support.push_service import Browser

GOALS_US = {"apns": (200, 150), "fcm": (200, 150), "webpush": (350, 250)}
AT_ONCE = 8
BATCHES, PUSHES = 40, 5  # interleaved batches of each kind, and pushes of each thread in one
TITLE, BODY = json.loads(measure.MESSAGE).values()


def rows(scratch: Path) -> Iterator[Row]:
    """A row for each provider."""
    cores = os.sched_getaffinity(0)
    with stand_in.running(scratch, delay_ms=0) as service:
        measure.keep_off_service(service["pid"])
        measure.keep_with_service(os.getpid())  # on one core, as the service is
        try:
            seen = _low_cpu_us(_works(service))
        finally:
            os.sched_setaffinity(0, cores)
    for kind, (must, moonshot) in GOALS_US.items():
        yield measure.at_most(f"CPU of handing over a push, {kind}", seen[kind], must, moonshot, " µs")


def _settings(url: str, ca_file: str) -> dict[str, str]:
    """The environment of a service that pushes everything to this address."""
    account = {
        "project_id": "pocketbell",
        "private_key": key_pem(rsa.generate_private_key(65537, 2048)).decode(),
        "client_email": "sender@pocketbell.example",
        "token_uri": f"{url}/token",
    }
    apns = {"KEY": key_pem(ec.generate_private_key(ec.SECP256R1())).decode(), "TOPIC": "com.example.pocketbell"}
    apns |= {"URL": url, "KEY_ID": "KEY1234567", "TEAM_ID": "TEAM123456"}
    others = {"FCM_URL": url, "FCM_SERVICE_ACCOUNT": json.dumps(account), "WEBPUSH_HOSTS": url}
    return {f"APNS_{name}": value for name, value in apns.items()} | others | {"SSL_CERT_FILE": ca_file}


def _works(service: dict[str, Any]) -> dict[str, Callable[[], None]]:
    """For each kind a function that pushes a message to a device, and raises if it was not delivered."""
    import config
    import push
    from providers.base import Message, Outcome, Push
    from providers.webpush_crypto import new_vapid_key
    from wire.notification import Content

    vapid_key, browser = new_vapid_key(), Browser(f"{service['url']}/push/1").subscription
    push.configure(config.load(_settings(service["url"], service["ca_file"])), lambda: vapid_key)
    addresses: dict[str, tuple[str, ...]] = {
        "apns": ("5e" * 32,),
        "fcm": ("d" * 22 + ":APA91b" + "x" * 134,),
        "webpush": (browser["endpoint"], browser["keys"]["p256dh"], browser["keys"]["auth"]),
    }
    content, id_ = Content(f"MCP - {TITLE}", BODY), "01a20698e55b72a8ad3d83af39634772"

    def pushing(kind: str, token: str, *keys: str) -> Callable[[], None]:
        def work() -> None:
            message = Message(id_, content, f"/app/notifications/{id_}")
            (answer,) = push.send([Push(kind, token, message, "owner@example.org", *keys)], 4.5)
            assert answer.outcome is Outcome.DELIVERED, answer

        return work

    return {kind: pushing(kind, *address) for kind, address in addresses.items()}


def _repeat(work: Callable[[], None]) -> None:
    for _ in range(PUSHES):
        work()


def _low_cpu_us(works: dict[str, Callable[[], None]]) -> dict[str, float]:
    """This process's CPU a push, of each kind."""
    with ThreadPoolExecutor(AT_ONCE) as pool:

        def batch(work: Callable[[], None]) -> None:
            for done in [pool.submit(_repeat, work) for _ in range(AT_ONCE)]:
                done.result()

        seen = low_cpu_us({kind: partial(batch, work) for kind, work in works.items()}, BATCHES, 1)
    return {kind: us / (AT_ONCE * PUSHES) for kind, us in seen.items()}
