"""A request's client address, and peers that look like proxies without being listed.

`FORWARDED_ALLOW_IPS` lists the proxies whose `X-Forwarded-For` is believed. Must not know requests or the
environment.
"""

import json
from collections import Counter
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from process.clock import DAY_MS, HOUR_MS
from store import server_notes

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_HOPS = 20  # entries of X-Forwarded-For that are read, from its end
MAX_ADDRESS_CHARACTERS = 64
MAX_UNLISTED = 100  # unlisted peers that are counted between two notes
NOTE = "unlisted proxy"

_listed: tuple[Network, ...] = ()
_unlisted = Counter[str]()


def configure(listed: tuple[Network, ...]) -> None:
    """Believe these proxies from now on."""
    global _listed
    _listed = listed


def with_mapped(listed: tuple[Network, ...]) -> list[str]:
    """These networks, and each of IPv4 also as an IPv6 socket shows its addresses (`::ffff:…`)."""
    mapped = [f"::ffff:{one.network_address}/{96 + one.prefixlen}" for one in listed if one.version == 4]
    return [*map(str, listed), *mapped]


def believes_everyone() -> bool:
    """Whether every peer is believed. Then only the last entry counts, which the nearest proxy wrote."""
    return any(network.prefixlen == 0 for network in _listed)


def client(peer: str, forwarded_for: str) -> Address | None:
    """The last address in `X-Forwarded-For` that is no listed proxy, or `peer` if it is no listed proxy itself.

    An entry that is no address ends the search with the proxy that wrote it. None if `peer` is no address.
    """
    address = _address(peer)
    if address is None or not forwarded_for or not _is_listed(peer):
        return address
    for entry in reversed(forwarded_for.rsplit(",", MAX_HOPS)[-MAX_HOPS:]):
        before = _address(entry)
        if before is None:
            break
        address = before
        if believes_everyone() or not _is_listed(entry):
            break
    return address


def sender(peer: str, forwarded_for: str) -> str:
    """The key under which a client's requests are counted: its IPv4 address, or the /64 of its IPv6 address."""
    address = client(peer, forwarded_for)
    if address is None:
        return "unknown"
    return str(address) if address.version == 4 else f"{int(address) >> 64:x}/64"


def note_peer(peer: str) -> None:
    """Count a peer that sent `X-Forwarded-For` without being listed; a job stores the most frequent one."""
    if not _is_listed(peer) and (peer in _unlisted or len(_unlisted) < MAX_UNLISTED):
        _unlisted[peer] += 1


def write_note(now: int) -> None:
    """Store the unlisted peer that sent the header most often since the last note; the same at most once an hour."""
    if not _unlisted:
        return
    ((peer, _),) = _unlisted.most_common(1)
    _unlisted.clear()
    noted_peer, noted_at = _note()
    if peer != noted_peer or not 0 <= now - noted_at < HOUR_MS:
        server_notes.put(NOTE, json.dumps([peer, now]))


def warning(now: int) -> str | None:
    """A sentence for the owner if `FORWARDED_ALLOW_IPS` lists everyone, or a proxy noted in a day is missing."""
    if believes_everyone():
        return (
            "FORWARDED_ALLOW_IPS is *, so anyone who can reach Pocketbell's own port can pretend to be any sender."
            " List the addresses of your proxies instead."
        )
    peer, at = _note()
    if not peer or _is_listed(peer) or not 0 <= now - at < DAY_MS:
        return None
    listed = ",".join(str(one.network_address if one.num_addresses == 1 else one) for one in _listed)
    return (
        f"Requests with X-Forwarded-For come from {peer}, which FORWARDED_ALLOW_IPS does not list. If {peer} is your"
        f" proxy, all its clients share the limits of one sender: set FORWARDED_ALLOW_IPS={listed},{peer}."
        " If it is not, somebody made the header up; it is ignored, and nothing is wrong."
    )


def _note() -> tuple[str, int]:
    noted = server_notes.find(NOTE)
    peer, at = json.loads(noted) if noted else ("", 0)
    return peer, at


def _address(text: str) -> Address | None:
    return _read_address(text) if len(text) <= MAX_ADDRESS_CHARACTERS else None


@lru_cache(maxsize=1_000)  # reading one takes 20,000 instructions
def _read_address(text: str) -> Address | None:
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


@lru_cache(maxsize=1_000)
def _is_listed(text: str) -> bool:
    """Whether this is the address of a listed proxy, or no address at all."""
    address = _read_address(text)
    return address is None or any(address in network for network in _listed)
