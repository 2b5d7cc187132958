"""The stand-ins for APNs and FCM refuse what Apple and Google would, and take what other parties' clients send."""

import http.client
import json
import socket
import ssl
import threading
import time
from urllib.parse import urlencode

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RemoteSettingsChanged, ResponseReceived, StreamEnded, StreamReset

from tests.support import fcm_service
from tests.support.apns_requests import apns_headers, provider_token
from tests.support.apns_service import ApnsService
from tests.support.listener import ignore, listening
from tests.support.rows import each
from tests.support.server import wait_until
from tests.support.smtp_service import SmtpService

BODY = {"aps": {"alert": {"title": "Backup", "body": "finished"}}, "id": "n1"}


class Client:
    """An HTTP/2 client that does as it is told, even what it should not."""

    def __init__(self, service, authority):
        context = ssl.create_default_context(cafile=authority.ca_file)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", service.port), 2)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self.http = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.http.initiate_connection()
        self.limits, self.answers, self.resets = [], {}, {}
        self.until(lambda: self.limits)

    def request(self, path, headers, body=b"", method="POST"):
        stream = self.http.get_next_available_stream_id()
        pseudo = [(":method", method), (":path", path), (":scheme", "https"), (":authority", "localhost")]
        self.http.remote_settings[3] = 10_000  # whatever the server said
        self.http.remote_settings.acknowledge()
        self.http.send_headers(stream, pseudo + list(headers.items()))
        self.http.send_data(stream, body, end_stream=True)
        return stream

    def push(self, phone, headers, body=BODY):
        return self.request(f"/3/device/{phone.token}", headers, json.dumps(body).encode())

    def until(self, condition):
        while not condition():
            self.socket.sendall(self.http.data_to_send())
            data = self.socket.recv(65_536)
            if not data:
                raise ConnectionError
            for event in self.http.receive_data(data):
                self.take(event)

    def take(self, event):
        match event:
            case RemoteSettingsChanged(changed_settings=changed) if 3 in changed:
                self.limits.append(changed[3].new_value)
            case ResponseReceived(stream_id=stream, headers=headers):
                self.answers[stream] = [dict(headers), b"", False]
            case DataReceived(stream_id=stream, data=data):
                self.answers[stream][1] += data
            case StreamEnded(stream_id=stream):
                self.answers[stream][2] = True
            case StreamReset(stream_id=stream, error_code=code):
                self.resets[stream] = code

    def answer(self, stream):
        self.until(lambda: stream in self.resets or self.answers.get(stream, [False])[-1])
        if stream in self.resets:
            return self.resets[stream].name, "", {}
        headers, body, _ = self.answers[stream]
        return int(headers[":status"]), json.loads(body or "{}").get("reason", ""), headers


@pytest.fixture
def client(apns, authority):
    client = Client(apns, authority)
    yield client
    client.socket.close()


def test_a_right_push_to_apns_is_taken_and_a_second_one_counted_as_a_duplicate(apns, client):
    phone = apns.phone()
    apns_id = "0189d3a4-0000-7000-8000-00000000000a"
    status, _, headers = client.answer(client.push(phone, apns_headers(apns, apns_id=apns_id, apns_collapse_id="n1")))
    assert (status, headers["apns-id"]) == (200, apns_id)
    ((body, sent),) = phone.messages
    assert (body, sent["apns-collapse-id"], len(phone.pushes)) == (BODY, "n1", 1)
    assert (apns.connections, len(apns.tokens), apns.duplicates) == (1, 1, 0)
    client.answer(client.push(phone, apns_headers(apns)))
    assert apns.duplicates == 1


@each(
    ("changes", "status", "reason"),
    [
        ({"apns_topic": None}, 400, "MissingTopic"),
        ({"apns_topic": "com.example.other"}, 400, "DeviceTokenNotForTopic"),
        ({"apns_push_type": None}, 400, "InvalidPushType"),
        ({"apns_push_type": "loud"}, 400, "InvalidPushType"),
        ({"apns_priority": "7"}, 400, "BadPriority"),
        ({"Apns_Priority": "10"}, 400, "DuplicateHeaders"),  # h2 sends it in lower case, the second of its name
        ({"apns_expiration": "tomorrow"}, 400, "BadExpirationDate"),
        ({"apns_collapse_id": "é" * 33}, 400, "BadCollapseId"),
        ({"apns_id": "0189D3A4-0000-7000-8000-00000000000A"}, 400, "BadMessageId"),
        ({"authorization": None}, 403, "MissingProviderToken"),
        ({"authorization": "bearer x.y.z"}, 403, "InvalidProviderToken"),
    ],
)
def test_apns_refuses_wrong_headers(apns, client, changes, status, reason):
    phone = apns.phone().then(410)
    answer = client.answer(client.push(phone, apns_headers(apns, **changes)))
    assert answer[:2] == (status, reason)
    assert (phone.messages, len(phone.pushes), len(phone.answers)) == ([], 1, 1)


