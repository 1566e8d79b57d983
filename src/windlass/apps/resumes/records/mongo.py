"""MongoDB: a document for each record."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pymongo import AsyncMongoClient
from pymongo.errors import ConnectionFailure, DuplicateKeyError

from windlass import SchemaMismatch, StoreUnavailable
from windlass.apps.resumes.records.record import NAME, Holder, Overtaken, Record, now

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Generator, Sequence

VERSION = 1
"""of the collection and its indexes"""
_NAMES = tuple(field.name for field in fields(Record) if field.name != "id")
_OUTSIDE = {"extracted_text": 0, "structured_content": 0, "draft": 0}
_NEWEST = [("created_at", -1), ("_id", -1)]


class MongoRecords:
    """Records in a collection."""

    def __init__(self, url: str, database: str, address: str) -> None:
        self._client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(url, w="majority", tz_aware=True)
        self._database = self._client[database]
        self._records = self._database[NAME]
        self._address = address

    @property
    def address(self) -> str:
        """Where it is."""
        return self._address

    async def prepare(self) -> None:
        """Make the indexes that are missing, and write down the version."""
        with _answering():
            known = self._database[f"{NAME}_schema"]
            found = await known.find_one({"_id": NAME})
            version = 0 if found is None else int(found["version"])
            if version > VERSION:
                raise SchemaMismatch(
                    f"the collection {NAME} is at version {version}, this windlass knows {VERSION}: upgrade windlass"
                )
            await self._records.create_index([("user_id", 1), ("file_hash", 1)], unique=True)
            for keys in (["job_id"], ["user_id", "created_at"], ["created_at"]):
                await self._records.create_index([(key, 1) for key in keys])
            await known.update_one({"_id": NAME}, {"$set": {"version": VERSION}}, upsert=True)

    async def add(self, record: Record) -> Record:
        """Keep it, unless its user has one of the same file."""
        document = {"_id": record.id, **{name: getattr(record, name) for name in _NAMES}, "fence": 0}
        with _answering():
            try:
                await self._records.insert_one(document)
            except DuplicateKeyError:
                same = {"user_id": record.user_id, "file_hash": record.file_hash}
                found = await self._records.find_one(same)
                if found is None:  # removed between the two
                    raise StoreUnavailable("the resume was removed meanwhile: send it again") from None
                return _record(found)
        return record

    async def get(self, record_id: str, user: str | None = None) -> Record | None:
        """A whole record."""
        with _answering():
            found = await self._records.find_one({"_id": record_id, **_of(user)})
        return None if found is None else _record(found)

    async def find(self, user: str | None, most: int, after: str | None = None) -> list[Record]:
        """The newest, without contents."""
        place: dict[str, Any] = {}
        with _answering():
            if after is not None:
                last = await self._records.find_one({"_id": after, **_of(user)}, {"created_at": 1})
                if last is None:
                    return []
                at = last["created_at"]
                place = {"$or": [{"created_at": {"$lt": at}}, {"created_at": at, "_id": {"$lt": after}}]}
            found = self._records.find({**_of(user), **place}, _OUTSIDE, sort=_NEWEST, limit=most)
            return [_record(one) async for one in found]

    async def of_job(self, job_id: str) -> list[Record]:
        """All that a job tracks."""
        with _answering():
            return [_record(one) async for one in self._records.find({"job_id": job_id}, _OUTSIDE, sort=_NEWEST)]

    async def release(self, record_ids: Sequence[str]) -> None:
        """Have no job track these."""
        still = {"_id": {"$in": list(record_ids)}, "completed_at": None}
        values = {"job_id": None, "fence": 0, "error": None, "updated_at": now()}
        with _answering():
            await self._records.update_many(still, {"$set": values})

    async def attach(self, record_ids: Sequence[str], job_id: str) -> None:
        """Have a job track these."""
        free = {"_id": {"$in": list(record_ids)}, "job_id": None}
        with _answering():
            await self._records.update_many(free, {"$set": {"job_id": job_id, "updated_at": now()}})

    async def hand_over(self, record_ids: Sequence[str], before: str, job_id: str) -> None:
        """Have a job track those of these that another has not completed."""
        still = {"_id": {"$in": list(record_ids)}, "job_id": before, "completed_at": None}
        values = {"job_id": job_id, "fence": 0, "error": None, "updated_at": now()}
        with _answering():
            await self._records.update_many(still, {"$set": values})

    async def begin(self, record_id: str, holder: Holder) -> Record:
        """The record, for this attempt alone."""
        mine = {"job_id": holder.job, "fence": {"$lte": holder.token}}
        free = {"_id": record_id, "$or": [{"job_id": None}, mine]}
        held = {"$set": {"job_id": holder.job, "fence": holder.token}}
        with _answering():
            found = await self._records.find_one_and_update(free, held, return_document=True)
        if found is None:
            raise Overtaken
        return _record(found)

    async def write(self, record_id: str, holder: Holder, **changed: Any) -> None:
        """Change it, if it is the holder's."""
        mine = {"_id": record_id, "job_id": holder.job, "fence": holder.token}
        with _answering():
            told = await self._records.update_one(mine, {"$set": {"updated_at": now(), **changed}})
        if told.matched_count != 1:
            raise Overtaken

    async def used(self, record_id: str) -> None:
        """Count one use."""
        with _answering():
            change = {"$inc": {"usage_count": 1}, "$set": {"last_used_at": now()}}
            await self._records.update_one({"_id": record_id}, change)

    async def remove(self, record_ids: Sequence[str]) -> int:
        """Remove these."""
        with _answering():
            told = await self._records.delete_many({"_id": {"$in": list(record_ids)}})
        return told.deleted_count

    async def left(self, before: dt.datetime, most: int) -> list[Record]:
        """Records that nobody processes."""
        still = {"job_id": None, "completed_at": None, "updated_at": {"$lt": before}}
        with _answering():
            return [_record(one) async for one in self._records.find(still, _OUTSIDE, sort=_NEWEST, limit=most)]

    async def wipe(self) -> None:
        """MongoDB writes over removed documents by itself."""

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


@contextmanager
def _answering() -> Generator[None, None, None]:
    try:
        yield
    except ConnectionFailure as error:
        raise StoreUnavailable(f"the database of resumes does not answer: {type(error).__name__}") from None


def _record(found: dict[str, Any]) -> Record:
    return Record(id=str(found["_id"]), **{name: found[name] for name in _NAMES if name in found})


def _of(user: str | None) -> dict[str, Any]:
    return {} if user is None else {"user_id": user}
