"""Types on SQLite: a row for every version of a type that workers have told of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.declared import Declared
from windlass.stores.contract import TypeInfo
from windlass.stores.contract.types import FORGOTTEN_AT_ONCE, UNSEEN
from windlass.stores.sqlite.news import NOTHING, News
from windlass.stores.sqlite.records import as_duration_ms, instant

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.sqlite.engine import Engine

_READ = "type, declared, version, first_seen, last_seen, announced_at"
ALL = f"SELECT {_READ} FROM windlass_types ORDER BY type, announced_at DESC, fingerprint"  # noqa: S608  # constants
OF = f"SELECT {_READ} FROM windlass_types WHERE type = ? ORDER BY announced_at DESC, fingerprint"  # noqa: S608  # constants
NEWEST = "SELECT fingerprint FROM windlass_types WHERE type = ? ORDER BY announced_at DESC, fingerprint LIMIT 1"
PUT = """
INSERT INTO windlass_types (type, fingerprint, declared, version, first_seen, last_seen, announced_at)
VALUES (:type, :fingerprint, :declared, :version, :now, :now, :now)
ON CONFLICT (type, fingerprint) DO UPDATE SET version = excluded.version, last_seen = excluded.last_seen,
    announced_at = CASE WHEN :announce THEN excluded.announced_at ELSE announced_at END
"""
FORGET = """
DELETE FROM windlass_types WHERE (type, fingerprint) IN (
    SELECT type, fingerprint FROM windlass_types WHERE last_seen <= ? ORDER BY last_seen LIMIT ?
)
"""


class SqliteTypes:
    """See `contract.Types` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def put(self, declared: Sequence[Declared], *, announce: bool = True, unseen: timedelta = UNSEEN) -> None:
        """Write what a worker handles, and forget what none has told of for long."""
        if declared:
            await self._engine.write(
                lambda db, now: self._put(db, now, declared, now - as_duration_ms(unseen), announce=announce),
                # The file has no word of its own for this, and it happens with a deploy.
                tell=lambda changed, _: News(anything=1) if changed else NOTHING,
            )

    async def list(self) -> Sequence[TypeInfo]:
        """Everything, by type, the newest version first."""
        rows = await self._engine.read(lambda db, _: db.execute(self._sql(ALL)).fetchall())
        return [_info(row) for row in rows]

    async def get(self, type_: str) -> Sequence[TypeInfo]:
        """The versions of one type, the newest first."""
        rows = await self._engine.read(lambda db, _: db.execute(self._sql(OF), (type_,)).fetchall())
        return [_info(row) for row in rows]

    def _put(
        self, db: sqlite3.Connection, now: int, declared: Sequence[Declared], since: int, *, announce: bool
    ) -> bool:
        types = sorted({one.type for one in declared})
        before = self._newest(db, types)
        for one in declared:
            values = {"type": one.type, "fingerprint": one.fingerprint, "declared": one.text, "version": one.version}
            db.execute(self._sql(PUT), {**values, "now": now, "announce": announce})
        db.execute(self._sql(FORGET), (since, FORGOTTEN_AT_ONCE))
        return self._newest(db, types) != before

    def _newest(self, db: sqlite3.Connection, types: Sequence[str]) -> Sequence[Any]:
        return [db.execute(self._sql(NEWEST), (type_,)).fetchone() for type_ in types]


def _info(row: Sequence[Any]) -> TypeInfo:
    type_, text, version, first_seen, last_seen, announced_at = row
    return TypeInfo(
        declared=Declared(type_, text, version),
        first_seen=instant(first_seen),
        last_seen=instant(last_seen),
        announced_at=instant(announced_at),
    )
