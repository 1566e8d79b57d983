"""Requests under an idempotency key on SQLite: a row each, judged under the write lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.stores.contract import Begun, NewRequest, Standing
from windlass.stores.contract.requests import PRUNED_AT_ONCE, Recorded, judge
from windlass.stores.sqlite.records import as_duration_ms, as_ms, instant

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from windlass.stores.sqlite.engine import Engine

EXPIRED = """
DELETE FROM windlass_requests WHERE id IN (
    SELECT id FROM windlass_requests WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
)
"""
GET = "SELECT fingerprint, first_id, mark, held_until, expires_at, answer FROM windlass_requests WHERE id = ?"
PUT = """
INSERT OR REPLACE INTO windlass_requests (id, fingerprint, first_id, mark, held_until, expires_at)
VALUES (?, ?, ?, ?, ?, ?)
"""
FINISH = """
UPDATE windlass_requests SET answer = :answer
WHERE id = :id AND mark = :mark AND (answer IS NULL OR answer = :answer)
"""
RELEASE = "UPDATE windlass_requests SET held_until = ? WHERE id = ? AND mark = ? AND answer IS NULL"
FORGET = "DELETE FROM windlass_requests WHERE id = ? AND mark = ? AND answer IS NULL"


class SqliteRequests:
    """See `contract.Requests` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def begin(self, new: NewRequest) -> Standing:
        """Note that this is carried out now, unless it was or is."""
        return await self._engine.write(lambda db, now: self._begin(db, now, new))

    async def finish(self, id_: str, mark: str, answer: str) -> bool:
        """Keep the answer."""
        return await self._engine.write(
            lambda db, _: db.execute(self._sql(FINISH), {"answer": answer, "id": id_, "mark": mark}).rowcount > 0
        )

    async def release(self, id_: str, mark: str) -> bool:
        """Hold it no more."""
        return await self._engine.write(lambda db, now: db.execute(self._sql(RELEASE), (now, id_, mark)).rowcount > 0)

    async def forget(self, id_: str, mark: str) -> bool:
        """Remove it."""
        return await self._engine.write(lambda db, _: db.execute(self._sql(FORGET), (id_, mark)).rowcount > 0)

    def _begin(self, db: sqlite3.Connection, now: int, new: NewRequest) -> Standing:
        db.execute(self._sql(EXPIRED), (now, PRUNED_AT_ONCE))
        row = db.execute(self._sql(GET), (new.id,)).fetchone()
        known = None if row is None else _recorded(row)
        standing = judge(known, new, instant(now))
        if isinstance(standing, Begun):
            until = now + as_duration_ms(new.keep)
            if known is not None and known.expires_at > instant(now):
                until = as_ms(known.expires_at)
            held = now + as_duration_ms(new.hold)
            db.execute(self._sql(PUT), (new.id, new.fingerprint, standing.first_id, new.mark, held, until))
        return standing


def _recorded(row: Sequence[Any]) -> Recorded:
    fingerprint, first_id, mark, held_until, expires_at, answer = row
    return Recorded(fingerprint, first_id, mark, instant(held_until), instant(expires_at), answer)
