"""Limits: how often a key and an address may ask, what guessing costs, and how many jobs of one owner may wait."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any

from windlass.core.status import Status
from windlass.web.access.addresses import address_of
from windlass.web.buckets import Buckets, Guesses
from windlass.web.problems import UNAUTHENTICATED, Kind, Refused

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from windlass.settings import Settings
    from windlass.web.access.authenticating import Authenticator
    from windlass.web.answers import Answers
    from windlass.web.callers import Caller

TOO_OFTEN = Kind(429, "too-many-requests", "Too many requests")
QUOTA = Kind(429, "quota-exceeded", "As many of your jobs wait as may", retry_after=5)
WAITING = (Status.SCHEDULED, Status.QUEUED, Status.BLOCKED, Status.RETRYING)
_NET = 64
"""bits of an address of IPv6 that a provider gives to one customer: the rest is the customer's to choose"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is let in; 0 is no limit."""

    rate: float = 2_000
    """requests a second of one key, token or user"""
    address_rate: float = 200
    """requests a second of one address, or of one network of IPv6"""
    quota: int = 0
    """jobs of one owner that may wait; a key's attribute `quota` wins over it"""

    @staticmethod
    def of(settings: Settings) -> Limits:
        """As they are set."""
        return Limits(rate=settings.http_rate, address_rate=settings.http_address_rate, quota=settings.http_quota)


class Limiter:
    """What one process knows of who came."""

    def __init__(self, limits: Limits) -> None:
        self._quota = limits.quota
        self._callers, self._addresses = Buckets(limits.rate), Buckets(limits.address_rate)
        self._guesses = Guesses()

    def come(self, connection: HTTPConnection) -> None:
        """A request from this address: refused where there were too many."""
        name = _network(connection)
        if name is not None:
            _refuse(self._addresses.take(name, time.monotonic()), "from your address")

    def ask(self, caller: Caller) -> None:
        """A request of this caller: refused where there were too many."""
        _refuse(self._callers.take(caller.name, time.monotonic()), "with this key")

    def guarding(self, authenticate: Authenticator) -> Authenticator:
        """The same authenticator, which is not asked while an address has to wait because it has failed too often."""

        async def guarded(connection: HTTPConnection, app: Answers, /) -> Caller | None:
            if _says_something(connection):
                self.check_guesses(connection)
            try:
                return await authenticate(connection, app)
            except Refused as error:
                if error.kind is UNAUTHENTICATED:
                    self.note_guess(connection)
                raise

        return guarded

    def check_guesses(self, connection: HTTPConnection) -> None:
        """Credentials come from this address: refused while it has to wait because it has failed too often."""
        name = _network(connection)
        if name is not None:
            _refuse(self._guesses.wait(name, time.monotonic()), "with credentials that are not good")

    def note_guess(self, connection: HTTPConnection) -> None:
        """What came from this address was not good."""
        name = _network(connection)
        if name is not None:
            self._guesses.note(name, time.monotonic())

    async def check_quota(self, app: Answers, caller: Caller, more: int = 1) -> None:
        """Refuse so many jobs more, if then more of the caller's own would wait than may.

        Several requests at one moment may each find the last place free.
        """
        quota = _own_quota(caller.grants.attributes, self._quota)
        if not quota or not more or caller.sees_all:
            return
        waiting = (await app.jobs.only(caller.owner).count(status=WAITING)).n
        if waiting + more > quota:
            detail = (
                f"the quota is {quota:,} waiting jobs, and {waiting:,} of yours wait: come again when some are done"
            )
            raise Refused(QUOTA, detail, quota=quota, waiting=waiting)


def _own_quota(attributes: dict[str, Any], usual: int) -> int:
    given = attributes.get("quota")
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else usual


def _says_something(connection: HTTPConnection) -> bool:
    return "authorization" in connection.headers or "cookie" in connection.headers


def _network(connection: HTTPConnection) -> str | None:
    """Who shares a bucket; None where nobody can be told apart: this machine itself, or a proxy on it."""
    return _shared_by(address_of(connection))


@lru_cache(maxsize=10_000)
def _shared_by(text: str) -> str | None:
    if not text:
        return None
    address = ip_address(text)
    if address.is_loopback:
        return None
    return str(int(address) >> _NET) if isinstance(address, IPv6Address) else text


def _refuse(wait: float, what: str) -> None:
    if wait > 0:
        seconds = math.ceil(wait)
        raise Refused(TOO_OFTEN, f"too many requests {what}: wait {seconds} s", {"Retry-After": str(seconds)})
