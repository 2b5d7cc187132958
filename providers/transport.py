"""Sends many HTTPS requests at once, in the calling thread and under one deadline (libcurl, HTTP/2 where offered).

Each thread keeps its own connections. There are no redirects except of a GET, no proxy from the environment, no
addresses that turn out not to be public once the name is resolved, and no answers beyond 16 KB. A request is sent
again only if the server says that it processed nothing of it. Must not know pushes. libcurl is imported at the first
call: it weighs 10 MB.
"""

import ipaddress
import re
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple

import certifi

MAX_ANSWER_BYTES = 16_384
MAX_CONNECTION_AGE_S = 300
CONNECT_TIMEOUT_MS = 3_000
MAX_REDIRECTS = 5
NOT_SENT = ["Expect:", "Accept:"]  # headers that libcurl would add
MAX_ATTEMPTS = 10  # for a request whose stream the server keeps refusing
GRACE_S = 0.2  # after the deadline, we end the requests that libcurl has not
LEAD_SHARE = 1 / 3  # of the time: the others wait no longer for the request that goes first
REFUSED = re.compile(rb"HTTP/2 stream [0-9]+ refused by server")  # or left out by a GOAWAY, as libcurl says it
TOO_LONG = 23  # libcurl's code when we stop reading a long answer; its status is known all the same
LOST = (16, 28, 52, 55, 56, 65)  # libcurl's codes after which a kept connection is not to be trusted
FAILURES = {  # how libcurl's codes complete the sentence "… could not be reached: …"
    1: "it does not speak HTTP",
    6: "its name could not be resolved",
    7: "no connection could be made",
    28: "it did not answer in time",
    16: "the connection failed",
    35: "no secure connection could be made",
    52: "it closed the connection without an answer",
    55: "the connection was lost",
    56: "the connection was lost",
    47: "it redirects without an end",
    60: "its certificate is not trusted",
    65: "the connection was lost",
    77: "the CA file (SSL_CERT_FILE) cannot be used",
}
# Python's `is_global` accepts these ranges, though an address in one can lead to a private IPv4 address (NAT64, 6to4,
# Teredo, IPv4-translated) or belongs to a deprecated scheme (site-local, IPv4-compatible).
NOT_PUBLIC = tuple(
    ipaddress.ip_network(net)
    for net in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::ffff:0:0:0/96", "fec0::/10", "::/96")
)

_thread = threading.local()
_ca_file = certifi.where()


class Request(NamedTuple):
    """A POST, or another method. `any_address` permits plain HTTP and private addresses: what the owner listed.

    With `leads`, the first of several requests to an origin goes alone, for servers that allow a single stream on a
    connection until they have accepted one request.
    """

    url: str
    headers: Mapping[str, str]
    body: bytes
    any_address: bool = False
    leads: bool = False
    method: str = "POST"