@each(
    ("claims", "reason"),
    [
        ({"iss": "TEAM654321"}, "InvalidProviderToken"),
        ({"kid": "KEY7654321"}, "InvalidProviderToken"),
        ({"key": ec.generate_private_key(ec.SECP256R1())}, "InvalidProviderToken"),
        ({"key": "secret" * 8, "algorithm": "HS256"}, "InvalidProviderToken"),
        ({"iat": 1.5e9}, "InvalidProviderToken"),
        ({"ago": 3700}, "ExpiredProviderToken"),
        ({"ago": -120}, "ExpiredProviderToken"),
        ({"ago": 3500}, ""),
        ({"ago": -30}, ""),
    ],
)
def test_apns_verifies_the_provider_token(apns, client, claims, reason):
    headers = apns_headers(apns, authorization=f"bearer {provider_token(apns, **claims)}")
    assert client.answer(client.push(apns.phone(), headers))[1] == reason


def test_a_provider_token_ages_with_the_clock(apns, client, monkeypatch):
    headers, now = apns_headers(apns), time.time()
    for later, status in ((0, 200), (3500, 200), (3700, 403)):
        monkeypatch.setattr(apns, "clock", lambda later=later: now + later)
        assert client.answer(client.push(apns.phone(), headers))[0] == status


def test_new_provider_tokens_are_limited_when_told(apns, client, monkeypatch):
    apns.limits_tokens, now = True, time.time()
    tokens = [apns_headers(apns, authorization=f"bearer {provider_token(apns, n=n)}") for n in range(2)]
    for later, headers, reason in (
        (0, tokens[0], ""),
        (600, tokens[1], "TooManyProviderTokenUpdates"),
        (600, tokens[0], ""),
        (1300, tokens[1], ""),
    ):
        monkeypatch.setattr(apns, "clock", lambda later=later: now + later)
        assert client.answer(client.push(apns.phone(), headers))[1] == reason
    assert len(apns.tokens) == 2


@each(
    ("method", "path", "body", "reason"),
    [
        ("GET", "/3/device/{token}", b"", "MethodNotAllowed"),
        ("POST", "/2/device/{token}", b'{"aps": {}}', "BadPath"),
        ("POST", "/3/device/", b'{"aps": {}}', "MissingDeviceToken"),
        ("POST", "/3/device/" + "a" * 63, b'{"aps": {}}', "BadDeviceToken"),
        ("POST", "/3/device/" + "g" * 64, b'{"aps": {}}', "BadDeviceToken"),
        ("POST", "/3/device/" + "a" * 64, b'{"aps": {}}', "BadDeviceToken"),
        ("POST", "/3/device/{token}", b"", "PayloadEmpty"),
        ("POST", "/3/device/{token}", b'{"aps": {"alert": "%s"}}' % (b"x" * 4075), "PayloadTooLarge"),
        ("POST", "/3/device/{token}", b'{"aps": {"alert": "%s"}}' % (b"x" * 4074), ""),
        ("POST", "/3/device/{token}", b"{", "BadPayload"),
        ("POST", "/3/device/{token}", b"[1]", "BadPayload"),
        ("POST", "/3/device/{token}", b'{"aps": "x"}', "BadPayload"),
    ],
)
def test_apns_refuses_wrong_requests(apns, client, method, path, body, reason):
    path = path.format(token=apns.phone().token)
    assert client.answer(client.request(path, apns_headers(apns), body, method))[1] == reason


