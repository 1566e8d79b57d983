"""Expiring: what no worker has taken in time is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windlass.core.admission import EXPIRED
from windlass.stores.contract import Action, Order
from windlass.stores.sqlite.operating import operate

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

_EXPIRES = "expires_at IS NOT NULL AND lease_token = 0 AND finished_at IS NULL"
OVER = f"""
SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_expiry
WHERE {_EXPIRES} AND expires_at <= ? ORDER BY expires_at LIMIT ?
"""  # noqa: S608  # made of constants
NEXT = f"SELECT min(expires_at) FROM windlass_jobs INDEXED BY windlass_jobs_expiry WHERE {_EXPIRES}"  # noqa: S608  # the same


class Expired(NamedTuple):
    """What was cancelled, and how many jobs went on that had waited for it."""

    ids: tuple[str, ...]
    freed: int


def expire(db: sqlite3.Connection, sql: Callable[[str], str], n: int, now: int) -> Expired:
    """Cancel at most `n` jobs whose time to begin is over."""
    ids = tuple(job_id for (job_id,) in db.execute(sql(OVER), (now, n)).fetchall())
    orders = [Order(id=job_id, action=Action.CANCEL, actor="windlass", reason=EXPIRED) for job_id in ids]
    return Expired(ids, operate(db, sql, orders, now).queued)


def next_expiry(db: sqlite3.Connection, sql: Callable[[str], str]) -> int | None:
    """When the time of the first job that no worker has taken is over."""
    at: int | None = db.execute(sql(NEXT)).fetchone()[0]
    return at
