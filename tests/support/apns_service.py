"""A stand-in for APNs: HTTP/2 over TLS on loopback, as strict as Apple, and as badly behaved as it is told to be.

A push that Apple would refuse is refused whatever was scripted, so a test that sees its answer has seen a valid push.
"""

import heapq
import json
import re
import secrets
import socket
import ssl
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, Event, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hyperframe.frame import Frame, GoAwayFrame, SettingsFrame

from tests.support.certificates import Certificates, key_pem
from tests.support.listener import stop_listening

MAX_BODY = 4096
MAX_STREAMS = 1000  # once a connection has had its first 200; one at a time until then
TOKEN_AGE_S, TOKEN_INTERVAL_S, TOLERANCE_S = 3600, 1200, 60
REASONS = {410: "Unregistered", 413: "PayloadTooLarge", 429: "TooManyRequests"}
REASONS |= {403: "InvalidProviderToken", 500: "InternalServerError", 503: "ServiceUnavailable"}
SHOWN = (200, "goaway", 0, "hang")  # the phone may have shown these: a client that repeats one makes a duplicate


class Message(NamedTuple):
    body: dict
    headers: dict[str, str]


@dataclass
class Answer:
    status: int | str = 200
    reason: str = ""
    after_s: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Phone:
    """A device: what it has received, and how its next pushes are answered."""

    token: str
    messages: list[Message] = field(default_factory=list)  # those answered with 200
    pushes: list[dict[str, str]] = field(default_factory=list)  # headers of every push SEEN, whatever the answer
    answers: list[Answer] = field(default_factory=list)

    def then(self, status: int | str, reason: str = "", after_s: float = 0.0, **headers: str) -> "Phone":
        """Answer the next push like this: with a status, or in one of these ways.

        0 closes the connection without an answer, "hang" never answers, "refuse" resets with REFUSED_STREAM,
        "goaway" says GOAWAY, answers all that was sent, then closes; "goaway-hard" says that it never saw this one.
        """
        named = {name.lower().replace("_", "-"): value for name, value in headers.items()}
        self.answers.append(Answer(status, reason or REASONS.get(status, ""), after_s, named))
        return self


