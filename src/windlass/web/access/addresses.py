"""Addresses: where a request comes from, through the proxies that are trusted and no others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

from windlass.core.errors import SettingsError
from windlass.core.keys import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import HTTPConnection

Address: TypeAlias = "IPv4Address | IPv6Address"
EXPECTED = "addresses or networks, such as 10.0.0.7 or 10.0.0.0/8"
_LONGEST = 100  # characters of an address with the name of an interface


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies whose word is taken; nobody's, unless some are named."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @staticmethod
    def of(texts: Iterable[str], of: str = "proxies") -> Proxies:
        """From addresses and networks as text."""
        return Proxies(tuple(_network(text, of) for text in texts))

    def trust(self, address: Address | None) -> bool:
        """Whether this is one of them."""
        return address is not None and any(address in network for network in self.networks)


NONE = Proxies()


def peer_of(connection: HTTPConnection) -> Address | None:
    """Who is at the other end of the connection itself; None for a socket file, or where the server does not say."""
    return None if connection.client is None else _read(connection.client.host)


def is_from_proxy(connection: HTTPConnection) -> bool:
    """Whether a trusted proxy has sent it."""
    return _proxies(connection).trust(peer_of(connection))


def address_of(connection: HTTPConnection) -> str:
    """The address of who asks, in its shortest form; empty where nobody knows it.

    What X-Forwarded-For says is believed from its end backwards, as long as a trusted proxy says it: what stands before
    that the client sent, and may say anything.
    """
    proxies, address = _proxies(connection), peer_of(connection)
    if not proxies.trust(address):
        return "" if address is None else str(address)
    hops = ",".join(connection.headers.getlist("x-forwarded-for")).split(",")
    while hops and proxies.trust(address):
        before = _read(_without_port(hops.pop().strip()))
        if before is None:
            break
        address = before
    return "" if address is None else str(address)


def _proxies(connection: HTTPConnection) -> Proxies:
    found = getattr(connection.app.state, "proxies", NONE)
    return found if isinstance(found, Proxies) else NONE


def _network(text: str, of: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise SettingsError(f"{of} has {shown(text)}: expected {EXPECTED} ({error})") from None


def _read(text: str) -> Address | None:
    # What is no address may be as long as a header, and is not to be remembered.
    return _parsed(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=10_000)
def _parsed(text: str) -> Address | None:
    try:
        # An address of IPv6 may name an interface of this machine, which is no part of who it is.
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # A server that listens on both kinds tells addresses of IPv4 in the clothes of IPv6.
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def _without_port(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
