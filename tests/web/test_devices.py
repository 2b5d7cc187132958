"""How an app registers itself at /api/v1/devices: tokens, 20 devices, WEBPUSH_HOSTS."""

import json
from unittest.mock import ANY

import pytest

from core import devices as core_devices
from tests.support.accounts import OWNER
from tests.support.answers import error, unlike
from tests.support.push_service import base64url, unbase64url
from tests.support.rows import each

APNS = "0123456789abcdef" * 4


def register(caller, token=APNS, kind="apns", **more):
    return caller.post("/devices", {"kind": kind, "token": token, **more})


def device_of(answer):
    assert answer.status_code == 201, answer.json
    return answer.json["device"]


def devices(caller):
    answer = caller.get("/devices")
    assert answer.status_code == 200 and set(answer.json) == {"ok", "devices"}
    return answer.json["devices"]


def subscribe(caller, subscription):
    return caller.post("/devices", {"kind": "webpush", "subscription": subscription})


def assert_refused(answer, caller):
    assert (answer.status_code, answer.json) == (400, error(400))
    assert devices(caller) == []


# The row of /api/v1/devices


@pytest.mark.parametrize("kind, token", [("apns", APNS), ("fcm", "cJ5x:APA91bF-long_token")])
def test_a_registered_device_is_answered_and_listed(owner, moved_clock, kind, token):
    answer = register(owner, token, kind, name="Phone")
    device = {
        "id": ANY,
        "kind": kind,
        "name": "Phone",
        "createdAt": moved_clock.ms,
        "lastDeliveredAt": None,
        "lastError": None,
    }
    assert (answer.status_code, answer.json) == (201, {"ok": True, "device": device})
    assert owner.get("/devices").json == {"ok": True, "devices": [answer.json["device"]]}


def test_a_token_is_never_answered(owner, push_service):
    subscription = push_service.browser().subscription
    answers = [register(owner), register(owner, "fcm-token-text", "fcm"), subscribe(owner, subscription)]
    text = "".join(answer.text for answer in [*answers, owner.get("/devices")])
    secrets = [APNS, "fcm-token-text", subscription["endpoint"], *subscription["keys"].values()]
    assert [secret for secret in secrets if secret in text] == []


def test_last_delivered_is_when_the_provider_took_a_push(owner, push_service, moved_clock):
    subscribe(owner, push_service.browser().subscription)
    moved_clock.advance(5)
    owner.send()
    assert devices(owner)[0]["lastDeliveredAt"] == moved_clock.ms


@each(
    "body",
    [
        *({"kind": kind, "token": APNS} for kind in ("", "APNS", "ios", "web push", "webPush", "apns ", "email")),
        {"kind": "apns"},
        {"kind": "fcm"},
        {"kind": "fcm", "token": ""},
        {"kind": "webpush"},
        {"kind": "webpush", "token": APNS},
        {"kind": "apns", "subscription": APNS},
        {"token": APNS},
    ],
)
def test_a_device_needs_a_known_kind_and_the_credential_of_this_kind(owner, body):
    assert_refused(owner.post("/devices", body), owner)


def test_a_removed_device_may_be_registered_again(owner):
    owner.delete(f"/devices/{device_of(register(owner))['id']}")
    again = device_of(register(owner))
    assert devices(owner) == [again]


# Changing a device


def test_a_device_is_changed_field_by_field(owner):
    device = device_of(register(owner, name="Phone"))
    for sent, changed in (
        ({"name": " Tablet "}, {"name": "Tablet"}),
        ({"minPriority": "high"}, {"minPriority": 4}),
        ({"minPriority": 1, "name": None}, {}),
        ({"quietHours": "MO-FR 22:00-07:00"}, {"quietHours": "mo-fr 22:00-07:00"}),
        ({"quietHours": "off"}, {}),
        ({}, {}),
    ):
        device = {**device, **changed}
        if sent.get("minPriority") == 1:
            del device["minPriority"]
        if sent.get("quietHours") == "off":
            del device["quietHours"]
        answer = owner.patch(f"/devices/{device['id']}", sent)
        assert (answer.status_code, answer.json) == (200, {"ok": True, "device": device})
        assert devices(owner) == [device]


