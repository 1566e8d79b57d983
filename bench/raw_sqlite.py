"""The raw loop on SQLite: a plain jobs table, batched claim and completion, nothing else. What windlass is measured by.

It makes ids and writes JSON as any queue must, keeps every finished row, and does one transaction per claim and one per
completion: no history, no fencing, no limits, no views.
"""

from __future__ import annotations

import json
import sqlite3
import time
import uuid

TABLE = """
CREATE TABLE raw_jobs (
    id TEXT PRIMARY KEY, queue TEXT, payload TEXT, status TEXT, priority INTEGER, run_at INTEGER, attempts INTEGER,
    created_at INTEGER, started_at INTEGER, finished_at INTEGER, result TEXT
)
"""
INDEX = "CREATE INDEX raw_claim ON raw_jobs (queue, priority, run_at, id) WHERE status = 'queued'"
INSERT = "INSERT INTO raw_jobs VALUES (?, 'default', ?, 'queued', 100, ?, 0, ?, NULL, NULL, NULL)"
CLAIM = """
UPDATE raw_jobs SET status = 'processing', started_at = ?, attempts = attempts + 1 WHERE rowid IN (
    SELECT rowid FROM raw_jobs WHERE status = 'queued' AND queue = 'default' ORDER BY priority, run_at, id LIMIT ?
) RETURNING id, payload
"""
COMPLETE = """
UPDATE raw_jobs SET status = 'succeeded', finished_at = ?, result = 'null'
WHERE id IN (SELECT value FROM json_each(?)) AND status = 'processing'
"""


class RawSqlite:
    """The loop's one connection."""

    def __init__(self, path: str, synchronous: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={synchronous}")
        self._db.execute(TABLE)
        self._db.execute(INDEX)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def insert(self, n: int, batch: int) -> float:
        """Insert n jobs in batches; jobs per second."""
        begun = time.perf_counter()
        for start in range(0, n, batch):
            now = time.time_ns() // 1_000_000
            rows = [(str(uuid.uuid4()), json.dumps({"n": i}), now, now) for i in range(start, min(n, start + batch))]
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(INSERT, rows)
            self._db.execute("COMMIT")
        return n / (time.perf_counter() - begun)

    def run(self, batch: int) -> float:
        """Claim and complete everything in batches; jobs per second."""
        done = 0
        begun = time.perf_counter()
        while True:
            self._db.execute("BEGIN IMMEDIATE")
            claimed = self._db.execute(CLAIM, (time.time_ns() // 1_000_000, batch)).fetchall()
            self._db.execute("COMMIT")
            if not claimed:
                return done / (time.perf_counter() - begun)
            for _, payload in claimed:
                json.loads(payload)
            ids = json.dumps([job_id for job_id, _ in claimed])
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(COMPLETE, (time.time_ns() // 1_000_000, ids))
            self._db.execute("COMMIT")
            done += len(claimed)
