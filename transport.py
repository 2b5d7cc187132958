"""Many HTTPS requests at once, in the calling thread, under one deadline (libcurl, HTTP/2 where offered).

Each thread keeps its own connections. No redirects, no proxy from the environment, no address that is not public
once the name is resolved, no answer beyond 16 KB; a request is never sent twice. Must not know what a push is.
libcurl is imported at the first call: it weighs 10 MB.
"""

import ipaddress
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import certifi

MAX_ANSWER_BYTES = 16_384
MAX_CONNECTION_AGE_S = 300
CONNECT_TIMEOUT_MS = 3_000
TOO_LONG = 23  # libcurl's word for our refusal of a longer answer: its status is known all the same
FAILURES = {
    6: "its name could not be resolved",
    7: "no connection could be made",
    28: "it did not answer in time",
    35: "no secure connection could be made",
    60: "its certificate is not trusted",
    77: "the CA file (SSL_CERT_FILE) cannot be used",
}
NOT_PUBLIC = tuple(  # `is_global` says yes to these ways round: NAT64, 6to4, Teredo, and two that are of the past
    ipaddress.ip_network(net)
    for net in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10", "::/96")
)

_thread = threading.local()
_ca_file = certifi.where()


@dataclass(frozen=True)
class Request:
    """A POST. `any_address` permits plain HTTP and addresses that are not public: for origins the owner listed."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    any_address: bool = False


@dataclass
class Reply:
    """What came back: a status with headers (names in lower case) and body, or `failure`, the end of a sentence."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str | None = None

    def add_header(self, line: bytes) -> None:
        """For libcurl, line by line."""
        name, separator, value = line.decode("latin-1").partition(":")
        if separator:
            self.headers[name.strip().lower()] = value.strip()

    def add_body(self, data: bytes) -> int | None:
        """For libcurl; any other number than the data's length ends the transfer."""
        if len(self.body) + len(data) > MAX_ANSWER_BYTES:
            return 0
        self.body += data
        return None


def trust(ca_file: str | None) -> None:
    """Use this CA file for connections made from now on; certifi's when None."""
    global _ca_file
    _ca_file = ca_file or certifi.where()


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet's."""
    ip = ipaddress.ip_address(address.split("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_global and not ip.is_multicast and not any(ip in net for net in NOT_PUBLIC)


def send_all(requests: list[Request], timeout_s: float) -> list[Reply]:
    """Send all requests and wait for their replies, in the same order, for at most `timeout_s` seconds."""
    import pycurl

    deadline = time.monotonic() + timeout_s
    multi = _connections()
    replies = [Reply() for _ in requests]
    running: dict[Any, Reply] = {}
    try:
        for request, reply in zip(requests, replies, strict=True):
            handle = _handle(request, reply, deadline - time.monotonic())
            running[handle] = reply
            multi.add_handle(handle)
        while running and time.monotonic() < deadline + 0.2:
            while multi.perform()[0] == pycurl.E_CALL_MULTI_PERFORM:
                pass
            if not _collect(multi, running):
                _wait(multi, deadline)
    finally:
        for handle, reply in running.items():
            reply.failure = FAILURES[28]
            _drop(multi, handle)
    return replies


def _connections() -> Any:
    import pycurl

    if not hasattr(_thread, "multi"):
        _thread.multi = pycurl.CurlMulti()
        _thread.multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
    return _thread.multi


def _handle(request: Request, reply: Reply, timeout_s: float) -> Any:
    import pycurl

    handle = pycurl.Curl()
    set_option = handle.setopt
    set_option(pycurl.URL, request.url)
    set_option(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in request.headers.items()] + ["Expect:"])
    # libcurl repeats a POST on a kept connection that closes without an answer, unless it cannot rewind the body
    set_option(pycurl.POST, 1)
    set_option(pycurl.POSTFIELDSIZE, len(request.body))
    set_option(pycurl.READFUNCTION, BytesIO(request.body).read)
    set_option(pycurl.HEADERFUNCTION, reply.add_header)
    set_option(pycurl.WRITEFUNCTION, reply.add_body)
    timeout_ms = max(1, int(timeout_s * 1000))  # 0 would mean libcurl's 300 s
    set_option(pycurl.TIMEOUT_MS, timeout_ms)
    set_option(pycurl.CONNECTTIMEOUT_MS, min(timeout_ms, CONNECT_TIMEOUT_MS))
    set_option(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
    # wait for a connection on its way that may take this one too: only where TLS tells early whether it does
    set_option(pycurl.PIPEWAIT, request.url.startswith("https"))
    set_option(pycurl.MAXAGE_CONN, MAX_CONNECTION_AGE_S)
    set_option(pycurl.TCP_KEEPALIVE, 1)
    set_option(pycurl.NOSIGNAL, 1)
    set_option(pycurl.FOLLOWLOCATION, 0)
    set_option(pycurl.PROXY, "")
    set_option(pycurl.CAINFO, _ca_file)
    if request.any_address:
        set_option(pycurl.PROTOCOLS, pycurl.PROTO_HTTPS | pycurl.PROTO_HTTP)
    else:
        set_option(pycurl.PROTOCOLS, pycurl.PROTO_HTTPS)
        set_option(pycurl.OPENSOCKETFUNCTION, _open_public_socket)
    return handle


def _open_public_socket(purpose: int, address: Any) -> Any:
    """Runs after name resolution, before each connection: no name can lead to an address that is not public."""
    import pycurl

    host = address.addr[0]
    if not is_public(host.decode() if isinstance(host, bytes) else host):
        return pycurl.SOCKET_BAD
    return socket.socket(address.family, address.socktype, address.protocol)


def _collect(multi: Any, running: dict[Any, Reply]) -> int:
    """Take what has ended out of `running`; answers with how many those were."""
    import pycurl

    _, succeeded, failed = multi.info_read(len(running))
    for handle in succeeded:
        running.pop(handle).status = handle.getinfo(pycurl.RESPONSE_CODE)
        _drop(multi, handle)
    for handle, code, _ in failed:
        reply = running.pop(handle)
        if code == TOO_LONG:
            reply.status = handle.getinfo(pycurl.RESPONSE_CODE)
        else:
            reply.failure = FAILURES.get(code, f"the connection failed (curl error {code})")
        _drop(multi, handle)
    return len(succeeded) + len(failed)


def _drop(multi: Any, handle: Any) -> None:
    multi.remove_handle(handle)
    handle.close()


def _wait(multi: Any, deadline: float) -> None:
    """Until there is something to do: a socket, one of libcurl's own timers (select alone oversleeps them)."""
    timer_ms = multi.timeout()
    left = max(deadline - time.monotonic(), 0.001)
    multi.select(min(left, 0.1, timer_ms / 1000 if timer_ms >= 0 else 1))