@dataclass
class Reply:
    """A reply: a status with the lines of its head and a body, or else a `failure`."""

    status: int = 0
    head: list[bytes] = field(default_factory=list)
    body: bytes = b""
    failure: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers, names in lower case; read when they are asked for, as most answers say all by their status."""
        parts = [line.decode("latin-1").partition(":") for line in self.head]
        return {name.strip().lower(): value.strip() for name, separator, value in parts if separator}

    def add_body(self, data: bytes) -> int | None:
        """Called by libcurl; None accepts the data, any number but their length ends the transfer."""
        if len(self.body) + len(data) > MAX_ANSWER_BYTES:
            return 0
        self.body += data
        return None


class _Exchange:
    """A request on its way, and its reply.

    libcurl would itself repeat a POST whose kept connection closed without an answer, although the server may have
    processed it, and would repeat all refused streams at once on a fresh connection that allows only one. It is given
    a body that it cannot rewind, which prevents both; refused requests are begun again in `_collect`.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.reply = Reply(failure=FAILURES[28])  # until libcurl reports something else
        self.attempts = 0
        self.told: list[bytes] = []  # libcurl's debug output, with all data, in no order

    def begin(self, timeout_s: float) -> Any:
        """The libcurl handle to start, which ends after `timeout_s`."""
        pycurl, request, reply = _libcurl(), self.request, self.reply
        self.attempts += 1
        self.told.clear()
        is_secure, timeout_ms = request.url.startswith("https"), max(1, int(timeout_s * 1000))  # 0 would mean 300 s
        options = {
            pycurl.URL: request.url,
            pycurl.HTTPHEADER: [f"{name}: {value}" for name, value in request.headers.items()] + NOT_SENT,
            pycurl.POST: 1,
            pycurl.POSTFIELDSIZE: len(request.body),
            pycurl.READFUNCTION: BytesIO(request.body).read,
            pycurl.HEADERFUNCTION: reply.head.append,
            pycurl.WRITEFUNCTION: reply.add_body,
            pycurl.TIMEOUT_MS: timeout_ms,
            pycurl.CONNECTTIMEOUT_MS: min(timeout_ms, CONNECT_TIMEOUT_MS),
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_2TLS,
            # With TLS, wait for a pending connection to share: its handshake tells whether that is possible.
            pycurl.PIPEWAIT: is_secure,
            pycurl.MAXAGE_CONN: MAX_CONNECTION_AGE_S,
            pycurl.TCP_KEEPALIVE: 1,
            pycurl.NOSIGNAL: 1,
            pycurl.FOLLOWLOCATION: 0,
            pycurl.PROXY: "",
            pycurl.CAINFO: _ca_file,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTPS | (pycurl.PROTO_HTTP if request.any_address else 0),
        }
        if is_secure:  # the function is called with a kind, which is a number, and a text
            options |= {pycurl.VERBOSE: 1, pycurl.DEBUGFUNCTION: self.told.insert}
        if not request.any_address:
            options[pycurl.OPENSOCKETFUNCTION] = _open_public_socket
        if request.method == "GET":
            options |= {pycurl.HTTPGET: 1, pycurl.FOLLOWLOCATION: 1, pycurl.MAXREDIRS: MAX_REDIRECTS}
            options[pycurl.REDIR_PROTOCOLS] = options[pycurl.PROTOCOLS]
        elif request.method != "POST":
            options[pycurl.CUSTOMREQUEST] = request.method
        handle = pycurl.Curl()
        for option, value in options.items():
            handle.setopt(option, value)
        return handle

    def end(self, handle: Any, code: int) -> None:
        """Note the reply of the handle, which has ended with this code of libcurl's."""
        reply, status = self.reply, handle.getinfo(_libcurl().RESPONSE_CODE)
        is_accepted = 200 <= status < 300 and reply.head[-1:] == [b"\r\n"]  # whatever became of the body
        if code in (0, TOO_LONG) or is_accepted:
            reply.status, reply.failure = status, None
        else:
            reply.failure = FAILURES.get(code, f"the connection failed (curl error {code})")


@cache
def _libcurl() -> Any:
    """The module of libcurl. To import it again takes longer than to set five options."""
    import pycurl

    return pycurl


def trust(ca_file: str | None) -> None:
    """Trust this CA file, or else certifi's, from now on; closes this thread's connections."""
    global _ca_file
    _ca_file = ca_file or certifi.where()
    _thread.__dict__.clear()