@each(
    "field, value",
    [
        ("name", 1),
        ("name", " "),
        ("name", "x" * 101),
        ("minPriority", 6),
        ("minPriority", "loud"),
        ("quietHours", 22),
        ("quietHours", "22-7"),
        ("quietHours", "mo 22:00-07:00; tu 06:00-08:00"),
    ],
)
@each("other", [{}, {"name": "Other"}, {"minPriority": 2}])
def test_a_wrong_value_changes_nothing_and_is_named(owner, field, value, other):
    device = device_of(register(owner, name="Phone"))
    answer = owner.patch(f"/devices/{device['id']}", {**other, field: value})
    assert (answer.status_code, answer.json) == (400, error(400)) and field in answer.json["error"]
    assert devices(owner) == [device]


@each("field", ["kind", "token", "minpriority", "", "x" * 999])
def test_a_field_that_cannot_be_changed_is_refused_by_name(owner, field):
    device = device_of(register(owner))
    answer = owner.patch(f"/devices/{device['id']}", {"name": "Other", field: "x"})
    assert answer.status_code == 400
    assert (
        answer.json["error"]
        == f"{field[:100]} is not known: only name, minPriority, quietHours, role, afterS can be set."
    )
    assert devices(owner) == [device]


# The same token


def test_the_same_token_is_the_same_device(owner, moved_clock):
    first = device_of(register(owner, name="Phone"))
    moved_clock.advance(10)
    again = register(owner, name="Phone")
    assert (again.status_code, again.json["device"]) == (201, first)
    assert devices(owner) == [first]


def test_a_subscription_renewed_at_its_endpoint_replaces_its_keys(owner, push_service):
    browser, renewed = push_service.browser(), push_service.browser()
    first = device_of(subscribe(owner, browser.subscription))
    browser.private_key, browser.auth = renewed.private_key, renewed.auth
    assert subscribe(owner, browser.subscription).json["device"]["id"] == first["id"]
    assert owner.send().json["notification"]["status"] == "delivered"
    assert len(browser.messages) == 1


def test_the_same_token_of_another_kind_or_account_is_another_device(owner, pro):
    mine, theirs, other = (device_of(one) for one in (register(owner), register(pro), register(owner, APNS, "fcm")))
    assert len({mine["id"], theirs["id"], other["id"]}) == 3
    pro.delete(f"/devices/{theirs['id']}")
    assert (devices(owner), devices(pro)) == ([other, mine], [])


# A key removes and changes only devices that it added


@pytest.fixture
def foreign(request, service, owner, pro, push_service):
    """A device that the owner's key did not add: (id, a caller that sees it)."""
    second = service.caller(name="second")
    if request.param == "by another key":
        return device_of(register(second))["id"], second
    if request.param == "by command":
        return service.flask("device", "add", OWNER, "apns", APNS).stdout.strip(), second
    return device_of(register(pro))["id"], pro


@pytest.mark.parametrize("foreign", ["by another key", "by command", "in another account"], indirect=True)
def test_a_device_that_the_key_did_not_add_behaves_exactly_like_an_unknown_one(owner, foreign):
    device_id, caller = foreign
    for method in ("DELETE", "PATCH"):
        paths = (f"/api/v1/devices/{id_}" for id_ in (device_id, "0" * len(device_id)))
        answers = [owner.request(method, path, {"name": "Mine"}) for path in paths]
        assert answers[0].json == error(404, "NOT_FOUND")
        assert unlike(answers[0]) == unlike(answers[1])
    assert [(one["id"], one["name"] == "Mine") for one in devices(caller)] == [(device_id, False)]


def test_every_key_lists_all_of_its_accounts_devices(service, owner, pro):
    register(pro)
    mine = device_of(register(owner))
    service.flask("device", "add", OWNER, "fcm", "by-command")
    second = service.caller(name="second")
    theirs = device_of(register(second, "1" * 64))
    assert [device["id"] for device in devices(owner)] == [theirs["id"], ANY, mine["id"]]
    assert devices(owner) == devices(second)


