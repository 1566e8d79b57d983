"""Settle: leases are extended, progress written and transitions applied, all fenced by the lease token."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from asyncpg import exceptions as pg

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.history import Happened
from windlass.core.spread import GROWTH, LAST
from windlass.core.status import Status
from windlass.core.transition import go_on, honour_cancel, refuse
from windlass.stores.contract import Extended, Lease, Notice, Report, Verdict
from windlass.stores.postgres.locking import line_locks, try_locks
from windlass.stores.postgres.notices import CHANGED, DUE
from windlass.stores.postgres.records import (
    AT,
    CLOCK,
    NEXT_TOKEN,
    STATUSES,
    append,
    as_ms,
    between,
    line_end,
    marked,
    token_end,
    whole,
)
from windlass.stores.postgres.unblocking import unblock, unblocking

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence
    from datetime import timedelta

    from windlass.core.transition import Transition
    from windlass.stores.postgres.connection import Ask, Link, Rows

# Fenced writes find their job by its id. That it is processing they test by its lease, which only a processing job has:
# a test of its status would tempt the planner to go by an index of the status instead.
#
# Touches no column of any index, so that the new version of the row stays on its page and no index hears of it.
EXTEND = f"""
WITH {CLOCK}, held AS MATERIALIZED (
    SELECT j.id, j.lease_token, j.cancel_requested_at IS NOT NULL AS cancel
    FROM unnest($2::text[], $3::bigint[]) AS told (id, token) JOIN windlass_jobs AS j ON j.id = told.id
    WHERE j.lease_expires_at IS NOT NULL AND j.lease_token = told.token AND j.worker_id = $1::text
), free AS MATERIALIZED (
    SELECT j.id FROM held JOIN windlass_jobs AS j ON j.id = held.id
    WHERE j.lease_expires_at IS NOT NULL AND j.lease_token = held.lease_token
    ORDER BY j.id FOR UPDATE OF j SKIP LOCKED
), extended AS (
    UPDATE windlass_jobs AS j SET lease_expires_at = {AT} + $4::interval, confirmed = j.lease_token
    FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM free)) RETURNING j.id
)
SELECT held.id, held.lease_token, held.cancel, extended.id IS NOT NULL
FROM held LEFT JOIN extended ON extended.id = held.id
"""  # noqa: S608  # made of constants
_BUSY = 1.0  # seconds to wait for rows that somebody else holds, but never more than this share of a lease:
_PATIENCE = 1 / 10  # the worker has little time, and an extension counts only once it is answered
_AGAIN = 0.02
WAIT = "200ms"
"""that an end waits for a row or a line: others change one in much less"""


async def extend(link: Link, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
    """Renew what is still the worker's and say what is not.

    A row that somebody holds does not hold up the others. Either that ends in a moment, as a rescue does, or it is a
    transaction that stays open, as the handler's own with the end of its job in it: then the lease is held and no more.
    """
    asked = {(one.id, one.token) for one in leases}
    held: dict[tuple[str, int], bool] = {}
    until = time.monotonic() + min(_BUSY, lease.total_seconds() * _PATIENCE)
    while asked:
        order = sorted(asked)
        rows = await link.fetch(
            EXTEND, worker_id, [one for one, _ in order], [token for _, token in order], whole(lease)
        )
        for key in asked:
            held.pop(key, None)
        held.update({(id_, token): cancel for id_, token, cancel, _ in rows})
        asked = {(id_, token) for id_, token, _, extended in rows if not extended}
        if not asked or time.monotonic() > until:
            break
        await asyncio.sleep(_AGAIN)
    return Extended(
        lost=frozenset(one.id for one in leases if (one.id, one.token) not in held),
        cancels=frozenset(one.id for one in leases if held.get((one.id, one.token))),
        held=frozenset(id_ for id_, _ in asked),
    )


CANCELS = """
SELECT id FROM windlass_jobs
WHERE status = 'processing' AND worker_id = $1::text AND cancel_requested_at IS NOT NULL
"""


async def cancels(link: Link, worker_id: str) -> frozenset[str]:
    """What this worker should stop."""
    return frozenset(id_ for (id_,) in await link.fetch(CANCELS, worker_id))


PROGRESS = f"""
WITH {CLOCK}, told AS (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) AS told (id, token, progress)
), written AS (
    UPDATE windlass_jobs AS j SET progress = told.progress::json, updated_at = {AT}
    FROM clock AS c, told
    WHERE j.id = told.id AND j.lease_expires_at IS NOT NULL AND j.lease_token = told.token
    RETURNING j.id, j.lease_token
)
SELECT id, lease_token, true FROM written
UNION ALL
SELECT id, token, false FROM told WHERE EXISTS (SELECT FROM windlass_jobs AS j WHERE j.id = told.id)
"""  # noqa: S608  # made of constants


async def report(link: Link, reports: Sequence[Report]) -> list[Verdict]:
    """Write progress, one verdict each; of several reports of one lease the last counts."""
    newest = {(one.lease.id, one.lease.token): one.progress.text(ascii_only=False) for one in reports}
    asked = sorted(newest)
    rows = await link.fetch(
        PROGRESS, [id_ for id_, _ in asked], [token for _, token in asked], [newest[one] for one in asked]
    )
    found: dict[tuple[str, int], bool] = {}
    for id_, token, written in rows:
        found[id_, token] = written or found.get((id_, token), False)
    kinds = {True: Verdict.APPLIED, False: Verdict.STALE, None: Verdict.MISSING}
    return [kinds[found.get((one.lease.id, one.lease.token))] for one in reports]


def _bucket(ms: str) -> str:
    """Mirrors core.spread.bucket_of."""
    return f"CASE WHEN {ms} > 0 THEN least(1 + ceil(ln({ms}::float8) / ln({GROWTH}::float8)), {LAST})::int ELSE 0 END"


def _added(name: str) -> str:
    """The sum of two objects of numbers."""
    each = f"SELECT * FROM jsonb_each_text(m.{name}) UNION ALL SELECT * FROM jsonb_each_text(excluded.{name})"  # noqa: S608  # constants
    sums = f"SELECT key, sum(value::bigint) AS n FROM ({each}) AS each GROUP BY key"  # noqa: S608  # the same
    return f"(SELECT jsonb_object_agg(key, n) FROM ({sums}) AS sums)"  # noqa: S608  # the same


# Rows of minutes are met in one order by all, so that no two settlements wait for each other's.
TALLY = f"""
    INSERT INTO windlass_minutes AS m (minute, queue, type, status, bucket, shard, n, duration_ms, wait_ms,
        least_run, most_run, least_wait, most_wait, runs, waits)
    SELECT date_trunc('minute', (SELECT now FROM clock)), queue, type, status, -1, pg_backend_pid() % 8,
        sum(n) FILTER (WHERE run IS NOT NULL), sum(took) FILTER (WHERE run IS NOT NULL),
        sum(waited) FILTER (WHERE run IS NOT NULL), min(least_run), max(most_run), min(least_wait), max(most_wait),
        jsonb_object_agg(run, n) FILTER (WHERE run IS NOT NULL),
        jsonb_object_agg(wait, n) FILTER (WHERE wait IS NOT NULL)
    FROM (
        SELECT queue, type, status, run, wait, count(*) AS n, sum(took) AS took, sum(waited) AS waited,
            min(took) AS least_run, max(took) AS most_run, min(waited) AS least_wait, max(waited) AS most_wait
        FROM (
            SELECT queue, type, status, took, waited, {_bucket("took")} AS run, {_bucket("waited")} AS wait
            FROM (
                SELECT queue, type, status, greatest(duration_ms, 0) AS took, greatest(wait_ms, 0) AS waited FROM ended
            ) AS ended
        ) AS each GROUP BY GROUPING SETS ((queue, type, status, run), (queue, type, status, wait))
    ) AS counted GROUP BY queue, type, status ORDER BY queue, type, status
    ON CONFLICT (minute, queue, type, status, bucket, shard) DO UPDATE SET n = m.n + excluded.n,
        duration_ms = m.duration_ms + excluded.duration_ms, wait_ms = m.wait_ms + excluded.wait_ms,
        least_run = least(m.least_run, excluded.least_run), most_run = greatest(m.most_run, excluded.most_run),
        least_wait = least(m.least_wait, excluded.least_wait), most_wait = greatest(m.most_wait, excluded.most_wait),
        runs = {_added("runs")}, waits = {_added("waits")}
