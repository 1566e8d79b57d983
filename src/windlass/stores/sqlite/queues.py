"""Queues on SQLite: a row each, from the first job or setting that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.keys import check_name
from windlass.stores.contract import DEPTH_CAP, Count, QueueInfo
from windlass.stores.sqlite.news import News, queued
from windlass.stores.sqlite.records import duration, maybe_instant

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.sqlite.engine import Engine

PAUSE = """
INSERT INTO windlass_queues (name, paused_at) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET paused_at = coalesce(paused_at, excluded.paused_at)
"""
_MOST_TOLD = 1000  # more workers than this are not woken by one notice
RESUME = "UPDATE windlass_queues SET paused_at = NULL WHERE name = ?"
LIMIT_DEPTH = """
INSERT INTO windlass_queues (name, max_depth) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET max_depth = excluded.max_depth
"""
ALL = "SELECT name, paused_at, max_depth FROM windlass_queues ORDER BY name"
# The indexes are named: left to itself SQLite walks all jobs that the queue ever had.
DEPTH = """
SELECT count(*) FROM (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_claim WHERE status = 'queued' AND queue = ? LIMIT ?
)
"""
PROCESSING = """
SELECT count(*) FROM (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_leases WHERE status = 'processing' AND queue = ? LIMIT ?
)
"""
NEXT_PRIORITY = """
SELECT priority FROM windlass_jobs INDEXED BY windlass_jobs_claim WHERE status = 'queued' AND queue = ? AND priority > ?
ORDER BY priority LIMIT 1
"""
OLDEST = """
SELECT min(queued_at) FROM (
    SELECT queued_at FROM windlass_jobs INDEXED BY windlass_jobs_claim
    WHERE status = 'queued' AND queue = ? AND priority = ? ORDER BY run_at LIMIT ?
)
"""
_FIRST, _PRIORITIES = 100, 50
"""how many of each priority are looked at for the longest wait, and of how many priorities"""


class SqliteQueues:
    """See `contract.Queues` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def list(self) -> Sequence[QueueInfo]:
        """Every queue, by name."""
        return await self._engine.read(self._all)

    async def pause(self, names: Sequence[str]) -> None:
        """Let nothing more be claimed from these."""
        checked = [check_name(name, "the queue") for name in names]
        await self._engine.write(
            lambda db, now: db.executemany(self._sql(PAUSE), [(name, now) for name in checked]).rowcount
        )

    async def resume(self, names: Sequence[str]) -> None:
        """Let them be claimed again."""
        await self._engine.write(lambda db, _: self._resume(db, names), tell=lambda news, _: news)

    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Set or lift the largest depth."""
        check_name(name, "the queue")
        await self._engine.write(lambda db, _: db.execute(self._sql(LIMIT_DEPTH), (name, max_depth)).rowcount)

    def _resume(self, db: sqlite3.Connection, names: Sequence[str]) -> News:
        db.executemany(self._sql(RESUME), [(name,) for name in names])
        depths = {name: db.execute(self._sql(DEPTH), (name, _MOST_TOLD)).fetchone()[0] for name in names}
        return queued(name for name, depth in depths.items() for _ in range(depth))

    def _all(self, db: sqlite3.Connection, now: int) -> Sequence[QueueInfo]:
        return [
            QueueInfo(
                name=name,
                paused_at=maybe_instant(paused_at),
                max_depth=max_depth,
                depth=self._count(db, DEPTH, name),
                processing=self._count(db, PROCESSING, name),
                oldest=self._oldest(db, name, now),
            )
            for name, paused_at, max_depth in db.execute(self._sql(ALL)).fetchall()
        ]

    def _count(self, db: sqlite3.Connection, statement: str, name: str) -> Count:
        found = db.execute(self._sql(statement), (name, DEPTH_CAP + 1)).fetchone()[0]
        return Count(min(found, DEPTH_CAP), found <= DEPTH_CAP)

    def _oldest(self, db: sqlite3.Connection, name: str, now: int) -> timedelta | None:
        waiting: list[int] = []
        priority = -(2**31)
        while len(waiting) < _PRIORITIES:
            row = db.execute(self._sql(NEXT_PRIORITY), (name, priority)).fetchone()
            if row is None:
                break
            [priority] = row
            waiting.append(db.execute(self._sql(OLDEST), (name, priority, _FIRST)).fetchone()[0])
        return duration(max(0, now - min(waiting))) if waiting else None
