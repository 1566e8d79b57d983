"""The raw loop on PostgreSQL: one table, batched claim and completion, nothing else. What windlass is measured by.

It makes ids and writes JSON as any queue must, keeps every finished row, commits synchronously, and does one statement
per insert, claim and completion: no history, no fencing, no limits, no views.
"""

from __future__ import annotations

import json
import time
import uuid

import asyncpg

TABLE = """
CREATE TABLE raw_jobs (
    id text PRIMARY KEY, queue text NOT NULL, status text NOT NULL, payload text NOT NULL, priority int NOT NULL,
    run_at timestamptz NOT NULL, attempts int NOT NULL, created_at timestamptz NOT NULL, started_at timestamptz,
    finished_at timestamptz, result text
)
"""
INDEX = "CREATE INDEX raw_claim ON raw_jobs (queue, priority, run_at, id) WHERE status = 'queued'"
INSERT = """
INSERT INTO raw_jobs (id, queue, status, payload, priority, run_at, attempts, created_at)
SELECT id, 'default', 'queued', payload, 100, now(), 0, now() FROM unnest($1::text[], $2::text[]) AS new (id, payload)
"""
CLAIM = """
UPDATE raw_jobs SET status = 'processing', started_at = now(), attempts = attempts + 1
WHERE id = ANY (ARRAY(
    SELECT id FROM raw_jobs WHERE status = 'queued' AND queue = 'default'
    ORDER BY priority, run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
))
RETURNING id, payload, attempts, run_at, created_at, started_at
"""
COMPLETE = """
UPDATE raw_jobs SET status = 'succeeded', finished_at = now(), result = done.result
FROM unnest($1::text[], $2::text[]) AS done (id, result)
WHERE raw_jobs.id = done.id AND status = 'processing'
"""


class RawPostgres:
    """The loop's one table, in a schema of its own."""

    def __init__(self, url: str, schema: str) -> None:
        self._url, self._schema = url, schema
        self._db: asyncpg.Connection[asyncpg.Record] | None = None

    @property
    def db(self) -> asyncpg.Connection[asyncpg.Record]:
        """The one connection."""
        assert self._db is not None, "open() comes first"
        return self._db

    async def open(self) -> None:
        """Make the table and the index of what waits."""
        self._db = await asyncpg.connect(self._url, server_settings={"search_path": self._schema})
        await self.db.execute(f'CREATE SCHEMA "{self._schema}"')
        await self.db.execute(TABLE)
        await self.db.execute(INDEX)

    async def close(self) -> None:
        """Drop the schema and close the connection."""
        await self.db.execute("SET client_min_messages = warning")
        await self.db.execute(f'DROP SCHEMA "{self._schema}" CASCADE')
        await self.db.close()

    async def insert(self, n: int, batch: int) -> float:
        """Insert n jobs in batches; jobs per second."""
        begun = time.perf_counter()
        for start in range(0, n, batch):
            numbers = range(start, min(n, start + batch))
            await self.db.fetch(INSERT, [str(uuid.uuid4()) for _ in numbers], [json.dumps({"n": i}) for i in numbers])
        return n / (time.perf_counter() - begun)

    async def run(self, batch: int) -> float:
        """Claim and complete everything in batches; jobs per second."""
        done = 0
        begun = time.perf_counter()
        while True:
            claimed = await self.db.fetch(CLAIM, batch)
            if not claimed:
                return done / (time.perf_counter() - begun)
            for job in claimed:
                json.loads(job["payload"])
            await self.db.fetch(COMPLETE, [job["id"] for job in claimed], ["null"] * len(claimed))
            done += len(claimed)
