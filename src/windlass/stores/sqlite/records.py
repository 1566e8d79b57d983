"""Between rows and values: what a job, a history line or an instant looks like in SQLite."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from windlass.core.fields import Kind
from windlass.core.history import HISTORY_LIMIT, Happened
from windlass.core.job import Error, Progress
from windlass.core.status import Status
from windlass.stores import lines
from windlass.stores.columns import Columns, reader, writer

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STATUSES = {status.value: status for status in Status}

KEPT = Columns()
COLUMNS = ", ".join(KEPT.names)
"""In the order of a job's own fields."""

# One line appended to a job's history inside an UPDATE. The three parameters are the instant, what happened with the
# status it led to, and the rest of the object: all JSON that `line_parts` wrote.
APPEND = (
    f"CASE WHEN moves >= {HISTORY_LIMIT} THEN substr(history, instr(history, char(10)) + 1) ELSE history END"
    " || char(10) || '{\"n\":' || (moves + 1) || ',\"at\":' || ? || ?"
)


@lru_cache(maxsize=8192)
def instant(ms: int) -> datetime:
    """Milliseconds since 1970 as an aware datetime; cached because a batch shares its instants."""
    return EPOCH + timedelta(milliseconds=ms)


def maybe_instant(ms: int | None) -> datetime | None:
    """The same for a column that may be empty."""
    return None if ms is None else instant(ms)


@lru_cache(maxsize=1024)
def duration(ms: int) -> timedelta:
    """Milliseconds as a timedelta."""
    return timedelta(milliseconds=ms)


def as_ms(value: datetime) -> int:
    """An aware datetime in milliseconds since 1970."""
    return (value - EPOCH) // timedelta(milliseconds=1)


def as_duration_ms(value: timedelta) -> int:
    """A timedelta in milliseconds, rounded up: never earlier than asked."""
    return -(-value // timedelta(milliseconds=1))


job_of = reader(
    {
        Kind.STATUS: STATUSES.__getitem__,
        Kind.INSTANT: instant,
        Kind.DURATION: duration,
        Kind.ERROR: Error.of_text,
        Kind.PROGRESS: Progress.of_text,
        Kind.TAGS: lambda text: tuple(json.loads(text)),
    }
)
"""The job of a row selected as COLUMNS, which has more behind them or not."""

asked_of = writer(
    {
        Kind.INSTANT: as_ms,
        Kind.DURATION: as_duration_ms,
        Kind.TAGS: lambda tags: json.dumps(tags) if tags else None,
    }
)
"""What the rows of new jobs have from their options."""


line_end = lines.line_end
"""The rest of a history line after its number and instant, for APPEND's last parameter."""


def first_line(now: int, status: Status, note: str | None = None) -> str:
    """The line a job is born with."""
    return f'{{"n":1,"at":{now}{line_end(Happened.ENQUEUED, status, note=note)}'
