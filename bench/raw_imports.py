"""The bare chain: a limited child → batches → pydantic → bulk upsert. What imports are measured by.

No progress, no counts, no ledger, no names for what is wrong: a row that does not fit ends it. Its child has the limits
of windlass's and does not look through the file first.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import sys
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

NAMES = ("order_no", "customer", "email", "city", "quantity", "price", "placed_on", "note")
"""the columns, in order; the first is the key"""
SQL_TYPES = ("text PRIMARY KEY", "text", "text", "text", "bigint", "numeric", "date", "text")
_CONFLICT = f"ON CONFLICT (order_no) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in NAMES[1:])}"
_MEMORY = 1536 * 1024 * 1024


def child(size: int) -> None:
    """Read the workbook at standard input in one piece, and write batches: JSON after its length."""
    from python_calamine import CalamineWorkbook

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    out = sys.stdout.buffer
    rows = iter(CalamineWorkbook.from_filelike(sys.stdin.buffer).get_sheet_by_index(0).to_python())
    next(rows)
    batch: list[list[Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            _send(out, batch)
            batch = []
    if batch:
        _send(out, batch)
    out.flush()


def _send(out: Any, batch: list[list[Any]]) -> None:
    data = json.dumps(batch, default=date.isoformat, separators=(",", ":")).encode()
    out.write(len(data).to_bytes(4, "big") + data)


async def batches(file: Path, size: int) -> AsyncGenerator[list[list[Any]], None]:
    """What the child reads."""
    with file.open("rb") as opened:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.raw_imports", str(size)),
            stdin=opened,
            stdout=asyncio.subprocess.PIPE,
            limit=4 * 1024 * 1024,
        )
    assert process.stdout is not None, "it is a pipe"
    while head := await process.stdout.read(4):
        yield json.loads(await process.stdout.readexactly(int.from_bytes(head, "big")))
    if await process.wait():
        raise RuntimeError("the bare chain's child failed")


async def run(url: str, file: Path, size: int) -> float:
    """From the workbook into the table; seconds."""
    from pydantic import TypeAdapter

    from bench.imported import Bare

    rows: TypeAdapter[list[Bare]] = TypeAdapter(list[Bare])
    write, close = await _writer(url)
    began = time.perf_counter()
    async for batch in batches(file, size):
        checked = rows.validate_python([dict(zip(NAMES, row, strict=True)) for row in batch])
        await write([tuple(row.__dict__.values()) for row in checked])
    took = time.perf_counter() - began
    await close()
    return took


async def _writer(url: str) -> tuple[Callable[[list[Any]], Awaitable[None]], Callable[[], Awaitable[None]]]:
    return await {"sqlite": _sqlite, "postgresql": _postgres, "mongodb": _mongo}[url.partition(":")[0]](url)


async def _sqlite(url: str) -> Any:
    db = sqlite3.connect(url.removeprefix("sqlite:///").partition("?")[0], isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"CREATE TABLE bare ({_columns()})")
    upsert = f"INSERT INTO bare VALUES ({', '.join('?' * 8)}) {_CONFLICT}"  # noqa: S608  # names of this file's own

    async def write(rows: list[Any]) -> None:
        db.execute("BEGIN IMMEDIATE")
        db.executemany(upsert, [(*r[:5], str(r[5]), r[6].isoformat(), r[7]) for r in rows])
        db.execute("COMMIT")

    async def close() -> None:
        db.close()

    return write, close


async def _postgres(url: str) -> Any:
    import asyncpg

    dsn, _, schema = url.partition("?schema=")
    db = await asyncpg.connect(dsn)
    await db.execute(f'CREATE SCHEMA "{schema}"')
    await db.execute(f'SET search_path = "{schema}"')
    await db.execute(f"CREATE TABLE bare ({_columns()})")
    await db.execute("CREATE TEMPORARY TABLE incoming (LIKE bare) ON COMMIT DELETE ROWS")

    async def write(rows: list[Any]) -> None:
        async with db.transaction():
            await db.copy_records_to_table("incoming", records=rows)
            await db.execute(f"INSERT INTO bare SELECT * FROM incoming {_CONFLICT}")  # noqa: S608  # names of this file's own

    return write, db.close


async def _mongo(url: str) -> Any:
    from bson import Decimal128
    from pymongo import AsyncMongoClient, UpdateOne

    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(url)
    place = client.get_default_database()["bare"]
    await place.create_index("order_no", unique=True)

    def stored(value: Any) -> Any:
        if isinstance(value, Decimal):
            return Decimal128(value)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        return value

    async def write(rows: list[Any]) -> None:
        changes = [dict(zip(NAMES[1:], map(stored, row[1:]), strict=True)) for row in rows]
        writes = [
            UpdateOne({"order_no": row[0]}, {"$set": change}, upsert=True)
            for row, change in zip(rows, changes, strict=True)
        ]
        await place.bulk_write(writes, ordered=False)

    return write, client.close


def _columns() -> str:
    return ", ".join(f"{name} {kind}" for name, kind in zip(NAMES, SQL_TYPES, strict=True))


if __name__ == "__main__":
    child(int(sys.argv[1]))
