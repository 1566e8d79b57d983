"""Wanting: what waits in the queues that a claim asks for, in order. Only reads."""

from __future__ import annotations

import json
import time
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from windlass.stores.sqlite.records import COLUMNS, KEPT

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping

    from windlass.stores.contract import Want

    Row = list[Any]
    Place = tuple[int, int, str]
    Ask = Callable[[str, Place, int], list[Row]]

_NAMES = (*KEPT.names, "seq")


def at(*names: str) -> tuple[int, ...]:
    """Where a row has these columns."""
    return tuple(map(_NAMES.index, names))


_ID, _PRIORITY, _RUN_AT = at("id", "priority", "run_at")
_ORDER = itemgetter(_PRIORITY, _RUN_AT, _ID)
_FIRST: Place = (-(2**63), -(2**63), "")  # before every priority, time and id
_MOST_READ = 500  # rows read at once from one queue

# From one queue that has something to the next by the index: queues that have nothing cost nothing.
WAITING = """
WITH RECURSIVE lines (queue) AS (
    SELECT min(queue) FROM windlass_jobs INDEXED BY windlass_jobs_claim WHERE status = 'queued'
    UNION ALL
    SELECT (
        SELECT min(queue) FROM windlass_jobs INDEXED BY windlass_jobs_claim
        WHERE status = 'queued' AND windlass_jobs.queue > lines.queue
    ) FROM lines WHERE queue IS NOT NULL
)
SELECT json_group_array(json_array(queue, (
    SELECT min(priority) FROM windlass_jobs INDEXED BY windlass_jobs_claim
    WHERE status = 'queued' AND windlass_jobs.queue = lines.queue
))) FROM lines WHERE queue IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM windlass_queues WHERE name = lines.queue AND paused_at IS NOT NULL)
"""
WAITING_OF = """
SELECT json_group_array(json_array(value, (
    SELECT min(priority) FROM windlass_jobs INDEXED BY windlass_jobs_claim WHERE status = 'queued' AND queue = value
))) FROM json_each(?)
WHERE NOT EXISTS (SELECT 1 FROM windlass_queues WHERE name = value AND paused_at IS NOT NULL)
"""


def lines(
    db: sqlite3.Connection,
    sql: Callable[[str], str],
    want: Want,
    reader: Reader,
    heads: Mapping[str, Place | None],
) -> list[Line]:
    """The queues that have something, each from its head on."""
    return [
        Line(reader, queue, level, n, want, head)
        for queue, level, n in _waiting(db, sql, want)
        if (head := heads.get(queue, _FIRST)) is not None
    ]


def _waiting(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> list[tuple[str, int, int]]:
    """Queues that have something, with the first priority there and how many may be taken."""
    if want.queues is None:
        text = db.execute(sql(WAITING)).fetchone()[0]
        allowances: Mapping[str, int] = {}
    else:
        allowances = {queue: n for queue, n in want.queues.items() if n > 0}
        text = db.execute(sql(WAITING_OF), (json.dumps(list(allowances)),)).fetchone()[0]
    return [(queue, level, allowances.get(queue, want.n)) for queue, level in _levels(text) if level is not None]


def _levels(text: str) -> list[tuple[str, int | None]]:
    levels: list[tuple[str, int | None]] = json.loads(text)
    return levels


# All rows come as one JSON text: sqlite3 gives up the interpreter lock at every row it steps to, and has to wait for it
# again while the event loop is busy. One step per batch lets SQLite and the handlers run at the same time.
CANDIDATES = f"""
SELECT json_group_array(json_array({COLUMNS}, seq)) FROM (
    SELECT * FROM windlass_jobs INDEXED BY windlass_jobs_claim
    WHERE status = 'queued' AND queue = ? AND (priority, run_at, id) > (?, ?, ?)
        AND type IN (SELECT value FROM json_each(?))
    ORDER BY priority, run_at, id LIMIT ?
)
"""  # noqa: S608  # COLUMNS is a constant


class Reader:
    """Reads what waits, and knows what that took."""

    def __init__(self, db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> None:
        self._db, self._statement, self._types = db, sql(CANDIDATES), _types(want)
        self.seconds = 0.0

    def __call__(self, queue: str, after: Place, n: int) -> list[Row]:
        began = time.thread_time()
        text = self._db.execute(self._statement, (queue, *after, self._types, n)).fetchone()[0]
        self.seconds += time.thread_time() - began
        rows: list[Row] = json.loads(text)
        return rows


def _types(want: Want) -> str:
    return json.dumps(sorted(want.types))


class Line:
    """What waits in one queue, in order, read when its turn has come and in batches that grow."""

    __slots__ = ("_ask", "_at_once", "_ended", "_head_at", "_next", "_rows", "_want", "allowance", "level", "queue")

    def __init__(self, ask: Ask, queue: str, level: int, allowance: int, want: Want, head: Place) -> None:
        self._ask, self.queue, self._want, self._head_at = ask, queue, want, head
        self._rows: list[Row] = []
        self._next = self._at_once = 0
        self._ended = False
        self.allowance = allowance
        self.level = level
        """the priority of the first that waits; before anything was read, of any type"""

    @property
    def waits(self) -> bool:
        """Whether a job of this queue may still be taken."""
        return self.allowance > 0 and not (self._ended and self._next == len(self._rows))

    @property
    def weight(self) -> int:
        """How many jobs its turn takes."""
        return self._want.weights.get(self.queue, 1)

    def turn(self, level: int, sharers: int, left: int | None = None) -> Iterator[Row]:
        """The rows of one turn, at most its weight, or what is left, of those let through; others are passed over."""
        weight = (left or self.weight) if sharers > 1 else self.allowance
        most = self.allowance - min(weight, self.allowance)
        while self.allowance > most and (self._next < len(self._rows) or self._head(sharers) is not None):
            row = self._rows[self._next]
            if row[_PRIORITY] != level:
                break
            self._next += 1
            yield row
        self._head(sharers)

    def _head(self, sharers: int) -> int | None:
        if self._next == len(self._rows) and not self._ended and self.allowance > 0:
            self._read(sharers)
        if self._next == len(self._rows):
            return None
        level: int = self._rows[self._next][_PRIORITY]
        self.level = level
        return level

    def _read(self, sharers: int) -> None:
        share = max(-(-self._want.n // sharers), self.weight)
        self._at_once = min(max(share, 2 * self._at_once), _MOST_READ)
        after = _ORDER(self._rows[-1]) if self._rows else self._head_at
        self._rows, self._next = self._ask(self.queue, after, self._at_once), 0
        self._ended = len(self._rows) < self._at_once


# By its index in order. What stands there with it at the same instant is still before the id.
HEAD = """
SELECT priority, run_at FROM windlass_jobs INDEXED BY windlass_jobs_claim
WHERE status = 'queued' AND queue = ? AND type IN (SELECT value FROM json_each(?)) ORDER BY priority, run_at, id LIMIT 1
"""


def find_heads(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> dict[str, Place | None]:
    """Where the first job that is wanted stands in each queue that has something. Only reads."""
    types, heads = _types(want), dict[str, "Place | None"]()
    for queue, _level, _n in _waiting(db, sql, want):
        head = db.execute(sql(HEAD), (queue, types)).fetchone()
        heads[queue] = None if head is None else (*head, "")
    return heads


def anything(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> bool:
    """Whether a claim would find something. Only reads, so an idle worker never takes the write lock."""
    types = _types(want)
    return any(db.execute(sql(HEAD), (queue, types)).fetchone() for queue, _level, _n in _waiting(db, sql, want))
