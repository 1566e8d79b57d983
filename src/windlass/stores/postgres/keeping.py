"""Keeping: what jobs remember is written under their lease; signals come in, and their time runs out."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from asyncpg import exceptions as pg

from windlass.core.blocked import Kind
from windlass.core.history import Happened
from windlass.core.kept import NULL
from windlass.core.status import Status
from windlass.stores.contract import Verdict
from windlass.stores.postgres.notices import CHANGED
from windlass.stores.postgres.records import AT, CLOCK, added, append, line_end, marked
from windlass.stores.postgres.settling import BRIEF, TELL, WAIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import Keep
    from windlass.stores.postgres.connection import Link, Rows, Steps

_TOLD = "told AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) AS told (id, token, kept))"
_FENCED = "j.id = told.id AND j.lease_expires_at IS NOT NULL AND j.lease_token = told.token"
_THERE = "SELECT id, token, 'stale' FROM told WHERE EXISTS (SELECT FROM windlass_jobs AS j WHERE j.id = told.id)"
# Touches no column of any index, so that the new version of the row stays on its page. Of what is told of one lease the
# first row counts.
KEEP = f"""
WITH {CLOCK}, {BRIEF.format(n="$4::text")}, {_TOLD}, written AS (
    UPDATE windlass_jobs AS j SET {added("told.kept::jsonb")}, updated_at = {AT}
    FROM clock AS c, brief, told WHERE {_FENCED} RETURNING j.id, j.lease_token
)
SELECT id, lease_token, 'applied' FROM written
UNION ALL {_THERE}
"""  # noqa: S608  # made of constants
KEEP_FREE = f"""
WITH {CLOCK}, {_TOLD}, free AS MATERIALIZED (
    SELECT j.id FROM told JOIN windlass_jobs AS j ON {_FENCED} ORDER BY j.id FOR UPDATE OF j SKIP LOCKED
), written AS (
    UPDATE windlass_jobs AS j SET {added("told.kept::jsonb")}, updated_at = {AT}
    FROM clock AS c, told WHERE {_FENCED} AND j.id = ANY (ARRAY(SELECT id FROM free)) RETURNING j.id, j.lease_token
)
SELECT id, lease_token, 'applied' FROM written
UNION ALL SELECT told.id, told.token, 'held' FROM told JOIN windlass_jobs AS j ON {_FENCED}
UNION ALL {_THERE}
"""  # noqa: S608  # made of constants


async def keep(link: Link, keeps: Sequence[Keep]) -> list[Verdict]:
    """Write each value under its lease, one verdict each.

    What somebody else holds for longer than a moment is left, and so told: the others do not wait for it.
    """
    values = _values(keeps)
    try:
        rows = await link.fetch(KEEP, *values, WAIT)
    except pg.LockNotAvailableError:
        rows = await link.fetch(KEEP_FREE, *values)
    return _verdicts(keeps, rows)


def keeping(keep: Keep, channel: str) -> Steps[Verdict]:
    """One value inside the caller's own transaction, as steps that any driver can carry."""
    rows: Rows = yield KEEP, (*_values([keep]), None)
    [verdict] = _verdicts([keep], rows)
    if verdict is Verdict.APPLIED:
        yield TELL, (channel, [CHANGED.text()])
    return verdict


def _values(keeps: Sequence[Keep]) -> tuple[Any, ...]:
    """In the order of ids, so that two batches with jobs in common do not wait for each other crosswise."""
    texts: defaultdict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for keep in keeps:
        texts[keep.lease.id, keep.lease.token][keep.name] = keep.json
    leases = sorted(texts)
    values = [json.dumps(texts[lease], ensure_ascii=False) for lease in leases]
    return [id_ for id_, _ in leases], [token for _, token in leases], values


def _verdicts(keeps: Sequence[Keep], rows: Rows) -> list[Verdict]:
    verdicts: dict[tuple[str, int], Verdict] = {}
    for id_, token, verdict in rows:
        verdicts.setdefault((id_, token), Verdict(verdict))
    return [verdicts.get((keep.lease.id, keep.lease.token), Verdict.MISSING) for keep in keeps]


# Orders of operators, each with its line: see `operating`.
_SIGNALS = "unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS told (id, line, name, value)"
_ADDED = added("jsonb_build_object(told.name, told.value)")
FREE = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET status = 'queued', run_at = {AT}, queued_at = {AT}, updated_at = {AT}, blocked_by = NULL,
    {_ADDED}, {marked()}, {append("told.line")}
FROM clock AS c, {_SIGNALS} WHERE j.id = told.id
"""  # noqa: S608  # made of constants
TAKE_EARLY = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET updated_at = {AT}, {_ADDED}, {append("told.line")}
FROM clock AS c, {_SIGNALS} WHERE j.id = told.id
"""  # noqa: S608  # made of constants

WAITS = f"starts_with(blocked_by, '{Kind.SIGNAL.prefix}')"
"""Whether a job waits for a signal: only a blocked one is blocked by something of this kind."""
_LATE = f"'the signal ' || substr(j.blocked_by, {len(Kind.SIGNAL.prefix) + 1}) || ' did not come in time'"
_NOTED = f"$2::text || ',\"note\":' || to_json({_LATE}) || '}}'"
# What a job is blocked by is also the name that its signal is kept under. A row that a signal is being written to is
# passed over, and one that it was written to is seen to wait no longer: exactly one of both frees it.
TIME_OUT = f"""
WITH {CLOCK}, late AS MATERIALIZED (
    SELECT id FROM windlass_jobs WHERE {WAITS} AND run_at <= (SELECT now FROM clock)
    ORDER BY run_at LIMIT $1::int FOR UPDATE SKIP LOCKED
)
UPDATE windlass_jobs AS j SET status = 'queued', queued_at = {AT}, updated_at = {AT}, blocked_by = NULL,
    {added(f"jsonb_build_object(j.blocked_by, '{NULL}')")}, {marked()}, {append(_NOTED)}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM late)) AND j.status || '' = 'blocked' RETURNING j.queue
"""  # noqa: S608  # made of constants


async def time_out(link: Link, n: int) -> list[str]:
    """Let go on at most `n` jobs whose signal has not come in time, and name the queue of each."""
    rows = await link.fetch(TIME_OUT, n, line_end(Happened.UNBLOCKED, Status.QUEUED)[:-1])
    return [queue for (queue,) in rows]