"""  # noqa: S608  # made of constants
COUNTED = """
SELECT count(*), array_agg(DISTINCT limit_key) FILTER (WHERE limit_key IS NOT NULL),
    array_agg(DISTINCT unique_running) FILTER (WHERE unique_running IS NOT NULL),
    array_agg(DISTINCT next_id) FILTER (WHERE next_id IS NOT NULL AND status IN ('succeeded', 'failed', 'cancelled')),
    array_agg(id) FILTER (WHERE status = 'cancelled'), array_agg(queue) FILTER (WHERE gone_on)
FROM ended
"""
# An end that waits for a held row keeps all others of its batch waiting: these are then written without it.
BRIEF = "brief AS MATERIALIZED (SELECT CASE WHEN {n} IS NOT NULL THEN set_config('lock_timeout', {n}, true) END)"
RETURNED = "j.id, j.queue, j.type, j.status, j.duration_ms, j.wait_ms, j.limit_key, j.unique_running, j.next_id"

# The common end, for a whole batch of them.
SUCCEED = f"""
WITH {CLOCK}, {BRIEF.format(n="$5::text")}, ended AS (
    UPDATE windlass_jobs AS j SET status = 'succeeded', result = told.result::json, error = NULL, finished_at = {AT},
        updated_at = {AT}, duration_ms = {between(AT, "j.started_at")}, lease_expires_at = NULL, unique_key = NULL,
        {append("$4::text || j.lease_token || '}'")}
    FROM clock AS c, brief, unnest($1::text[], $2::bigint[], $3::text[]) AS told (id, token, result)
    WHERE j.id = told.id AND j.lease_expires_at IS NOT NULL AND j.lease_token = told.token
    RETURNING {RETURNED}, false AS gone_on
), tallied AS ({TALLY})
{COUNTED}
"""  # noqa: S608  # made of constants
# Any mixture of ends. Whether a job was asked to cancel is read from the row as it is when it is written: told.instead
# is the line for that case, and is there only for ends that would let the job run again. Whether the signal that a job
# would wait for has come is read likewise: told.goes_on is the line for that case, and is there only for such a job.
# What it would be blocked by is also the name that its signal is kept under.
_FINISHED = "(told.instead IS NULL OR j.cancel_requested_at IS NOT NULL)"
_GOES_ON = "(told.goes_on IS NOT NULL AND j.kept -> told.blocked_by IS NOT NULL)"
_QUEUED = f"(told.status = 'queued' OR {_GOES_ON})"
END = f"""
WITH {CLOCK}, {BRIEF.format(n="$12::text")}, ended AS (
    UPDATE windlass_jobs AS j SET
        status = CASE WHEN told.instead IS NOT NULL AND {_FINISHED} THEN 'cancelled' WHEN {_GOES_ON} THEN 'queued'
            ELSE told.status END,
        result = CASE WHEN {_FINISHED} THEN told.result::json ELSE j.result END,
        error = CASE WHEN {_FINISHED} THEN told.error::json ELSE coalesce(told.error::json, j.error) END,
        finished_at = CASE WHEN {_FINISHED} THEN {AT} END,
        run_at = CASE WHEN {_FINISHED} OR told.delay_ms IS NULL OR {_GOES_ON} THEN j.run_at
            ELSE {AT} + told.delay_ms * interval '1 millisecond' END,
        queued_at = CASE WHEN {_FINISHED} THEN j.queued_at WHEN {_QUEUED} THEN {AT}
            WHEN told.status = 'blocked' THEN j.queued_at END,
        blocked_by = CASE WHEN NOT ({_FINISHED} OR {_GOES_ON}) THEN told.blocked_by END,
        awaits = CASE WHEN told.blocked_by = '{Kind.FLOW.prefix}' || j.id AND NOT {_FINISHED} THEN 'end'
            ELSE j.awaits END,
        updated_at = {AT}, duration_ms = {between(AT, "j.started_at")}, lease_expires_at = NULL,
        attempts = j.attempts - told.give_back::int, crashes = j.crashes + told.crashed::int,
        lease_token = CASE WHEN $10::int = 1 THEN {NEXT_TOKEN} ELSE j.lease_token END,
        charged = CASE WHEN $10::int = 1 AND told.crashed THEN told.token ELSE j.charged END,
        {marked(_QUEUED)},
        worker_id = CASE WHEN {_FINISHED} THEN j.worker_id END,
        unique_key = CASE WHEN {_FINISHED} THEN NULL ELSE j.unique_key END,
        {
    append(
        f"CASE WHEN told.instead IS NOT NULL AND {_FINISHED} THEN told.instead WHEN {_GOES_ON} THEN told.goes_on"
        " ELSE told.line END || j.lease_token || '}'"
    )
}
    FROM clock AS c, brief, unnest(
        $1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::boolean[], $8::boolean[],
        $9::text[], $11::text[], $13::text[], $14::text[]
    ) AS told (id, token, status, result, error, delay_ms, give_back, crashed, line, instead, blocked_by, goes_on)
    WHERE j.id = told.id AND j.lease_expires_at IS NOT NULL AND j.lease_token = told.token
    RETURNING {RETURNED}, j.status = 'queued' AND told.goes_on IS NOT NULL AS gone_on
), tallied AS ({TALLY})
{COUNTED}
"""  # noqa: S608  # made of constants


class Settled(NamedTuple):
    """What a batch of ends led to."""

    verdicts: list[Verdict]
    freed: list[str]
    """the queue of each job that goes on"""


async def apply(link: Link, transitions: Sequence[Transition], *, plain: bool) -> Settled:
    """Write every transition whose token still is its job's; one verdict each, in order.

    What somebody else holds for longer than a moment is left, and so told: the others do not wait for it.

    `plain`: none of the jobs has a limit, a running key or a next job, so that nobody can be waiting for their end.
    """
    try:
        return await _apply(link, transitions, plain=plain)
    except pg.LockNotAvailableError:
        return await _apply_free(link, transitions)


async def _apply(link: Link, transitions: Sequence[Transition], *, plain: bool) -> Settled:
    statement, values, asked = written(transitions, wait=WAIT)
    own = gathering(transitions)
    if plain and not own:
        [(done, *_, cancelled, gone_on)] = await link.fetch(statement, *values)
        freed: list[str] = gone_on or []
    else:
        done, cancelled, freed = await link.transaction(lambda ask: end_and_unblock(link, ask, statement, values, own))
    if done == asked == len(transitions):
        return Settled(_as_written(transitions, [Verdict.APPLIED] * len(transitions), cancelled), freed)

    async def examine(ask: Ask) -> list[Verdict]:
        await ask(HURRY)
        return await _examine(ask, transitions)

    # Rare: some lease was lost, or some end written before.
    return Settled(_as_written(transitions, await link.transaction(examine), cancelled), freed)


def _as_written(
    transitions: Sequence[Transition], verdicts: Sequence[Verdict], cancelled: Collection[str] | None
) -> list[Verdict]:
    """The verdicts, and of those that were written which were written as cancelled instead."""
    instead = {one.id for one in transitions if not one.to.finished}.intersection(cancelled or ())
    return [
        Verdict.CANCELLED if verdict is Verdict.APPLIED and one.id in instead else verdict
        for one, verdict in zip(transitions, verdicts, strict=True)
    ]


HURRY = f"SET LOCAL lock_timeout = '{WAIT}'"
FREE = """
SELECT id, limit_key, unique_running, next_id FROM windlass_jobs
WHERE id = ANY ($1::text[]) AND (next_id IS NOT NULL) = $2::boolean ORDER BY id FOR UPDATE SKIP LOCKED
"""
THERE = "SELECT id FROM windlass_jobs WHERE id = ANY ($1::text[])"


async def _apply_free(link: Link, transitions: Sequence[Transition]) -> Settled:
    """Write what nobody holds: neither its record nor the line of those who wait for its end."""
    verdicts: dict[str, list[Verdict]] = {}
    freed: list[str] = []
    # Those that others await come last: their end may free further lines, and these are not known beforehand.
    for awaited in (False, True):
        with suppress(pg.LockNotAvailableError):
            told, queues = await link.transaction(partial(_end_free, link, transitions, awaited=awaited))
            verdicts |= told
            freed += queues
    held = {id_ for (id_,) in await link.fetch(THERE, sorted({one.id for one in transitions} - verdicts.keys()))}
    unsaid = {True: Verdict.HELD, False: Verdict.MISSING}
    each = {id_: iter(said) for id_, said in verdicts.items()}
    return Settled([next(each[one.id]) if one.id in each else unsaid[one.id in held] for one in transitions], freed)


async def _end_free(
    link: Link, transitions: Sequence[Transition], ask: Ask, *, awaited: bool
) -> tuple[dict[str, list[Verdict]], list[str]]:
    """What became of each that is free, by its id, and the queues of those that go on."""
    rows = await ask(FREE, sorted({one.id for one in transitions}), awaited)
    own = set(gathering(transitions))
    lines: dict[str, list[str]] = {}
    for id_, *keys in rows:
        freed_by_end = _lines(*([key] if key else None for key in keys))
        lines[id_] = line_locks(link, [*freed_by_end, *own.intersection([BlockedBy(Kind.FLOW, id_).text])])
    got = await try_locks(ask, [name for names in lines.values() for name in names])
    free = [one for one in transitions if one.id in lines and got.issuperset(lines[one.id])]
    if not free:
        return {}, []
    statement, values, asked = written(free, wait=WAIT)
    done, cancelled, freed = await end_and_unblock(link, ask, statement, values, gathering(free))
    each = [Verdict.APPLIED] * len(free) if done == asked == len(free) else await _examine(ask, free)
    each = _as_written(free, each, cancelled)
    verdicts: dict[str, list[Verdict]] = defaultdict(list)
    for one, verdict in zip(free, each, strict=True):
        verdicts[one.id].append(verdict)
    return verdicts, freed


async def end_and_unblock(
    link: Link, ask: Ask, statement: str, values: tuple[Any, ...], own: Sequence[str] = ()
) -> tuple[int, list[str] | None, list[str]]:
    """Write ends and release the jobs that waited for them, in one transaction; `own` are lines of jobs that gather.

    How many took, the ids of those that were cancelled, and the queues of those that go on.
    """
    [(done, *keys, cancelled, gone_on)] = await ask(statement, *values)
    freed = await unblock(link, ask, [*_lines(*keys), *own])
    return int(done), cancelled, [*(gone_on or ()), *freed]


def _lines(limits: list[str] | None, keys: list[str] | None, nexts: list[str] | None) -> list[str]:
    """The jobs that may be waiting for these ends, as COUNTED names them."""
    kinds = {Kind.LIMIT: limits, Kind.UNIQUE: keys, Kind.FLOW: nexts}
    return [BlockedBy(kind, key).text for kind, found in kinds.items() for key in found or ()]


def gathering(transitions: Sequence[Transition]) -> list[str]:
    """The lines of jobs that go on to wait for their children: these may all have ended by then."""
    return [one.blocked_by for one in transitions if one.blocked_by and Kind.FLOW.blocks(one.blocked_by)]


ENDED = "SELECT status, lease_token FROM windlass_jobs WHERE id = $1::text"
TELL = "SELECT pg_notify($1::text, notice) FROM unnest($2::text[]) AS notice"


def completing(link: Link, one: Transition, channel: str) -> Generator[tuple[str, tuple[Any, ...]], Rows, Verdict]:
    """One end inside the caller's own transaction, as steps that any driver can carry."""
    statement, values, _ = written([one])
    [(done, *keys, _, gone_on)] = yield statement, values
    if not done:
        found: Rows = yield ENDED, (one.id,)
        if not found:
            return Verdict.MISSING
        again = found[0][1] == one.token and STATUSES[found[0][0]] is not Status.PROCESSING
        return Verdict.APPLIED if again else Verdict.STALE
    freed = yield from unblocking(link, [*_lines(*keys), *gathering([one])])
    yield TELL, (channel, [notice.text() for notice in of_ends([one], {}, [*(gone_on or ()), *freed])])
    return Verdict.APPLIED


