"""Records in SQL: the same statements for SQLite and PostgreSQL, carried out by the one or the other's lane."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from windlass.apps.resumes.records.record import Holder, Overtaken, Record, now
from windlass.apps.resumes.records.tables import MIGRATIONS, TABLE, migrate

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Sequence

    from sqlalchemy.engine import Connection, RowMapping

    from windlass.apps.resumes.records.tables import Migration

T = TypeVar("T")
_NAMES = tuple(field.name for field in fields(Record))
_CONTENTS = ("extracted_text", "structured_content", "draft")
_WHOLE = [TABLE.c[name] for name in _NAMES]
_OUTSIDE = [TABLE.c[name] for name in _NAMES if name not in _CONTENTS]


class Lane(Protocol):
    """How statements come to a database: each call is one transaction."""

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        ...

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Do some work in a transaction."""
        ...

    async def migrated(self, work: Callable[[Connection], T]) -> T:
        """The same, while no other process does such work."""
        ...

    async def wipe(self) -> None:
        """Have what was removed overwritten."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class SqlRecords:
    """Records in a table."""

    def __init__(self, lane: Lane, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        self.lane, self._migrations = lane, migrations

    @property
    def address(self) -> str:
        """Where it is."""
        return self.lane.address

    async def prepare(self) -> None:
        """Apply the migrations that are missing."""
        await self.lane.migrated(lambda connection: migrate(connection, self._migrations))

    async def add(self, record: Record) -> Record:
        """Keep it, unless its user has one of the same file."""
        values = {name: getattr(record, name) for name in _NAMES}

        def work(connection: Connection) -> Record:
            insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            connection.execute(insert(TABLE).values(values).on_conflict_do_nothing(index_elements=_KEY))
            same = sa.and_(TABLE.c.user_id == record.user_id, TABLE.c.file_hash == record.file_hash)
            return _record(connection.execute(sa.select(*_WHOLE).where(same)).mappings().one())

        return await self.lane.run(work)

    async def get(self, record_id: str, user: str | None = None) -> Record | None:
        """A whole record."""
        found = await self._select(_WHOLE, sa.and_(TABLE.c.id == record_id, _of(user)), most=1)
        return found[0] if found else None

    async def find(self, user: str | None, most: int, after: str | None = None) -> list[Record]:
        """The newest, without contents."""
        place: sa.ColumnElement[bool] = sa.true()
        if after is not None:
            last = sa.select(TABLE.c.created_at, TABLE.c.id).where(TABLE.c.id == after, _of(user)).subquery()
            at = sa.select(last.c.created_at).scalar_subquery()
            place = sa.or_(TABLE.c.created_at < at, sa.and_(TABLE.c.created_at == at, TABLE.c.id < after))
        return await self._select(_OUTSIDE, sa.and_(_of(user), place), most=most)

    async def of_job(self, job_id: str) -> list[Record]:
        """All that a job tracks."""
        return await self._select(_OUTSIDE, TABLE.c.job_id == job_id)

    async def release(self, record_ids: Sequence[str]) -> None:
        """Have no job track these."""
        open_ = sa.and_(TABLE.c.id.in_(record_ids), TABLE.c.completed_at.is_(None))
        await self._update(open_, {"job_id": None, "fence": 0, "error": None, "updated_at": now()})

    async def attach(self, record_ids: Sequence[str], job_id: str) -> None:
        """Have a job track these."""
        free = sa.and_(TABLE.c.id.in_(record_ids), TABLE.c.job_id.is_(None))
        await self._update(free, {"job_id": job_id, "updated_at": now()})

    async def hand_over(self, record_ids: Sequence[str], before: str, job_id: str) -> None:
        """Have a job track those of these that another has not completed."""
        open_ = sa.and_(TABLE.c.id.in_(record_ids), TABLE.c.job_id == before, TABLE.c.completed_at.is_(None))
        await self._update(open_, {"job_id": job_id, "fence": 0, "error": None, "updated_at": now()})

    async def begin(self, record_id: str, holder: Holder) -> Record:
        """The record, for this attempt alone."""
        free = sa.or_(TABLE.c.job_id.is_(None), sa.and_(_tracked(holder), TABLE.c.fence <= holder.token))
        update = sa.update(TABLE).where(TABLE.c.id == record_id, free).values(job_id=holder.job, fence=holder.token)

        def work(connection: Connection) -> Record:
            if connection.execute(update).rowcount != 1:
                raise Overtaken
            return _record(connection.execute(sa.select(*_WHOLE).where(TABLE.c.id == record_id)).mappings().one())

        return await self.lane.run(work)

    async def write(self, record_id: str, holder: Holder, **changed: Any) -> None:
        """Change it, if it is the holder's."""
        mine = sa.and_(TABLE.c.id == record_id, _tracked(holder), TABLE.c.fence == holder.token)
        statement = sa.update(TABLE).where(mine).values({"updated_at": now(), **changed})

        def work(connection: Connection) -> None:
            if connection.execute(statement).rowcount != 1:
                raise Overtaken

        await self.lane.run(work)

    async def used(self, record_id: str) -> None:
        """Count one use."""
        await self._update(TABLE.c.id == record_id, {"usage_count": TABLE.c.usage_count + 1, "last_used_at": now()})

    async def remove(self, record_ids: Sequence[str]) -> int:
        """Remove these."""
        statement = sa.delete(TABLE).where(TABLE.c.id.in_(record_ids))
        return await self.lane.run(lambda connection: connection.execute(statement).rowcount)

    async def left(self, before: dt.datetime, most: int) -> list[Record]:
        """Records that nobody processes."""
        still = sa.and_(TABLE.c.job_id.is_(None), TABLE.c.completed_at.is_(None), TABLE.c.updated_at < before)
        return await self._select(_OUTSIDE, still, most=most)

    async def wipe(self) -> None:
        """Have what was removed overwritten."""
        await self.lane.wipe()

    async def close(self) -> None:
        """Close the connections."""
        await self.lane.close()

    async def _update(self, where: sa.ColumnElement[bool], values: dict[str, Any]) -> None:
        await self.lane.run(lambda connection: connection.execute(sa.update(TABLE).where(where).values(values)))

    async def _select(
        self, columns: Sequence[sa.Column[Any]], where: sa.ColumnElement[bool], *, most: int | None = None
    ) -> list[Record]:
        newest = TABLE.c.created_at.desc(), TABLE.c.id.desc()
        statement = sa.select(*columns).where(where).order_by(*newest).limit(most)
        return await self.lane.run(
            lambda connection: [_record(row) for row in connection.execute(statement).mappings()]
        )


_KEY = ["user_id", "file_hash"]


def _record(row: RowMapping) -> Record:
    return Record(**row)


def _of(user: str | None) -> sa.ColumnElement[bool]:
    return sa.true() if user is None else TABLE.c.user_id == user


def _tracked(holder: Holder) -> sa.ColumnElement[bool]:
    return TABLE.c.job_id.is_(None) if holder.job is None else TABLE.c.job_id == holder.job
