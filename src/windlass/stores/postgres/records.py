"""Between rows and values: what a job, a history line or an instant looks like in PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial

from windlass.core.fields import Kind, Origin
from windlass.core.history import HISTORY_LIMIT, Happened
from windlass.core.job import Error, Progress
from windlass.core.status import Status
from windlass.stores import lines
from windlass.stores.columns import Columns, reader, writer
from windlass.stores.postgres.connection import FIRST_TOKEN

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STATUSES = {status.value: status for status in Status}

KEPT = Columns()
COLUMNS = ", ".join(f"j.{name}" for name in KEPT.names)
"""Of a job called j, in the order `job_of` reads them."""
TYPES = {
    Kind.TEXT: "text",
    Kind.JSON: "text",
    Kind.INTEGER: "bigint",
    Kind.INSTANT: "timestamptz",
    Kind.DURATION: "bigint",
    Kind.TAGS: "text[]",
}
"""How values of new jobs are sent; `as_kept` makes of them what their columns hold."""

CLOCK = "clock AS MATERIALIZED (SELECT date_trunc('milliseconds', statement_timestamp()) AS now)"
"""The server's time, one for the whole statement; the first member of every WITH."""
AT = "greatest(c.now, j.updated_at)"
"""When a change of job j is made: now, but never before what its history tells of already."""

# Plans are kept, and while a table is small any index looks as good as another. So statements that are run for every
# line say what they look for in words that lead to one index only.
IS_BLOCKED = "(status = 'blocked' OR 'blocked' = status AND queued_at IS NOT NULL)"
"""Whether a job is blocked; the index of blocked jobs follows from it, and none can be looked up by its status."""

IS_EXPIRED = "coalesce(expires_at <= statement_timestamp() AND lease_token = 0, false)"
"""Whether a job's time to begin is over, and no worker has ever taken it."""


def slots_of(key: str) -> str:
    """How many run of a limit; the order is that of the index by limits, others would have to be sorted."""
    return f"""(
        SELECT count(*) FROM (
            SELECT FROM windlass_jobs WHERE status = 'processing' AND limit_key >= {key} AND limit_key <= {key}
            ORDER BY limit_key
        ) AS running
    )"""  # noqa: S608  # made of constants


NEXT_TOKEN = f"greatest(j.lease_token + 1, (SELECT {FIRST_TOKEN}))"
"""The token of a new lease of job j; the server is asked for its timeline once in a statement."""

TURNS = "EXISTS (SELECT FROM windlass_jobs WHERE status = 'queued' AND fair_key > '')"
"""Whether jobs with a fair key wait anywhere."""


# Where one that comes now, with a fair key that nobody else has, would stand in job j's queue and priority.
_NEXT = """coalesce(greatest((
        SELECT min(f.run_at) FROM windlass_jobs AS f
        WHERE f.status = 'queued' AND f.fair_key > '' AND f.queue || '' = j.queue AND f.priority = j.priority
    ), (
        SELECT max(f.floor) FROM windlass_jobs AS f
        WHERE f.status = 'queued' AND f.floor IS NOT NULL AND f.queue || '' = j.queue AND f.priority = j.priority
    )), c.now)"""


def marked(queued: str = "true") -> str:
    """What an UPDATE that queues job j, if `queued`, sets so that nobody who comes later, with a fair key, overtakes.

    Of one without a key: the key '' while others with one wait, by which those without are found. One with a key may
    come back to an old place: its floor says where those that come later would have stood without it.
    """
    return (
        f"fair_key = CASE WHEN j.fair_key IS NULL AND {queued} AND {TURNS} THEN '' ELSE j.fair_key END,"
        f" floor = CASE WHEN j.fair_key > '' AND {queued} THEN {_NEXT} END"
    )


def added(values: str) -> str:
    """What an UPDATE of job j sets so that it also keeps these; `values` is SQL for an object of texts by name."""
    return f"kept = coalesce(j.kept, '{{}}') || {values}"


def append(end: str) -> str:
    """One line appended to the history of job j inside an UPDATE that has the clock as c; `end` is SQL for its rest."""
    return (
        f"moves = j.moves + 1, history = CASE WHEN j.moves >= {HISTORY_LIMIT}"
        " THEN substr(j.history, strpos(j.history, chr(10)) + 1) ELSE j.history END"
        f" || chr(10) || '{{\"n\":' || (j.moves + 1) || ',\"at\":' || {epoch(AT)} || {end}"
    )


def epoch(instant: str) -> str:
    """SQL for an instant in milliseconds since 1970."""
    return f"(date_part('epoch', {instant}) * 1000)::bigint"


def between(later: str, earlier: str) -> str:
    """SQL for the milliseconds from one instant to another."""
    return f"(date_part('epoch', {later} - {earlier}) * 1000)::bigint"


@lru_cache(maxsize=1024)
def duration(ms: int) -> timedelta:
    """Milliseconds as a timedelta."""
    return timedelta(milliseconds=ms)


def as_ms(value: timedelta) -> int:
    """A timedelta in milliseconds, rounded up: never earlier than asked."""
    return -(-value // timedelta(milliseconds=1))


def whole(value: timedelta) -> timedelta:
    """The same as a timedelta."""
    return timedelta(milliseconds=as_ms(value))


def floored(value: datetime) -> datetime:
    """An instant in whole milliseconds, as the tables keep them."""
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


job_of = reader(
    {
        Kind.STATUS: STATUSES.__getitem__,
        Kind.DURATION: duration,
        Kind.ERROR: Error.of_text,
        Kind.PROGRESS: Progress.of_text,
        Kind.TAGS: tuple,
    },
    {"fair_key": lambda key: key or None},
)
"""The job of a row selected as COLUMNS."""

asked_of = writer(
    {
        Kind.INSTANT: lambda instant: floored(instant).isoformat(),
        Kind.DURATION: as_ms,
        Kind.TAGS: lambda tags: list(tags) or None,
    }
)
"""What new jobs have from their options, fit for JSON."""


def as_kept(table: str, origin: Origin) -> dict[str, str]:
    """SQL for the columns of new jobs whose values have this origin and were sent as the rows of a table."""
    return {
        name: f"{table}.{name}::json" if kind is Kind.JSON else f"{table}.{name}"
        for name, kind in KEPT.of(origin).items()
    }


line_end = partial(lines.line_end, ascii_only=False)
"""The rest of a history line after its number and instant."""


def token_end(happened: Happened, status: Status, actor: str | None = None, note: str | None = None) -> str:
    """The same for a line whose token the statement itself puts behind it, with a closing brace."""
    return f'{line_end(happened, status, actor, note=note)[:-1]},"token":'