def of_ends(transitions: Sequence[Transition], queues: Mapping[str, str | None], freed: Sequence[str]) -> list[Notice]:
    """What tells of these ends; `queues` are those of their jobs, where they are known."""
    again = [one.id for one in transitions if one.to is Status.QUEUED]
    names = {queues.get(id_) for id_ in again} | set(freed)
    n = len(again) + len(freed)
    notices = [Notice.claimable(n, names.pop() if len(names) == 1 else None)] if n else []
    due = any(one.to in (Status.RETRYING, Status.SCHEDULED) or _waits(one) for one in transitions)
    return [CHANGED, *([DUE] if due else ()), *notices]


def written(
    transitions: Sequence[Transition], *, forced: bool = False, wait: str | None = None
) -> tuple[str, tuple[Any, ...], int]:
    """The statement that writes these, its values, and how many rows it should change.

    In the order of ids, so that two batches with jobs in common do not wait for each other crosswise. Of two ends of
    one lease the first counts. A forced release moves the token on. With `wait` its transaction waits no longer for
    what somebody else holds.
    """
    first: dict[tuple[str, int], Transition] = {}
    for one in transitions:
        first.setdefault((one.id, one.token), one)
    told = [first[key] for key in sorted(first)]
    ids, tokens = [one.id for one in told], [one.token for one in told]
    if not forced and all(one.to is Status.SUCCEEDED for one in told):
        results = [one.result_json for one in told]
        return SUCCEED, (ids, tokens, results, token_end(Happened.SUCCEEDED, Status.SUCCEEDED), wait), len(told)
    values = (
        ids,
        tokens,
        [one.to.value for one in told],
        [one.result_json for one in told],
        [one.error.text(ascii_only=False) if one.error else None for one in told],
        [None if one.delay is None else as_ms(one.delay) for one in told],
        [one.give_back for one in told],
        [one.crashed for one in told],
        [_line(one) for one in told],
        int(forced),
        [None if one.to.finished else _line(honour_cancel(one)) for one in told],
        wait,
        [one.blocked_by for one in told],
        [_line(go_on(one)) if _waits(one) else None for one in told] if any(map(_waits, told)) else None,
    )
    return END, values, len(told)


