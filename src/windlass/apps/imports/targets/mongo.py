"""MongoDB: one bulk write a batch. A row that is inserted names its import, so that it counts after a crash, too."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bson import Decimal128
from bson.errors import InvalidDocument
from pymongo import AsyncMongoClient, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError

from windlass import SettingsError
from windlass.apps.imports.targets.target import Counts, Overtaken, Refused, Unwritable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.apps.imports.handler import ImportHandler
    from windlass.apps.imports.targets.target import Batch, Run

LEDGER, REFUSED, MARK = "windlass_imports", "windlass_import_rows", "_import"


class MongoTarget:
    """Rows as documents of a MongoDB database."""

    atomic = False
    exact = True

    def __init__(self, url: str, database: str, address: str) -> None:
        self._client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(url, w="majority", tz_aware=True)
        self._database = self._client[database]
        self._address = address
        self._resumed: dict[str, bool] = {}
        """imports whose next batch an attempt before may have written in part"""

    @property
    def address(self) -> str:
        """Where it is."""
        return self._address

    async def prepare(self, handler: ImportHandler) -> None:
        """Make the indexes that are missing."""
        key = [(label, 1) for label in handler.key_labels]
        try:
            await self._database[handler.table].create_index(key, unique=True)
        except DuplicateKeyError:
            raise SettingsError(
                f"the collection {handler.table} has several documents with the same {', '.join(handler.key_labels)},"
                " which is to tell them apart: remove all but one"
            ) from None
        await self._database[REFUSED].create_index([("job", 1), ("row", 1)], unique=True)

    async def begin(self, run: Run) -> Counts:
        """How far the import is."""
        try:
            found = await self._database[LEDGER].find_one_and_update(
                {"_id": run.job, "token": {"$lte": run.token}},
                {
                    "$set": {"token": run.token},
                    "$setOnInsert": {**asdict(Counts()), "began_at": dt.datetime.now(dt.UTC)},
                },
                upsert=True,
                return_document=True,
            )
        except DuplicateKeyError:  # it is there, with a newer token
            raise Overtaken from None
        assert found is not None  # noqa: S101  # it is made where there is none
        self._resumed[run.job] = True
        return Counts(**{name: found[name] for name in asdict(Counts())})

    async def write(self, run: Run, batch: Batch, before: Counts) -> Counts:
        """Write a batch; what a former attempt has written of it counts as it did then."""
        await self._hold(run, before)
        inserted = updated = changed = 0
        if batch.rows:
            inserted, updated, changed = await self._upsert(run, batch)
        if batch.refused:
            writes = [
                UpdateOne({"job": run.job, "row": one["row"]}, {"$set": dict(one)}, upsert=True)
                for one in batch.refused
            ]
            await self._database[REFUSED].bulk_write(writes, ordered=False)
        counts = before.plus(
            last_row=batch.last_row,
            total=batch.total,
            inserted=inserted,
            updated=updated + len(batch.repeats),
            unchanged=0 if run.dry else max(updated - changed, 0),
            failed=len(batch.refused),
            errors=batch.errors,
        )
        await self._keep(run, counts, before.last_row)
        return counts

    async def _upsert(self, run: Run, batch: Batch) -> tuple[int, int, int]:
        """How many rows were inserted, how many were there, and how many of those have changed."""
        handler, rows = run.handler, self._database[run.handler.table]
        documents = [
            {field.label: _stored(value) for field, value in zip(handler.fields, row, strict=True)}
            for row in batch.rows
        ]
        if run.dry:
            keys = [{label: one[label] for label in handler.key_labels} for one in documents]
            there = await rows.count_documents({"$or": keys})
            return len(documents) - there, there, 0
        writes = [
            UpdateOne(
                {label: one[label] for label in handler.key_labels},
                _change(handler, one, {"job": run.job, "row": number}),
                upsert=True,
            )
            for one, number in zip(documents, batch.numbers, strict=True)
        ]
        try:
            told = await rows.bulk_write(writes, ordered=False)
        except BulkWriteError as error:
            raise self._refusal(run, batch, error) from None
        except (InvalidDocument, OverflowError) as error:
            self._resumed[run.job] = True
            raise Unwritable(str(error)) from None
        inserted = told.upserted_count
        if self._resumed.pop(run.job, False):
            # Asked when all are there: an attempt that was stopped, and is not yet dead, may have written meanwhile.
            ours = {f"{MARK}.job": run.job, f"{MARK}.row": {"$in": list(batch.numbers)}}
            inserted = await rows.count_documents(_by_key(handler, documents) | ours)
        return inserted, len(documents) - inserted, told.modified_count

    def _refusal(self, run: Run, batch: Batch, error: BulkWriteError) -> Exception:
        """Which rows the database refuses; the others are written, and count when they are written again."""
        details: dict[str, Any] = dict(error.details or {})
        wrong: list[dict[str, Any]] = details.get("writeErrors", [])
        if not wrong:
            return error
        self._resumed[run.job] = True
        rows = {batch.numbers[int(one["index"])]: str(one["errmsg"]) for one in wrong}
        return Unwritable(str(wrong[0]["errmsg"]), rows)

    async def finish(self, run: Run, counts: Counts) -> Counts:
        """Nothing was set aside."""
        return counts

    async def _hold(self, run: Run, before: Counts) -> None:
        mine = {"_id": run.job, "token": run.token, "last_row": before.last_row}
        if await self._database[LEDGER].find_one(mine, {"_id": 1}) is None:
            raise Overtaken

    async def _keep(self, run: Run, counts: Counts, was: int) -> None:
        mine = {"_id": run.job, "token": run.token, "last_row": was}
        told = await self._database[LEDGER].update_one(mine, {"$set": asdict(counts)})
        if told.matched_count != 1:
            raise Overtaken

    async def refused(self, job: str, after: int, most: int) -> list[Refused]:
        """Rows that were refused."""
        found = self._database[REFUSED].find({"job": job, "row": {"$gt": after}}, sort=[("row", 1)], limit=most)
        return [Refused(row=one["row"], cells=one["cells"], errors=one["errors"]) async for one in found]

    async def forget(self, jobs: Sequence[str], handlers: Sequence[ImportHandler]) -> None:  # nothing is set aside
        """Forget what is kept of these imports."""
        await self._database[REFUSED].delete_many({"job": {"$in": list(jobs)}})
        await self._database[LEDGER].delete_many({"_id": {"$in": list(jobs)}})

    async def known(self, most: int) -> list[str]:
        """Imports that something is kept of."""
        return [
            one["_id"] async for one in self._database[LEDGER].find({}, {"_id": 1}, sort=[("began_at", 1)], limit=most)
        ]

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def _change(handler: ImportHandler, document: dict[str, Any], mark: dict[str, Any]) -> dict[str, Any]:
    others = {name: value for name, value in document.items() if name not in handler.key_labels}
    change: dict[str, Any] = {"$setOnInsert": {MARK: mark}}
    return change | {"$set": others} if others else change


def _by_key(handler: ImportHandler, documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What finds these documents by the index of the key."""
    first = handler.key_labels[0]
    return {first: {"$in": [one[first] for one in documents]}}


def _stored(value: Any) -> Any:
    """A value as documents keep it: decimals exactly, days as midnight UTC."""
    if isinstance(value, Decimal):
        return Decimal128(value)
    if isinstance(value, dt.datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return value
