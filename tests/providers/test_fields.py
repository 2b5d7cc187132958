"""How priority, URL, tag and expiry reach a phone: at the three providers' stand-ins."""

import base64
import hashlib

import pytest

from core.attempts import tag_slot
from tests.support.rows import each
from wire.notification import Content

DAY_S = 86_400
URL = "https://example.org/" + "u" * 1_980


def test_no_field_and_the_default_priority_give_the_push_that_there_was(phones, moved_clock):
    for more in ({}, {"priority": 3}, {"priority": "normal"}):
        sent = phones.send(**more)
        page = f"/app/notifications/{sent['id']}"
        body, headers = phones.to_apple
        assert body == {
            "aps": {"alert": {"title": "MCP - Disk", "body": "full"}, "sound": "default"},
            "id": sent["id"],
            "path": page,
        }
        expiration = str(moved_clock.ms // 1000 + DAY_S)
        assert (headers["apns-push-type"], headers["content-type"]) == ("alert", "application/json")
        named = ("apns-priority", "apns-expiration", "apns-collapse-id")
        assert tuple(headers[name] for name in named) == ("10", expiration, sent["id"])
        message = phones.to_android
        assert message["android"] == {"priority": "HIGH", "ttl": f"{DAY_S}s", "notification": {"tag": sent["id"]}}
        assert message["data"] == {"id": sent["id"], "path": page}
        notification, headers = phones.to_browser
        navigate = f"http://127.0.0.1:8000{page}"
        assert notification == {"title": "MCP - Disk", "body": "full", "navigate": navigate, "tag": sent["id"]}
        assert (headers["urgency"], headers["ttl"], headers["topic"]) == ("high", str(DAY_S), sent["id"])


@each(
    "priority, level, apns_priority, android, urgency, members",
    [
        (2, {"interruption-level": "passive"}, "5", "NORMAL", "low", {"silent": True}),
        (4, {"interruption-level": "time-sensitive"}, "10", "HIGH", "high", {}),
        (5, {"interruption-level": "time-sensitive"}, "10", "HIGH", "high", {"requireInteraction": True}),
    ],
)
def test_each_provider_has_its_name_of_a_priority(phones, priority, level, apns_priority, android, urgency, members):
    phones.send(priority=priority)
    body, headers = phones.to_apple
    assert body["aps"] == {"alert": {"title": "MCP - Disk", "body": "full"}, "sound": "default", **level}
    assert headers["apns-priority"] == apns_priority
    assert phones.to_android["android"]["priority"] == android
    notification, headers = phones.to_browser
    assert headers["urgency"] == urgency
    assert {
        name: notification[name] for name in notification.keys() - {"title", "body", "navigate", "tag"}
    } == members


@pytest.mark.parametrize("setting, level", [("0", "time-sensitive"), ("1", "critical")])
def test_urgent_is_critical_where_apple_permits_it(make_service, apns, authority, moved_clock, setting, level):
    service = make_service(**apns.settings, APNS_CRITICAL=setting, SSL_CERT_FILE=authority.ca_file)
    service.account()
    caller, phone = service.caller(), apns.phone()
    caller.post("/devices", {"kind": "apns", "token": phone.token})
    for priority in (4, 5):
        caller.post("/notifications/send", {"title": "t", "body": "b", "priority": priority})
    high, urgent = (message.body["aps"] for message in phone.messages)
    assert (high["interruption-level"], high["sound"]) == ("time-sensitive", "default")
    assert urgent["interruption-level"] == level
    loud = {"critical": 1, "name": "default", "volume": 1.0}
    assert urgent["sound"] == (loud if level == "critical" else "default")


@each("left_ms, told_s", [(1, 0), (90_500, 90), (DAY_S * 1000 - 1, DAY_S - 1), (10**9, DAY_S)])
def test_providers_are_told_the_time_that_remains(phones, moved_clock, left_ms, told_s):
    phones.send(expiresAt=moved_clock.ms + left_ms)
    assert phones.to_apple[1]["apns-expiration"] == str(moved_clock.ms // 1000 + told_s)
    assert phones.to_android["android"]["ttl"] == f"{told_s}s"
    assert phones.to_browser[1]["ttl"] == str(told_s)


def slots(phones):
    return {
        phones.to_apple[1]["apns-collapse-id"],
        phones.to_android["android"]["notification"]["tag"],
        phones.to_browser[1]["topic"],
        phones.to_browser[0]["tag"],
    }


def test_the_newest_with_a_tag_takes_the_place_of_the_earlier_ones(phones):
    found = []
    for tag in ("disk", "disk", "Disk", "日本\n; x=y", "t" * 64):
        sent = phones.send(tag=tag)
        (slot,) = slots(phones)
        assert slot != sent["id"] and len(slot) == 32 and slot.replace("-", "").replace("_", "").isalnum()
        found.append(slot)
    assert found[0] == found[1] and len(set(found)) == 4


def test_two_accounts_share_no_place_on_a_screen(phones, every_provider):
    other = every_provider.account("other@example.org")
    caller = every_provider.caller(other)
    caller.post("/devices", {"kind": "webpush", "subscription": phones.browser.subscription})
    phones.send(tag="disk")
    caller.post("/notifications/send", {"title": "t", "body": "b", "tag": "disk"})
    first, second = (one["notification"]["tag"] for one in phones.browser.messages)
    assert first != second


def test_the_place_of_a_tag_stays_over_updates():
    """What is on a screen was put there by whatever version ran then."""
    assert tag_slot(7, "disk") == base64.urlsafe_b64encode(hashlib.sha256(b"7 disk").digest()).decode()[:32]


def test_a_push_carries_url_and_tag(phones):
    sent = phones.send(url=URL, tag="disk “1”")
    told = {"id": sent["id"], "path": f"/app/notifications/{sent['id']}", "url": URL, "tag": "disk “1”"}
    body, _ = phones.to_apple
    assert {name: body[name] for name in body.keys() - {"aps"}} == told
    assert phones.to_android["data"] == told
    notification, _ = phones.to_browser
    assert (notification["navigate"], notification["data"]) == (URL, {"tag": "disk “1”"})
    assert phones.browser.messages[-1].keys() == {"web_push", "mutable", "notification"}
    assert phones.browser.messages[-1]["mutable"] is True  # for Safari, whose own display ignores tags


@each("text", ["a", "é", "漢", "😀", '"', "\\", "\n"])
@each("url", [URL, "https://example.org/" + '"' * 1_000])
def test_texts_are_fitted_beside_the_longest_url_and_tag(phones, text, url):
    title, body = text.strip() * 1_000 or "t", "." + text * 9_999
    content = Content(f"MCP - {title}", body, url=url, tag="\x01" * 64, priority=5)
    apple, android, browser = phones.built(content)
    for shown in (apple["aps"]["alert"], android["notification"], browser):
        assert shown["title"].startswith(f"MCP - {title[:5]}")
        assert shown["body"].endswith("…") and len(shown["body"]) > 150
    assert browser["navigate"] == url


@each("url", ["https://example.org/" + "漢" * 1_980, "https://example.org/" + "\\" * 1_980])
def test_a_url_that_leaves_no_room_for_the_text_stays_on_the_notifications_page(phones, url):
    sent = phones.send(url=url)
    page = f"/app/notifications/{sent['id']}"
    assert sent["url"] == url
    assert "url" not in phones.to_apple[0] and "url" not in phones.to_android["data"]
    assert phones.to_browser[0]["navigate"] == f"http://127.0.0.1:8000{page}"
