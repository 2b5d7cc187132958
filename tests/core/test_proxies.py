"""FORWARDED_ALLOW_IPS: whose word on the sender counts, and what the owner is told of proxies that are not listed."""

import json
from ipaddress import ip_address, ip_network

import pytest

from core import proxies
from store import server_notes
from tests.support.checks import seen
from tests.support.pages import signed_in
from tests.support.rows import each
from tests.support.times import DAY_S

LISTED, STRANGER, PROXY = "127.0.0.1", "203.0.113.9", "10.0.0.2"


def request_from(service, peer, forwarded="198.51.100.1", **headers):
    sent = {"X-Forwarded-For": forwarded} if forwarded else {}
    service.client.get("/healthz", headers={**sent, **headers}, environ_overrides={"REMOTE_ADDR": peer})


def note(now):
    proxies.write_note(now)
    return proxies.warning(now)


# --- the client ---------------------------------------------------------------------------------------------


@each(
    "peer, forwarded, client",
    [
        (LISTED, "", LISTED),
        *(
            (LISTED, f"{before}198.51.100.7", "198.51.100.7")
            for before in ("", "1.1.1.1, ", "127.0.0.1,1.1.1.1,", "x,")
        ),
        (LISTED, "198.51.100.7, nonsense", LISTED),
        (LISTED, " " * 700_000 + "198.51.100.1", LISTED),  # too long for an address
        (LISTED, "1.1.1.1, 198.51.100.7, 10.1.2.3", "198.51.100.7"),
        ("10.0.0.9", "198.51.100.7", "198.51.100.7"),
        ("2001:db8:ffff::1", "1.1.1.1, 198.51.100.7, 127.0.0.1, 10.9.9.9", "198.51.100.7"),
        (LISTED, "2001:db8:1:2::1", "2001:db8:1:2::1"),
        (STRANGER, "198.51.100.7", STRANGER),
        ("11.0.0.1", "198.51.100.7, 10.0.0.2", "11.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_listed_proxy(make_service, peer, forwarded, client):
    make_service(FORWARDED_ALLOW_IPS="127.0.0.1, 10.0.0.0/8, 2001:db8:ffff::/48")
    assert str(proxies.client(peer, forwarded)) == client


NO_ADDRESSES = [
    *(",", " , ", "unknown", "_hidden", "203.0.113.7:4711", "[2001:db8::1]:80", "999.1.1.1", "1", "é", "a" * 9_999)
]


@each(
    "forwarded",
    [*NO_ADDRESSES, "::", LISTED, f"{LISTED}, {LISTED}", "fe80::1%eth0", "::ffff:127.0.0.1", "1," * 5_000],
)
def test_no_text_of_the_header_is_a_fault(service, forwarded):
    for peer in (LISTED, STRANGER):
        answer = service.client.post(
            "/p/x", headers={"X-Forwarded-For": forwarded}, environ_overrides={"REMOTE_ADDR": peer}
        )
        assert answer.status_code == 404
    assert forwarded not in NO_ADDRESSES or str(proxies.client(LISTED, forwarded)) == LISTED


# --- * ------------------------------------------------------------------------------------------------------


@each("value", ["*", "0.0.0.0/0,::/0"])
@each("peer", [LISTED, STRANGER, "2001:db8::1"])
def test_a_trusted_star_takes_the_last_entry_as_the_sender(make_service, value, peer):
    make_service(FORWARDED_ALLOW_IPS=value)
    for forwarded in ("198.51.100.7", "1.1.1.1, 198.51.100.7", "127.0.0.1,10.0.0.1,198.51.100.7"):
        assert str(proxies.client(peer, forwarded)) == "198.51.100.7"
    assert str(proxies.client(peer, "")) == peer


def test_trusting_every_proxy_is_a_warning(make_service):
    service = make_service(FORWARDED_ALLOW_IPS="*")
    level, words = seen(service, "proxies")
    assert level == "look" and "FORWARDED_ALLOW_IPS is *" in words
    assert "FORWARDED_ALLOW_IPS is *" in signed_in(service).page("/app/").text


@each("address", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1"])
def test_gunicorn_believes_a_listed_proxy_on_a_socket_of_ipv6_too(make_service, address):
    listed = make_service(FORWARDED_ALLOW_IPS="10.0.0.0/8, fd00::1").settings.trusted_proxies
    networks = [ip_network(one) for one in proxies.with_mapped(listed)]
    assert any(ip_address(address) in one for one in networks)
    assert not any(ip_address("::ffff:11.0.0.1") in one for one in networks)


# --- bounds -------------------------------------------------------------------------------------------------


def test_of_very_many_entries_only_the_last_20_are_looked_at(make_service, monkeypatch):
    make_service(FORWARDED_ALLOW_IPS="127.0.0.0/8")
    looked, address = [], proxies._address
    monkeypatch.setattr(proxies, "_address", lambda text: looked.append(text) or address(text))
    assert str(proxies.client(LISTED, ",".join(["198.51.100.1", *["127.0.0.2"] * 90_000]))) == "127.0.0.2"
    assert len(looked) == 1 + proxies.MAX_HOPS == 21


# --- proxies that are not listed ----------------------------------------------------------------------------


def test_a_peer_that_is_not_listed_and_sends_the_header_is_named_with_the_setting(service, moved_clock):
    owner = signed_in(service)
    request_from(service, PROXY)
    service.work()
    level, words = seen(service, "proxies")
    assert level == "look" and PROXY in words and f"FORWARDED_ALLOW_IPS=127.0.0.1,{PROXY}" in words
    assert f"FORWARDED_ALLOW_IPS=127.0.0.1,{PROXY}" in owner.page("/app/").text


@pytest.mark.parametrize("peer, forwarded", [(LISTED, "198.51.100.1"), (PROXY, ""), ("::ffff:127.0.0.1", "1.1.1.1")])
def test_listed_proxies_and_peers_without_the_header_cause_no_warning(service, moved_clock, peer, forwarded):
    request_from(service, peer, forwarded)
    assert note(moved_clock.ms) is None
    assert seen(service, "proxies") == (
        "ok",
        "no request came through a proxy that FORWARDED_ALLOW_IPS does not list.",
    )


def test_the_warning_names_the_peer_that_sends_the_header_most(service, moved_clock):
    for peer in (STRANGER, PROXY, PROXY, "203.0.113.10"):
        request_from(service, peer)
    assert f"come from {PROXY}," in note(moved_clock.ms)


def test_the_warning_ends_after_a_day_and_goes_on_while_the_header_comes(service, moved_clock):
    request_from(service, PROXY)
    assert note(moved_clock.ms)
    moved_clock.advance(DAY_S - 1)
    assert proxies.warning(moved_clock.ms)
    moved_clock.advance(1)
    assert proxies.warning(moved_clock.ms) is None
    request_from(service, PROXY)
    assert note(moved_clock.ms)


def test_the_warning_ends_when_the_proxy_is_listed(service, make_service, moved_clock):
    request_from(service, PROXY)
    assert note(moved_clock.ms)
    make_service(FORWARDED_ALLOW_IPS=f"127.0.0.1,{PROXY}")
    assert proxies.warning(moved_clock.ms) is None


def test_the_proposed_setting_keeps_networks_as_networks(make_service, moved_clock):
    service = make_service(FORWARDED_ALLOW_IPS="172.16.0.0/12, fd00::1")
    request_from(service, PROXY)
    assert f"FORWARDED_ALLOW_IPS=172.16.0.0/12,fd00::1,{PROXY}." in note(moved_clock.ms)


def test_a_request_writes_nothing_and_a_busy_proxy_is_written_once_an_hour(service, moved_clock, monkeypatch):
    written, put = [], server_notes.put
    monkeypatch.setattr(
        server_notes, "put", lambda name, value: written.append(json.loads(value)) or put(name, value)
    )
    request_from(service, PROXY)
    assert written == []
    for _ in range(120):
        request_from(service, PROXY)
        proxies.write_note(moved_clock.ms)
        moved_clock.advance(60)
    assert [at - written[0][1] for _, at in written] == [0, 3_600_000]


def test_very_many_peers_take_no_more_memory_than_a_hundred(service):
    for number in range(300):
        proxies.note_peer(f"203.0.113.{number % 256}" if number < 256 else f"198.51.100.{number % 256}")
    assert len(proxies._unlisted) == proxies.MAX_UNLISTED == 100


def test_another_peer_is_noted_within_the_hour(service, moved_clock):
    for peer in ("203.0.113.1", "203.0.113.2"):
        proxies.note_peer(peer)
        proxies.write_note(moved_clock.ms)
    assert json.loads(server_notes.find(proxies.NOTE))[0] == "203.0.113.2"