def _waits(one: Transition) -> bool:
    return Kind.SIGNAL.blocks(one.blocked_by)


def _line(one: Transition) -> str:
    return token_end(one.happened, one.to, note=one.note)


FOUND = """
SELECT id, status, lease_token, charged FROM windlass_jobs WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE
"""
REFUSED = f"""
WITH {CLOCK} UPDATE windlass_jobs AS j SET updated_at = {AT}, {append("$2::text")},
    crashes = j.crashes - $3::boolean::int, charged = CASE WHEN $3::boolean THEN NULL ELSE j.charged END
FROM clock AS c WHERE j.id = $1::text
"""  # noqa: S608  # made of constants


async def _examine(ask: Ask, transitions: Sequence[Transition]) -> list[Verdict]:
    rows = await ask(FOUND, sorted({one.id for one in transitions}))
    found = {id_: (STATUSES[status], token) for id_, status, token, _ in rows}
    charges = {id_: charged for id_, _, _, charged in rows}
    verdicts: list[Verdict] = []
    for one in transitions:
        if one.id not in found:
            verdicts.append(Verdict.MISSING)
            continue
        status, token = found[one.id]
        # Only the holder of a token can end its attempt, so the same token on a job that has moved on means that
        # this very ending was written before, by a call whose answer was lost.
        if token == one.token and status is not Status.PROCESSING:
            verdicts.append(Verdict.APPLIED)
            continue
        refusal = refuse(one, token, charges[one.id])
        line = line_end(Happened.REFUSED, status, token=one.token, note=refusal.note)
        await ask(REFUSED, one.id, line, refusal.acquits)
        if refusal.acquits:
            charges[one.id] = None
        verdicts.append(Verdict.STALE)
    return verdicts