def test_apns_takes_one_stream_at_a_time_until_its_first_200(apns, client):
    apns.after_s = 0.05
    headers, phone = apns_headers(apns), apns.phone().then(503)
    assert client.limits == [1]
    first, second = client.push(phone, headers), client.push(phone, headers)
    assert client.answer(first)[:2] == (503, "ServiceUnavailable")
    assert client.answer(second)[0] == "REFUSED_STREAM"
    assert client.limits == [1]
    assert client.answer(client.push(phone, headers))[0] == 200
    assert (client.limits, apns.excess, len(phone.pushes)) == ([1, 1000], 1, 2)


def assertion(fcm, ago=0, lifetime=3600, algorithm="RS256", key=None, **changes):
    account, made = fcm.service_account(), int(time.time()) - ago
    claims = {"iss": account["client_email"], "aud": account["token_uri"], "scope": fcm_service.SCOPE}
    claims |= {"iat": made, "exp": made + lifetime} | changes
    own = serialization.load_pem_private_key(account["private_key"].encode(), None)  # PyJWT would check it anew
    return jwt.encode(claims, key or own, algorithm)


class Google:
    """An HTTP/1.1 client of the standard library."""

    def __init__(self, fcm, authority):
        self.fcm, self.access, context = fcm, None, ssl.create_default_context(cafile=authority.ca_file)
        self.connection = http.client.HTTPSConnection(fcm.origin.partition("//")[2], timeout=20, context=context)

    def post(self, path, body, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("POST", path, body, named)
        answer = self.connection.getresponse()
        data = answer.read()
        kind = answer.headers["Content-Type"]
        return answer.status, json.loads(data) if "json" in kind else data.decode(), answer.headers

    def token(self, grant=fcm_service.GRANT, **changes):
        form = urlencode({"grant_type": grant, "assertion": assertion(self.fcm, **changes)})
        return self.post("/token", form, Content_Type="application/x-www-form-urlencoded")[:2]

    def push(self, phone=None, access=None, path=None, kind="application/json", more=None, **changes):
        self.access = self.access or f"Bearer {self.token()[1]['access_token']}"
        message = {"notification": {"title": "Backup", "body": "finished"}, "data": {"id": "n1"}}
        message |= {"android": {"priority": "HIGH", "ttl": "86400s", "collapse_key": "n1"}}
        message |= ({"token": phone.token} if phone else {}) | changes
        path = path or self.fcm.url.removeprefix(self.fcm.origin)
        body = json.dumps({"message": message} | (more or {}))
        return self.post(path, body, Authorization=access or self.access, Content_Type=kind)


@pytest.fixture
def google(fcm, authority):
    google = Google(fcm, authority)
    yield google
    google.connection.close()


def test_a_right_push_to_fcm_is_taken_and_a_second_one_counted_as_a_duplicate(fcm, google):
    phone = fcm.phone()
    status, body, _ = google.push(phone)
    assert (status, body["name"].startswith(f"projects/{fcm.project}/messages/")) == (200, True)
    assert phone.messages[0]["notification"] == {"title": "Backup", "body": "finished"}
    assert (len(phone.pushes), fcm.seen["n1"], fcm.oauth_calls, fcm.duplicates) == (1, 1, 1, 0)
    google.push(phone)
    assert fcm.duplicates == 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"grant": "password"}, "unsupported_grant_type"),
        ({"iss": "other@example.com"}, "invalid_grant"),
        ({"aud": "https://accounts.google.com/o/oauth2/token"}, "invalid_grant"),
        ({"lifetime": 3700}, "invalid_grant"),
        ({"ago": 3700}, "invalid_grant"),
        ({"ago": -600}, "invalid_grant"),
        ({"algorithm": "HS256", "key": "secret" * 8}, "invalid_grant"),
        ({"exp": "soon"}, "invalid_grant"),
        ({"scope": "openid"}, "invalid_scope"),
    ],
)
def test_google_refuses_wrong_assertions(fcm, google, changes, error):
    fcm.oauth_then(500)
    status, body = google.token(**changes)
    assert (status, body["error"], fcm.access, len(fcm.oauth_answers)) == (400, error, {}, 1)