# An APNs token is 64 to 200 hexadecimal digits


@each("token", ["a" * 64, "A" * 64, "0" * 65, "0" * 160, "f" * 200, "0123456789abcdefABCDEF" * 4])
def test_an_apns_token_of_64_to_200_hexadecimal_digits_is_taken(owner, token):
    device_of(register(owner, token))


@each(
    "token",
    [
        *["", "a" * 63, "a" * 201, "g" + "a" * 63, "a" * 63 + "g", "a" * 32 + " " + "a" * 32, " " + "a" * 64],
        *["a" * 64 + "\n", "<" + "a" * 64 + ">", "0x" + "a" * 64, "a" * 63 + "\n", "a-" * 40, "a" * 100_000],
        *["٣" * 64, "０" * 64, "é" * 64, "²" * 64, "../" * 30, "a" * 64 + "/x", "a" * 64 + "\r\nx: y", "%61" * 30],
    ],
)
def test_any_other_apns_token_is_refused(owner, token):
    assert_refused(register(owner, token), owner)


@each("body", [{"kind": "apns", "token": "s3cret" * 20}, {"kind": "nope", "token": "s3cret" * 20}])
def test_a_refused_token_is_not_repeated(owner, body, caplog):
    answer = owner.post("/devices", body)
    assert answer.status_code == 400
    assert "s3cret" not in answer.text and "s3cret" not in caplog.text


# A Web Push subscription


def without(subscription, *path):
    copy = json.loads(json.dumps(subscription))
    inner = copy
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return copy


def keyed(subscription, **keys):
    return subscription | {"keys": subscription["keys"] | keys}


def compressed(p256dh):
    """The same point in 33 bytes."""
    point = unbase64url(p256dh)
    return base64url(bytes([2 + point[64] % 2]) + point[1:33])


SUBSCRIPTION_FAULTS = {
    "no endpoint": lambda it: without(it, "endpoint"),
    "an endpoint that is null": lambda it: it | {"endpoint": None},
    "an endpoint that is a number": lambda it: it | {"endpoint": 1},
    "an endpoint that is a list": lambda it: it | {"endpoint": [it["endpoint"]]},
    "no keys": lambda it: without(it, "keys"),
    "keys that are null": lambda it: it | {"keys": None},
    "keys that are a list": lambda it: it | {"keys": list(it["keys"].values())},
    "keys that are a string": lambda it: it | {"keys": "p256dh"},
    "no p256dh": lambda it: without(it, "keys", "p256dh"),
    "no auth": lambda it: without(it, "keys", "auth"),
    "p256dh a number": lambda it: keyed(it, p256dh=1),
    "auth a number": lambda it: keyed(it, auth=1),
    "p256dh empty": lambda it: keyed(it, p256dh=""),
    "auth empty": lambda it: keyed(it, auth=""),
    "p256dh not base64": lambda it: keyed(it, p256dh="*" * 87),
    "auth not base64": lambda it: keyed(it, auth="*" * 22),
    "p256dh not ASCII": lambda it: keyed(it, p256dh="é" * 87),
    "auth not ASCII": lambda it: keyed(it, auth="é" * 22),
    "p256dh of 64 bytes": lambda it: keyed(it, p256dh="BA" + "A" * 84),
    "p256dh of 66 bytes": lambda it: keyed(it, p256dh=it["keys"]["p256dh"] + "A"),
    "p256dh a compressed point": lambda it: keyed(it, p256dh=compressed(it["keys"]["p256dh"])),
    "p256dh not on the curve": lambda it: keyed(it, p256dh="BA" + "A" * 84 + "E"),
    "p256dh of the wrong form": lambda it: keyed(it, p256dh="C" + it["keys"]["p256dh"][1:]),
    "auth of 15 bytes": lambda it: keyed(it, auth="A" * 20),
    "auth of 17 bytes": lambda it: keyed(it, auth="A" * 23),
    "auth with more padding than base64 needs": lambda it: keyed(it, auth=it["keys"]["auth"] + "=" * 1_000),
    "auth of 16,000 bytes": lambda it: keyed(it, auth="A" * 20_000),
    "keys turned": lambda it: keyed(it, p256dh=it["keys"]["auth"], auth=it["keys"]["p256dh"]),
    "JSON in a string": json.dumps,
}