class ApnsService:
    topic, team_id, key_id = "com.example.pocketbell", "TEAM123456", "KEY1234567"

    def __init__(self, certificates: Certificates, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.key_pem = key_pem(self.key).decode()  # the contents of the .p8 file
        self.lock = threading.RLock()
        self.open: set[ssl.SSLSocket] = set()
        self.forget()
        self.context = certificates.context("h2")
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.url = f"https://127.0.0.1:{self.port}"  # the port of localhost may be another server's, on ::1
        threading.Thread(target=self._accept, daemon=True).start()
        self.settings = {"APNS_URL": self.url, "APNS_KEY": self.key_pem, "APNS_KEY_ID": self.key_id}
        self.settings |= {"APNS_TEAM_ID": self.team_id, "APNS_TOPIC": self.topic}

    def forget(self) -> None:
        """Start afresh with the same key: no phones, no connections, nothing counted or scripted."""
        self.hang_up()
        self.phones: dict[str, Phone] = {}
        self.tokens: dict[str, dict] = {}  # distinct provider tokens accepted, with their claims
        self.shown: Counter[tuple[str, str]] = Counter()  # by device and id, what the phone may have shown
        self.connections = self.seen = self.excess = 0  # excess: streams beyond MAX_CONCURRENT_STREAMS
        self.after_s = 0.0  # latency of every answer
        self.first_streams = 1  # MAX_CONCURRENT_STREAMS of a connection until its first 200
        self.limits_tokens = False  # more than one new provider token in 20 minutes: 429
        self.injected: list[tuple[int, Answer]] = []

    def phone(self) -> Phone:
        """A new device."""
        phone = Phone(secrets.token_hex(32))
        self.phones[phone.token] = phone
        return phone

    def inject(self, status: int | str, every: int) -> None:
        """Answer every Nth push to any phone like this, unless its phone has a script."""
        self.injected.append((every, Answer(status, REASONS.get(status, ""))))

    @property
    def duplicates(self) -> int:
        """How many pushes were repeated although the phone may already have shown them."""
        return sum(times - 1 for times in self.shown.values())

    def hang_up(self) -> None:
        """Cut all connections without a word."""
        for connection in list(self.open):
            with suppress(OSError):  # not its own method: its thread is reading
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def close(self) -> None:
        stop_listening(self.listener)
        self.hang_up()

    def receive(self, headers: list[tuple[str, str]], body: bytes) -> Answer:
        """Verify and keep one push, and return the answer to it."""
        named = dict(headers)
        token = named[":path"].removeprefix("/3/device/").lower()
        with self.lock:
            self.seen += 1
            phone = self.phones.get(token)
            if phone:
                phone.pushes.append(named)
            wrong = self._check_request(headers, token, body) or self._check_token(named.get("authorization", ""))
            if wrong or not phone:
                return Answer(*wrong or (400, "BadDeviceToken"))  # as for anything else than 64 to 200 digits
            answer = phone.answers.pop(0) if phone.answers else self._injected()
            message = Message(json.loads(body), named)
            if answer.status in SHOWN:
                self.shown[token, str(message.body.get("id") or body)] += 1
            if answer.status in (200, "goaway"):
                phone.messages.append(message)
            return answer

    def _injected(self) -> Answer:
        return next((answer for every, answer in self.injected if self.seen % every == 0), Answer())

    def _check_request(self, headers: list[tuple[str, str]], token: str, body: bytes) -> tuple[int, str] | None:
        named = dict(headers)
        checks = (
            (named[":method"] == "POST", 405, "MethodNotAllowed"),
            (named[":path"].startswith("/3/device/"), 404, "BadPath"),
            (token != "", 400, "MissingDeviceToken"),
            (len(named) == len(headers), 400, "DuplicateHeaders"),
            ("apns-topic" in named, 400, "MissingTopic"),
            (named.get("apns-topic") == self.topic, 400, "DeviceTokenNotForTopic"),
            (named.get("apns-push-type") == "alert", 400, "InvalidPushType"),
            (named.get("apns-priority", "10") in ("1", "5", "10"), 400, "BadPriority"),
            (re.fullmatch("[0-9]{1,10}", named.get("apns-expiration", "0")), 400, "BadExpirationDate"),
            (len(named.get("apns-collapse-id", "").encode()) <= 64, 400, "BadCollapseId"),
            (body, 400, "PayloadEmpty"),
            (len(body) <= MAX_BODY, 413, "PayloadTooLarge"),
            (_has_aps(body), 400, "BadPayload"),  # Apple documents no reason for this
        )
        return next(((status, reason) for right, status, reason in checks if not right), None)

    def _check_token(self, authorization: str) -> tuple[int, str] | None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return 403, "MissingProviderToken"
        claims = self.tokens.get(token) or self._verify(token)
        if claims is None:
            return 403, "InvalidProviderToken"
        now = self.clock()
        if not now - TOKEN_AGE_S <= claims["iat"] <= now + TOLERANCE_S:
            return 403, "ExpiredProviderToken"
        if token not in self.tokens:
            newest = max((known["since"] for known in self.tokens.values()), default=float("-inf"))
            if self.limits_tokens and now - newest < TOKEN_INTERVAL_S:
                return 429, "TooManyProviderTokenUpdates"
            self.tokens[token] = claims | {"since": now}
        return None

    def _verify(self, token: str) -> dict | None:
        try:
            options = {"require": ["iss", "iat"], "verify_iat": False, "verify_exp": False, "verify_nbf": False}
            claims = jwt.decode(token, self.key.public_key(), ["ES256"], options, issuer=self.team_id)
            named = jwt.get_unverified_header(token).get("kid") == self.key_id
        except jwt.InvalidTokenError:
            return None
        return claims if named and type(claims["iat"]) is int else None

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            with self.lock, suppress(OSError):  # gone already
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                secure = self.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
                self.connections += 1
                self.open.add(secure)
                threading.Thread(target=_Connection(self, secure).run, daemon=True).start()


class _Connection:
    """One client's connection, in a thread of its own; its streams overlap."""

    def __init__(self, service: ApnsService, secure: ssl.SSLSocket) -> None:
        self.service, self.socket = service, secure
        self.http = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.http.local_settings = Settings(client=False)  # without a limit: h2 would end the connection over it
        self.limit = service.first_streams
        self.streams: dict[int, tuple[list[tuple[str, str]], bytearray]] = {}  # those not answered
        self.due: list[tuple[float, int, Answer]] = []
        self.taken = 0  # the highest stream whose push counts
        self.last: int | None = None  # the last stream to be answered, after GOAWAY

    def run(self) -> None:
        with suppress(OSError, ProtocolError):
            self.socket.settimeout(10)
            self.socket.do_handshake()
            if self.socket.selected_alpn_protocol() == "h2":
                self._serve()
        with self.service.lock:
            self.service.open.discard(self.socket)
        self.socket.close()

    def _serve(self) -> None:
        self.http.initiate_connection()
        self.http.clear_outbound_data_buffer()  # its SETTINGS; these are Apple's:
        self._say(SettingsFrame(settings={SettingCodes.MAX_CONCURRENT_STREAMS: self.limit}))
        while self.last is None or self.due or any(stream <= self.last for stream in self.streams):
            data = self._read()
            if data == b"":
                return
            for event in self.http.receive_data(data) if data else ():
                self._take(event)
            while self.due and self.due[0][0] <= time.monotonic():
                _, stream, answer = heapq.heappop(self.due)
                if stream in self.streams:
                    self._answer(stream, answer)
            self._flush()
        socket.socket.shutdown(self.socket, socket.SHUT_WR)
        while self._read():  # until the client has closed too
            pass

    def _read(self) -> bytes | None:
        """Read what the client sent; None if an answer falls due first."""
        self.socket.settimeout(max(0.001, self.due[0][0] - time.monotonic()) if self.due else None)
        try:
            return self.socket.recv(65_536)
        except TimeoutError:
            return None

    def _flush(self) -> None:
        self.socket.settimeout(10)
        self.socket.sendall(self.http.data_to_send())

    def _say(self, frame: Frame) -> None:
        """Send a frame that h2 must not know of: it would enforce the limit, or close at its own GOAWAY."""
        self._flush()
        self.socket.sendall(frame.serialize())

    def _take(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=stream, headers=headers):
                if self.last is None and len(self.streams) < self.limit:
                    self.streams[stream] = (list(headers), bytearray())
                elif self.last is None:
                    with self.service.lock:
                        self.service.excess += 1
                    self.http.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
            case DataReceived(stream_id=stream, data=data, flow_controlled_length=length):
                self.http.acknowledge_received_data(length, stream)
                if stream in self.streams and len(self.streams[stream][1]) <= MAX_BODY:
                    self.streams[stream][1].extend(data)
            case StreamEnded(stream_id=stream) if stream in self.streams:
                headers, body = self.streams[stream]
                answer = self.service.receive(headers, bytes(body))
                if answer.status not in ("refuse", "goaway-hard"):
                    self.taken = max(self.taken, stream)
                due = time.monotonic() + answer.after_s + self.service.after_s
                heapq.heappush(self.due, (due, stream, answer))
            case StreamReset(stream_id=stream):
                self.streams.pop(stream, None)
            case ConnectionTerminated():
                raise ConnectionError

    def _answer(self, stream: int, answer: Answer) -> None:
        if answer.status == 0:
            raise ConnectionAbortedError
        if answer.status == "hang":
            return
        del self.streams[stream]
        if answer.status == "goaway":
            self._go_away(self.http.highest_inbound_stream_id)
        elif answer.status == "goaway-hard":
            self._go_away(self.taken)
        if answer.status in ("refuse", "goaway-hard"):
            if self.last is None or stream <= self.last:
                self.http.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
        else:
            self._reply(stream, answer)

    def _reply(self, stream: int, answer: Answer) -> None:
        status = 200 if answer.status == "goaway" else answer.status
        if status == 200 and self.limit < MAX_STREAMS:
            self.limit = MAX_STREAMS
            self._say(SettingsFrame(settings={SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS}))
        body: dict = {"reason": answer.reason} if status != 200 else {}
        if status == 410:
            body["timestamp"] = round(self.service.clock() * 1000)
        headers = {":status": str(status), "apns-id": str(uuid.uuid4())} | answer.headers
        self.http.send_headers(stream, list(headers.items()), end_stream=not body)
        if body:
            self.http.send_data(stream, json.dumps(body).encode(), end_stream=True)

    def _go_away(self, last: int) -> None:
        if self.last is None:
            self.last = last
            self.streams = {stream: request for stream, request in self.streams.items() if stream <= last}
            self._say(GoAwayFrame(0, last_stream_id=last, error_code=0))


def _has_aps(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body)["aps"], dict)
    except (ValueError, TypeError, KeyError):
        return False
