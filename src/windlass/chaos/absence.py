"""A store that is away for a while without being touched: the way to a server leads through a proxy that falls silent,
and the writers of an SQLite file wait for one who holds it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from windlass.chaos.proxy import Proxy
from windlass.stores.sqlite.holding import Hold, holding

PORTS = {"postgresql": 5432, "postgres": 5432, "mongodb": 27017, "redis": 6379}
_SECRET = {"tls", "ssl", "sslmode", "sslrootcert", "sslcert"}


class NotHere(Exception):
    """A fault cannot be tried on a store; the message says why."""


class Absence(Protocol):
    """How a store is reached by those whom it leaves alone for a while, once or again."""

    url: str

    def begin(self) -> None:
        """Answer nobody from now on."""
        ...

    def end(self) -> None:
        """Be there again."""
        ...


class _Silence:
    def __init__(self, proxy: Proxy, url: str) -> None:
        self._proxy, self.url = proxy, url

    def begin(self) -> None:
        self._proxy.silence()

    def end(self) -> None:
        self._proxy.heal()


class _HeldFile:
    def __init__(self, hold: Hold, url: str) -> None:
        self._hold, self.url = hold, url

    def begin(self) -> None:
        self._hold.begin()

    def end(self) -> None:
        self._hold.end()


@contextmanager
def absence(url: str, seed: int = 0) -> Generator[Absence, None, None]:
    """A store that can be made to be away; NotHere where only its owner could do that."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        path = unquote(url.removeprefix("sqlite:///").partition("?")[0])
        with holding(path) as hold:
            yield _HeldFile(hold, url)
        return
    host, port = _server(url)
    with Proxy(host, port, seed=seed) as proxy:
        yield _Silence(proxy, through(url, proxy.port))


def can_be_away(url: str) -> None:
    """Raise NotHere if a store cannot be made to be away."""
    if urlsplit(url).scheme != "sqlite":
        _server(url)


def _server(url: str) -> tuple[str, int]:
    """The one server behind a URL that a proxy can stand before."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    if parts.scheme not in PORTS or "," in parts.netloc or not parts.hostname:
        raise NotHere("a proxy can stand before one server that is named by its host, not before what this URL names")
    if _SECRET & options.keys():
        raise NotHere("a proxy cannot stand in an encrypted connection")
    return parts.hostname, parts.port or PORTS[parts.scheme]


def through(url: str, port: int) -> str:
    """The same store, seen through a proxy at this port of the loopback address."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    there = parts._replace(netloc=f"{user}{'@' if user else ''}127.0.0.1:{port}")
    if parts.scheme == "mongodb":
        # A replica set would name its members' own addresses.
        options = {name: value for name, value in parse_qsl(parts.query) if name != "replicaSet"}
        there = there._replace(query=urlencode({**options, "directConnection": "true"}))
    return there.geturl()