@each("fault", SUBSCRIPTION_FAULTS)
def test_a_subscription_with_one_fault_is_refused(owner, push_service, fault):
    good = push_service.browser().subscription
    assert_refused(subscribe(owner, SUBSCRIPTION_FAULTS[fault](good)), owner)


@each(
    "fault, sentence",
    [
        ("no endpoint", "subscription.endpoint is required."),
        ("an endpoint that is a number", "subscription.endpoint must be a string."),
        ("no keys", "subscription.keys must be an object with p256dh and auth."),
        ("no p256dh", "subscription.keys.p256dh is required."),
        ("auth a number", "subscription.keys.auth must be a string."),
    ],
)
def test_a_refused_subscription_is_told_which_of_its_fields_is_wrong(owner, push_service, fault, sentence):
    good = push_service.browser().subscription
    assert subscribe(owner, SUBSCRIPTION_FAULTS[fault](good)).json["error"] == sentence


def test_unknown_fields_of_a_subscription_are_ignored(owner, push_service):
    subscription = push_service.browser().subscription
    device_of(
        subscribe(owner, subscription | {"expirationTime": None, "x": 1, "keys": subscription["keys"] | {"y": 2}})
    )


# WEBPUSH_HOSTS: `{origin}` stands for the origin that the tests' setting permits beside *.push.example.com


@each(
    "endpoint",
    [
        *("https://a.push.example.com/x", "https://a.b.push.example.com/x?token=1"),
        *("https://a.push.example.com:443/x", "https://A.PUSH.Example.COM/x", "{origin}/push/else"),
    ],
)
def test_an_endpoint_on_a_permitted_host_is_taken(owner, push_service, endpoint):
    subscription = push_service.browser().subscription
    device_of(subscribe(owner, subscription | {"endpoint": endpoint.format(origin=push_service.origin)}))


ELSEWHERE = {
    "another scheme or none": [
        *("", "x", "/push/x", "//a.push.example.com/x", "a.push.example.com/x", "https://", "https:///x"),
        *("http://a.push.example.com/x", "ftp://a.push.example.com/x", "file:///etc/passwd", "javascript:alert(1)"),
        *("data:text/plain,x", "gopher://a.push.example.com:443/x", "https:a.push.example.com/x"),
    ],
    "another port": [
        *("https://a.push.example.com:8443/x", "https://a.push.example.com:80/x", "https://a.push.example.com:0/x"),
        *("https://a.push.example.com:99999/x", "https://a.push.example.com:x/x"),
    ],
    "user information": [
        *("https://user@a.push.example.com/x", "https://user:secret@a.push.example.com/x"),
        *("https://:@a.push.example.com/x", "https://@a.push.example.com/x"),
        *("https://a.push.example.com@evil.example/x", "https://a.push.example.com:443@evil.example/x"),
        *("https://evil.example\\@a.push.example.com/x",),
    ],
    "a permitted name in the wrong place": [
        *("https://evil.example/a.push.example.com", "https://evil.example/.push.example.com"),
        *("https://evil.example?.push.example.com", "https://evil.example#.push.example.com"),
        *("https://evil.example\\.push.example.com/x", "https://evil.example%2f.push.example.com/x"),
        *("https://evil.example%00.push.example.com/x", "https://evil.example;.push.example.com/x"),
        *("https://evil.example,a.push.example.com/x", "https://*.push.example.com/x"),
    ],
    "white space": [
        *("https://evil.example .push.example.com/x", "https://evil.example\t.push.example.com/x"),
        *("https://evil.example\n.push.example.com/x", "https://evil.example\r\nHost: a.push.example.com/x"),
        *(" https://a.push.example.com/x", "https://a.push.example.com/x\n", "https://a.push.example.com/x y"),
        *("https://a.push.example.com/x\r\nX-Injected: 1",),
    ],
    "a name that looks alike": [
        *("https://evilpush.example.com/x", "https://a-push.example.com/x"),
        *("https://a.push.example.com.evil.example/x", "https://a.push.example.comx/x"),
        *("https://a.push.example.co/x", "https://a.push.example.org/x", "https://example.com/x"),
    ],
    "an address instead of a name": [
        *("https://localhost/x", "https://127.0.0.1/x", "https://127.1/x", "https://2130706433/x"),
        *("https://0x7f.0.0.1/x", "https://0177.0.0.1/x", "https://10.0.0.1/x"),
        *("https://169.254.169.254/latest/meta-data", "https://8.8.8.8/x", "https://[::1]/x"),
        *("https://[::ffff:127.0.0.1]/x", "https://[::1].push.example.com/x", "https://[a.push.example.com]/x"),
    ],
    "near the permitted origin": [
        *("http://127.0.0.1:1/x", "http://127.0.0.1/x", "{secure_origin}/push/0", "{origin}@evil.example/x"),
        *("{origin}.evil.example/x", "{origin}1/x", "{localhost_origin}/push/0", "{user_origin}/push/0"),
        *("{short_origin}/push/0", "{decimal_origin}/push/0"),
    ],
}


