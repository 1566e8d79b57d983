"""Hosts: the names that this server answers to. A page may have its own name lead here (DNS rebinding)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.errors import SettingsError
from windlass.core.keys import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

ANY = "*"
LOOPBACK, ADDRESSES = "<loopback>", "<addresses>"
"""in place of names: what only this machine itself can mean, and bare addresses, which no name server gives away"""
EXPECTED = "host names such as jobs.example.com, *.example.com or [::1]:8000, or * for any"
_NAME = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_HIGHEST_PORT = 65_535


class Host(NamedTuple):
    """What a Host header says."""

    name: str
    """in small letters; an address in its shortest form, without brackets"""
    port: int | None


def host_of(text: str) -> Host | None:
    """What a header or an address says; None where it can be read in no way, or in two."""
    name, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        name, colon, port = text, "", ""
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= len(str(_HIGHEST_PORT)) else None
    if colon and (number is None or number > _HIGHEST_PORT):
        return None
    found = _name(name)
    return None if found is None else Host(found, number)


def _name(text: str) -> str | None:
    name = text.lower()
    bracketed = name.startswith("[") and name.endswith("]")
    try:
        address = ip_address(name[1:-1] if bracketed else name)
    except ValueError:
        name = name.removesuffix(".")
        return name if len(text) <= 253 and _NAME.fullmatch(name) else None  # as long as DNS allows
    return str(address) if bracketed == (address.version == 6) else None  # of IPv6: in brackets


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts that are answered for."""

    allowed: tuple[Host, ...]
    loopback: bool = False
    """also those that only this machine itself can mean"""
    addresses: bool = False
    """also every bare address: a browser that is led here by a name says the name"""
    anything: bool = False

    @staticmethod
    def of(texts: Iterable[str], of: str = "hosts") -> Hosts:
        """From names as text."""
        given = list(texts)
        return Hosts(
            tuple(_allowed(one, of) for one in given if one not in (ANY, LOOPBACK, ADDRESSES)),
            loopback=LOOPBACK in given,
            addresses=ADDRESSES in given,
            anything=ANY in given,
        )

    def include(self, text: str | None) -> bool:
        """Whether what a Host header says is one of them; without a port of its own one is good at any."""
        host = host_of(text) if text else None
        if self.anything or host is None:
            return self.anything
        return self._is_open(host.name) or any(_fits(host, one) for one in self.allowed)

    def _is_open(self, name: str) -> bool:
        try:
            address = ip_address(name)
        except ValueError:
            return self.loopback and name == "localhost"
        return self.addresses or (self.loopback and address.is_loopback)


def _allowed(text: str, of: str) -> Host:
    host = host_of(text)
    if host is None:
        raise SettingsError(f"{of} has {shown(text)}: expected {EXPECTED}")
    return host


def _fits(host: Host, allowed: Host) -> bool:
    if allowed.port not in (None, host.port):
        return False
    if allowed.name.startswith("*."):
        return host.name.endswith(allowed.name[1:]) and len(host.name) >= len(allowed.name)
    return host.name == allowed.name
