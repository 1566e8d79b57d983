"""Expiring: what no worker has taken in time is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windlass.core.admission import EXPIRED
from windlass.stores.redis.records import told

if TYPE_CHECKING:
    from windlass.stores.redis.connection import Link

_AT_ONCE = 500  # jobs in one script: others wait for as long as it runs


class Expired(NamedTuple):
    """What was cancelled, how many jobs went on that had waited for it, and the time until something is due, or -1."""

    ids: tuple[str, ...]
    freed: int
    due: int


async def expire(link: Link, n: int) -> Expired:
    """Cancel at most `n` jobs whose time to begin is over."""
    expired: list[str] = []
    freed = 0
    while True:
        part = min(n - len(expired), _AT_ONCE)
        some, due, *ids = await link.run("expire", [part, told("windlass", EXPIRED)])
        expired += [id_.decode() for id_ in ids]
        freed += some
        if len(ids) < part or len(expired) >= n:
            return Expired(tuple(expired), freed, due)