@each("group", ELSEWHERE)
def test_an_endpoint_anywhere_else_is_refused(owner, push_service, group):
    origin = push_service.origin
    origins = {
        "origin": origin,
        "secure_origin": origin.replace("http:", "https:"),
        "localhost_origin": origin.replace("127.0.0.1", "localhost"),
        "user_origin": origin.replace("127.0.0.1", "user@127.0.0.1"),
        "short_origin": origin.replace("127.0.0.1", "127.1"),
        "decimal_origin": origin.replace("127.0.0.1", "2130706433"),
    }
    subscription = push_service.browser().subscription
    for endpoint in ELSEWHERE[group]:
        answer = subscribe(owner, subscription | {"endpoint": endpoint.format(**origins)})
        assert (answer.status_code, answer.json) == (400, error(400)), endpoint
    assert devices(owner) == []


@pytest.fixture
def plain(make_service, moved_clock):
    """A caller of a service with the default push hosts."""
    service = make_service()
    service.account()
    return service.caller()


@each(
    "endpoint",
    [
        *("https://a.push.example.com/x", "https://fcm.googleapis.com.evil.example/x"),
        *("https://evilfcm.googleapis.com/x", "https://storage.googleapis.com/x", "https://apple.com/x"),
        *("https://windows.com/x", "https://mozilla.com/x", "http://127.0.0.1:8000/x"),
    ],
)
def test_no_other_host_is_permitted_by_default(plain, push_service, endpoint):
    assert_refused(subscribe(plain, push_service.browser().subscription | {"endpoint": endpoint}), plain)


# An account has at most 20 devices


@pytest.fixture
def twenty(owner, monkeypatch):
    """As many as there may be: three, as twenty would take long."""
    assert core_devices.MAX_DEVICES == 20
    monkeypatch.setattr(core_devices, "MAX_DEVICES", 3)
    return [device_of(register(owner, f"{number:064x}")) for number in range(3)]


def test_each_of_20_devices_can_be_added_again_and_makes_room_for_another_when_it_is_removed(owner, twenty):
    assert device_of(register(owner, f"{1:064x}")) == twenty[1]
    owner.delete(f"/devices/{twenty[0]['id']}")
    device_of(register(owner))
    assert register(owner, "1" * 64).status_code == 400


def test_the_20_devices_are_counted_per_account_over_all_keys_and_the_command_line(service, owner, pro, twenty):
    assert register(service.caller(name="second")).status_code == 400
    assert service.flask("device", "add", OWNER, "apns", APNS).exit_code == 1
    device_of(register(pro))
