"""The ntfy app on the Devices page: its topic is shown once, as text, link and QR code."""

import re

from tests.support.accounts import OWNER
from tests.support.ntfy_app import TOPIC, Phone
from tests.support.pages import Visitor, signed_in

FORM = {"kind": "ntfy", "name": "Pixel"}


def added(owner, **form):
    """Send the form, and return the address that it leads to."""
    owner.get("/app/devices")
    answer = owner.post("/app/devices/new", FORM | form)
    assert answer.status_code == 303
    return answer.location


def topics_at(visitor, path):
    return set(TOPIC.findall(visitor.get(path).text))


def test_the_topic_that_the_page_shows_gets_what_is_sent(service, owner):
    (topic,) = topics_at(owner, added(owner))
    phone = Phone(service, {"id": "", "topic": topic})
    owner.get("/app/")
    assert owner.post("/app/test").status_code == 303
    assert [message["title"] for message in phone.messages()] == ["MCP - It works"]


def test_a_topic_is_shown_once_in_its_session_alone_and_a_reload_adds_no_second_device(service, owner):
    path, other = added(owner), Visitor(service)
    other.sign_in()
    assert topics_at(other, path) == set()
    assert len(topics_at(owner, path)) == 1 and topics_at(owner, path) == set()
    assert service.flask("device", "list", OWNER).output.count("ntfy") == 1


def test_the_link_opens_the_app(owner):
    text = owner.get(added(owner)).text
    assert re.search(r'href="ntfy://localhost/pb\w{40}\?display=Pocketbell&amp;secure=false"', text)
    assert "<code>http://localhost</code>" in text and text.count("<svg") > 1 and "style=" not in text


def test_under_https_the_link_says_nothing_of_security(make_service, moved_clock):
    visitor = signed_in(make_service(BASE_URL="https://bell.example.org:8443"))
    text = visitor.get(added(visitor)).text
    assert re.search(r'href="ntfy://bell\.example\.org:8443/pb\w{40}\?display=Pocketbell"', text)


def test_an_ntfy_device_has_no_test_button(owner):
    card = owner.page(added(owner)).section("Pixel")
    assert "New" in card and "Test" not in card and "Remove" in card


def test_a_test_by_hand_says_that_the_app_fetches(service, owner):
    added(owner)
    device_id = service.flask("device", "list", OWNER).output.split("\t")[0]
    owner.get("/app/devices")
    assert "send a test from Home" in owner.done(f"/app/devices/{device_id}/test").main


def test_the_page_offers_no_ntfy_device_where_ntfy_addresses_are_disabled(make_service, moved_clock):
    service = make_service(COMPATIBILITY="off")
    visitor = signed_in(service)
    assert "Add the ntfy app" not in visitor.get("/app/devices").text
    warned = service.flask("device", "add", OWNER, "ntfy")
    assert "The ntfy app's addresses are switched off on this server (COMPATIBILITY)" in warned.stderr
    assert "not configured" in visitor.page("/app/devices").section("ntfy app")
