"""Advisory locks, of transactions only, and the order they are taken in.

Keys come before rows, and rows before lines: an insert or retry takes the locks of unique and idempotency keys and
of bounded queues, then changes rows; the end of an attempt changes its row, then takes the lock of the lines that
waited for it. Within each step the order is that of the locks' numbers: where cancelling a job would free further
lines, all of these are taken at once. Rows that a line frees are changed only if nobody else is at them. A claim holds
rows first, so it only tries, and leaves for later what it does not get. So no two wait for each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.stores.postgres.connection import Ask, Link

LOCK = """
SELECT pg_advisory_xact_lock(n) FROM (SELECT DISTINCT hashtextextended(of, 0) AS n FROM unnest($1::text[]) AS of
ORDER BY 1) AS numbers
"""
TRY = """
SELECT of, pg_try_advisory_xact_lock(hashtextextended(of, 0)) FROM unnest($1::text[]) AS of
"""


def key_locks(link: Link, keys: Iterable[str]) -> list[str]:
    """The locks of unique keys: a transaction takes the lock of a key before it gives the key a holder."""
    return [f"{link.scope}:key:{key}" for key in keys]


def line_locks(link: Link, lines: Iterable[str]) -> list[str]:
    """The locks of lines: a transaction takes the lock of a line before it lets a job of it run, wait or go on."""
    return [f"{link.scope}:line:{line}" for line in lines]


async def lock(ask: Ask, locks: Iterable[str]) -> None:
    """Take all of these until the transaction ends."""
    wanted = sorted(set(locks))
    if wanted:
        await ask(LOCK, wanted)


async def try_locks(ask: Ask, locks: Iterable[str]) -> set[str]:
    """Take those of these that nobody else has."""
    wanted = sorted(set(locks))
    return {name for name, got in await ask(TRY, wanted) if got} if wanted else set()