def ca_file() -> str:
    """The file with the authorities that are trusted."""
    return _ca_file


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet."""
    ip = ipaddress.ip_address(address.split("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_global and not ip.is_multicast and not any(ip in net for net in NOT_PUBLIC)


def send_all(requests: list[Request], timeout_s: float) -> list[Reply]:
    """Send all requests and wait for their replies, in the same order, for at most `timeout_s` seconds."""
    now = time.monotonic()
    deadline, lead_ends = now + timeout_s, now + timeout_s * LEAD_SHARE
    multi = _connections()
    exchanges = [_Exchange(request) for request in requests]
    running: dict[Any, _Exchange] = {}
    waiting: dict[_Exchange, list[_Exchange]] = {}
    begin = exchanges
    try:
        while (begin or running or waiting) and now < deadline + GRACE_S:
            for exchange in _leaders(begin, waiting) if waiting or len(begin) > 1 else begin:
                _start(multi, running, exchange, deadline)
            multi.perform()
            ended, begin = _collect(multi, running)
            now = time.monotonic()
            for leader in [one for one in waiting if one in ended or now >= lead_ends] if waiting else ():
                for follower in waiting.pop(leader):
                    _start(multi, running, follower, deadline)
            if not ended and not begin:
                _wait(multi, deadline - now)
                now = time.monotonic()
    finally:
        for handle in running:
            _thread.has_lost_one = True
            multi.remove_handle(handle)
        if _thread.has_lost_one:  # libcurl would send the next requests over a lost or silent connection, too
            del multi
            _close_elsewhere()
    return [exchange.reply for exchange in exchanges]


def get(url: str, timeout_s: float) -> Reply:
    """The answer to one GET of an address that the operator has set: any http or https one."""
    return send_all([Request(url, {}, b"", any_address=True, method="GET")], timeout_s)[0]


def _leaders(begin: list[_Exchange], waiting: dict[_Exchange, list[_Exchange]]) -> list[_Exchange]:
    """The exchanges to start now. Others wait for the first one to their origin: `waiting` has them under it."""
    first: list[_Exchange] = []
    leaders: dict[str, _Exchange] = {}
    for exchange in begin:
        origin = "/".join(exchange.request.url.split("/", 3)[:3])
        if exchange.request.leads and origin in leaders:
            waiting.setdefault(leaders[origin], []).append(exchange)
            continue
        leaders[origin] = exchange
        first.append(exchange)
    return first


def _start(multi: Any, running: dict[Any, _Exchange], exchange: _Exchange, deadline: float) -> None:
    handle = exchange.begin(deadline - time.monotonic())
    if _thread.has_lost_one:
        handle.setopt(_libcurl().FRESH_CONNECT, 1)
    running[handle] = exchange
    multi.add_handle(handle)


def _connections() -> Any:
    if not hasattr(_thread, "multi"):
        pycurl = _libcurl()
        _thread.has_lost_one = False
        _thread.multi = pycurl.CurlMulti()
        _thread.multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
    return _thread.multi


def _close_elsewhere() -> None:
    """Let another thread close this one's connections: libcurl waits meanwhile for a DNS that does not answer."""
    lost = _thread.__dict__.copy()
    _thread.__dict__.clear()
    threading.Thread(target=lost.clear, daemon=True).start()


def _open_public_socket(purpose: int, address: Any) -> Any:
    """Called by libcurl for each connection, after name resolution: no name can lead to a private address."""
    host = address.addr[0]
    if not is_public(host.decode() if isinstance(host, bytes) else host):
        return _libcurl().SOCKET_BAD
    return socket.socket(address.family, address.socktype, address.protocol)


def _collect(multi: Any, running: dict[Any, _Exchange]) -> tuple[list[_Exchange], list[_Exchange]]:
    """Take the ended exchanges out of `running`; returns the ones with a reply, and the ones to begin again."""
    ended: list[_Exchange] = []
    again: list[_Exchange] = []
    _, succeeded, failed = multi.info_read(len(running))
    for handle, code in [(handle, 0) for handle in succeeded] + [(handle, code) for handle, code, _ in failed]:
        exchange = running.pop(handle)
        multi.remove_handle(handle)
        exchange.end(handle, code)
        is_unanswered = exchange.reply.failure and not exchange.reply.head
        # Only the debug output tells a refused stream from a lost one; it also holds the words of an answer.
        if is_unanswered and any(map(REFUSED.match, exchange.told)) and exchange.attempts < MAX_ATTEMPTS:
            again.append(exchange)
            continue
        ended.append(exchange)
        _thread.has_lost_one = _thread.has_lost_one or code in LOST
    return ended, again


def _wait(multi: Any, left_s: float) -> None:
    """Sleep until a socket is ready or one of libcurl's own timers expires; `select` alone would oversleep those."""
    timer_ms = multi.timeout()
    multi.select(min(max(left_s, 0.001), 0.1, timer_ms / 1000 if timer_ms >= 0 else 1))
