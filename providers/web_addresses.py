"""The addresses to which an owner lets the service send: which are taken, and what an entry of a list of hosts names.

A name is resolved when the connection is made (providers/transport.py), so here only the address's form is looked at.
Pure.
"""

import ipaddress
import re
import socket
from fnmatch import fnmatchcase
from typing import NamedTuple

from providers.transport import is_public
from settings.variables import HTTP_ORIGIN

HOST_NAME = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
ADDRESS = re.compile(  # no user, whose name looks like a host, and no fragment
    r"(?P<scheme>https?)://(?P<host>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])\.?(?P<port>:[0-9]{1,5})?"
    r"(?:[/?][!\"$-\[\]-~]*)?",
    re.I,
)
HOSTS_IN_WORDS = "comma-separated host names, *. allowed in front, or whole origins"
DEFAULT_PORTS = {"http": 80, "https": 443}

Hosts = tuple[str, ...]  # names, names after `*.`, and whole origins


class Address(NamedTuple):
    """An address that was taken apart. Its origin has small letters, and no port that goes without saying."""

    scheme: str
    host: str
    origin: str

    def is_named_by(self, hosts: Hosts) -> bool:
        """Whether the list has its origin or, for https, its host, or what is after `*.` ends that."""
        return self.origin in hosts or (self.scheme == "https" and any(fnmatchcase(self.host, one) for one in hosts))

    @property
    def is_private_number(self) -> bool:
        """Whether the host is an IP address, in any of its forms, that is not public."""
        try:
            number = self.host.strip("[]") if self.host[0] == "[" else socket.inet_ntoa(socket.inet_aton(self.host))
            return not is_public(str(ipaddress.ip_address(number)))
        except (OSError, ValueError):  # a name
            return False


def address_of(url: str) -> Address | None:
    """The address in its parts; None if it is no web address, or has spaces, a user or a fragment."""
    match = ADDRESS.fullmatch(url)
    if match is None:
        return None
    scheme, host = match["scheme"].lower(), match["host"].lower()
    port = int(match["port"][1:]) if match["port"] else DEFAULT_PORTS[scheme]
    if not 0 < port <= 65535:
        return None
    return Address(scheme, host, f"{scheme}://{host}" + (f":{port}" if port != DEFAULT_PORTS[scheme] else ""))


def hosts(value: str) -> Hosts:
    """Parses a list of host names, with `*.` allowed in front, and of whole origins; commas separate them."""
    entries = tuple(part.strip().lower().rstrip("/") for part in value.split(",") if part.strip())
    for entry in entries:
        if not (HTTP_ORIGIN if "://" in entry else HOST_NAME).fullmatch(entry):
            raise ValueError
    return tuple(found.origin if (found := address_of(entry)) else entry for entry in entries)