@each(
    ("changes", "wrong"),
    [
        ({"data": {"count": 3}}, "message.data"),
        ({"data": {"from": "x"}}, "message.data"),
        ({"notification": {"title": "x", "sound": "x"}}, "message.notification"),
        ({"notification": {"title": 1}}, "message.notification.body"),
        ({"android": {"priority": "high"}}, "message.android.priority"),
        ({"android": {"ttl": 86400}}, "message"),
        ({"android": {"ttl": "86400"}}, "message.android.ttl"),
        ({"android": {"ttl": "2419201s"}}, "message.android.ttl"),
        ({"android": {"collapse_key": 1}}, "message.android.collapse_key"),
        ({"android": {"sound": "x"}}, "message.android"),
        ({"apple": {}}, "message"),
        ({"more": {"validate_only": True}}, "body"),
        ({"more": {"registration_ids": []}}, "body"),
        ({"token": 1}, "message.token"),
        ({"kind": "application/x-www-form-urlencoded"}, "body"),
    ],
)
def test_fcm_refuses_wrong_messages(fcm, google, changes, wrong):
    phone = fcm.phone().then(404, "UNREGISTERED")
    status, body, _ = google.push(phone, **changes)
    (detail,) = body["error"]["details"]
    assert (status, body["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert detail["@type"].endswith("google.rpc.BadRequest")
    assert (detail["fieldViolations"][0]["field"], len(phone.answers)) == (wrong, 1)


def test_fcm_refuses_more_than_4096_bytes_and_unknown_devices(fcm, google):
    phone = fcm.phone()
    size = 4096 - len('{"data":{},"notification":{"body":""}}')
    for more, status in ((0, 200), (1, 400)):
        answer = google.push(
            phone, data={}, notification={"body": "é" * ((size + more) // 2) + "x" * ((size + more) % 2)}
        )
        assert answer[0] == status
    assert answer[1]["error"]["message"] == "Android message is too big"
    phone.token = "unknown"
    status, body, _ = google.push(phone)
    assert (status, body["error"]["message"]) == (400, fcm_service.BAD_TOKEN)
    assert body["error"]["details"][0]["errorCode"] == "INVALID_ARGUMENT"


def test_fcm_refuses_credentials_that_are_not_its_own_or_have_ended(fcm, google, monkeypatch):
    def reason(**changes):
        status, body, _ = google.push(fcm.phone(), **changes)
        return status, body["error"]["details"][0]["reason"]

    assert reason(access="Basic x") == (401, "CREDENTIALS_MISSING")
    assert reason(access="Bearer x") == (401, "ACCESS_TOKEN_TYPE_UNSUPPORTED")
    assert reason(path="/v1/projects/other/messages:send") == (403, "IAM_PERMISSION_DENIED")
    google.access = None
    assert google.push(fcm.phone())[0] == 200
    monkeypatch.setattr(fcm, "clock", lambda: time.time() + 3600)
    assert reason() == (401, "ACCESS_TOKEN_EXPIRED")
    monkeypatch.undo()
    fcm.expire()
    assert reason() == (401, "ACCESS_TOKEN_EXPIRED")
    assert google.push(fcm.phone(), path="/v2/messages:send")[0] == 404


def test_the_stand_in_of_fcm_accepts_pyfcms_requests(fcm, authority, tmp_path, monkeypatch):
    pyfcm = pytest.importorskip("pyfcm")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.ca_file)
    monkeypatch.setattr(pyfcm.FCMNotification, "FCM_END_POINT_BASE", f"{fcm.origin}/v1/projects")
    account = tmp_path / "account.json"
    account.write_text(json.dumps(fcm.service_account()))
    sender, phone = pyfcm.FCMNotification(str(account), fcm.project), fcm.phone()
    android = {"priority": "HIGH", "ttl": "86400s"}
    answer = sender.notify(phone.token, "Backup", "finished", data_payload={"id": "n1"}, android_config=android)
    assert answer["name"].startswith(f"projects/{fcm.project}/messages/")
    assert (phone.messages[0]["data"], fcm.oauth_calls) == ({"id": "n1"}, 1)
    phone.then(404, "UNREGISTERED")
    with pytest.raises(pyfcm.errors.FCMNotRegisteredError):
        sender.notify(phone.token, "Backup", "finished")


def test_a_closed_stand_in_takes_no_connection_of_the_server_that_gets_its_descriptor(authority):
    others = set(threading.enumerate())
    apns, smtp = ApnsService(authority), SmtpService()
    with listening(ignore) as listener:
        for port in (apns.port, smtp.port, listener.port):
            socket.create_connection(("127.0.0.1", port)).close()
    apns.close()
    smtp.close()
    waiting = set(threading.enumerate()) - others
    wait_until(lambda: waiting.isdisjoint(threading.enumerate()))  # one of them may not have begun
