"""Insert: drafts become rows, in a statement of their own or inside the caller's transaction.

What is asked of the database is written as a generator of statements, so that any driver, synchronous or not, can carry
it: it yields a statement with its values and is sent the rows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from windlass.core.admission import Holder, Known, judge
from windlass.core.blocked import Kind
from windlass.core.draft import Draft
from windlass.core.errors import StoreUnavailable
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.contract import Created, Inserted, Replaced
from windlass.stores.postgres.connection import carry
from windlass.stores.postgres.joining import elsewhere, located
from windlass.stores.postgres.locking import LOCK, key_locks
from windlass.stores.postgres.notices import channel_of, of_drafts
from windlass.stores.postgres.records import (
    AT,
    CLOCK,
    STATUSES,
    TURNS,
    append,
    as_ms,
    epoch,
    floored,
    line_end,
    marked,
)
from windlass.stores.postgres.turns import Turns, taking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.core.draft import Options
    from windlass.stores.postgres.connection import Ask, Link, Rows, Steps

_TRIES = 5

# What drafts have in common is sent once, as JSON; what each has for itself, as arrays. Nothing is written
# into a queue with a largest depth, unless the caller has counted what waits there, nor on another installation.
INSERT = f"""
WITH {CLOCK}, asked AS MATERIALIZED (
    SELECT o.*, c.now, CASE WHEN o.delay_ms IS NOT NULL THEN c.now + o.delay_ms * interval '1 millisecond'
        ELSE coalesce(o.starts, c.now) END AS run_at
    FROM clock AS c, json_to_recordset($10::text::json) AS o (
        n int, queue text, priority int, max_attempts int, max_crashes int, timeout_ms bigint, delay_ms bigint,
        starts timestamptz, schedule text, tick timestamptz, parent_id text, replay_of text, correlation_id text,
        user_id text, entity_name text, entity_id text, tags text[], metadata text, trace text, queued text,
        scheduled text, blocked text, awaits text, takes text, rate_n int, rate_ms bigint
    )
), options AS MATERIALIZED (
    SELECT asked.*,
        CASE WHEN awaits IS NOT NULL THEN 'blocked' WHEN run_at > now THEN 'scheduled' ELSE 'queued' END AS status,
        CASE WHEN run_at > now THEN NULL ELSE now END AS queued_at, '{{"n":1,"at":' || {epoch("now")}
        || CASE WHEN awaits IS NOT NULL THEN blocked WHEN run_at > now THEN scheduled ELSE queued END AS line
    FROM asked
), gate AS MATERIALIZED (
    SELECT NOT $11::boolean AND EXISTS (
        SELECT FROM windlass_queue_settings AS s JOIN options AS o ON s.name = o.queue WHERE s.max_depth IS NOT NULL
    ) AS bounded, $12::text IS NULL OR EXISTS (
        SELECT FROM windlass_meta WHERE key = 'identity' AND value = $12::text
    ) AS here, {TURNS} AS turns
), opened AS (
    INSERT INTO windlass_queues (name)
    SELECT DISTINCT o.queue FROM options AS o, gate
    WHERE gate.here AND NOT gate.bounded AND NOT EXISTS (SELECT FROM windlass_queues AS q WHERE q.name = o.queue)
), made AS (
    INSERT INTO windlass_jobs (
        id, type, payload, unique_key, unique_queued, unique_running, idempotency_key, limit_key, limit_n,
        queue, status, priority, run_at, max_attempts, max_crashes, timeout_ms, created_at, updated_at, queued_at,
        schedule, tick, parent_id, replay_of, correlation_id, user_id, entity_name, entity_id, tags, metadata, trace,
        history, rate_key, rate_n, rate_ms, fair_key, next_id, awaits, takes, blocked_by
    )
    SELECT d.id, d.type, d.payload::json, d.unique_queued, d.unique_queued, d.unique_running, d.idempotency_key,
        d.limit_key, d.limit_n,
        o.queue, o.status, o.priority, CASE WHEN d.turn IS NOT NULL AND o.status = 'queued'
        THEN timestamptz 'epoch' + d.turn * interval '1 millisecond' ELSE o.run_at END,
        o.max_attempts, o.max_crashes, o.timeout_ms, o.now, o.now, o.queued_at,
        o.schedule, o.tick, o.parent_id, o.replay_of, o.correlation_id, o.user_id, o.entity_name, o.entity_id, o.tags,
        o.metadata::json, o.trace, o.line, d.rate_key, o.rate_n, o.rate_ms,
        CASE WHEN d.fair_key IS NULL AND gate.turns THEN '' ELSE d.fair_key END, d.next_id, o.awaits, o.takes,
        CASE WHEN o.awaits IS NOT NULL THEN '{Kind.FLOW.prefix}' || d.id END
    FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::int[],
        $14::text[], $15::text[], $16::text[], $17::bigint[]
    ) AS d (
        id, type, payload, unique_queued, unique_running, idempotency_key, limit_key, limit_n, n, rate_key, fair_key,
        next_id, turn
    )
    JOIN options AS o ON o.n = d.n, gate
    WHERE gate.here AND NOT gate.bounded
    ON CONFLICT DO NOTHING RETURNING 1
)
SELECT gate.here, gate.bounded, (SELECT count(*) FROM made), (
    SELECT string_agg(pg_notify($13::text, notice)::text, '') FROM unnest($18::text[]) AS notice
    WHERE gate.here AND NOT gate.bounded
)
FROM gate
"""  # noqa: S608  # made of constants


async def insert(link: Link, drafts: Sequence[Draft]) -> list[Inserted]:
    """One verdict per draft, in order."""
    if all(map(_plain, drafts)):
        turns = await carry(link.fetch, taking(drafts))
        [(_, bounded, *_)] = await link.fetch(INSERT, *_values(drafts, turns))
        if not bounded:
            return [Created(draft.id) for draft in drafts]
    return await link.transaction(lambda ask: insert_in(link, ask, drafts))


async def insert_in(link: Link, ask: Ask, drafts: Sequence[Draft]) -> list[Inserted]:
    """The same inside a transaction of this store's own."""
    return await carry(ask, carefully(link, drafts))


def joining(link: Link, drafts: Sequence[Draft]) -> Steps[list[Inserted]]:
    """The same inside the caller's own transaction, whose commit also sends the notices."""
    yield from located(link)
    channel, plain = channel_of(link), all(map(_plain, drafts))
    fast: Sequence[Draft] = drafts if plain else ()
    turns = yield from taking(fast)
    [(here, bounded, *_)] = yield INSERT, _values(fast, turns, link.identity, channel)
    if not here:
        raise elsewhere(link)
    if bounded or not plain:
        return (yield from carefully(link, drafts, channel))
    return [Created(draft.id) for draft in drafts]


def _plain(draft: Draft) -> bool:
    return draft.unique_queued is None and draft.idempotency_key is None


def _values(
    drafts: Sequence[Draft],
    turns: Turns,
    identity: str | None = None,
    channel: str | None = None,
    *,
    checked: bool = False,
) -> tuple[Any, ...]:
    # All at once: one by one, the fields of a thousand drafts take as long as a tenth of their insert.
    columns: list[Sequence[Any]] = [*zip(*drafts, strict=True)] or [()] * len(Draft._fields)
    of = dict(zip(Draft._fields, columns, strict=True))
    options: dict[int, Options] = {id(options): options for options in of["options"]}
    numbers = {key: n for n, key in enumerate(options)}
    fair_keys = _column(of["fair_key"])
    return (
        list(of["id"]),
        list(of["type"]),
        list(of["payload_json"]),
        _column(of["unique_queued"]),
        _column(of["unique_running"]),
        _column(of["idempotency_key"]),
        _column(of["limit_key"]),
        _column(of["limit"]),
        [numbers[key] for key in map(id, of["options"])],
        json.dumps([_options(numbers[key], shared) for key, shared in options.items()], ensure_ascii=False),
        checked,
        identity,
        channel,
        _column(of["rate_key"]),
        fair_keys,
        _column(of["next_id"]),
        None if fair_keys is None else _column([turns.take(draft) for draft in drafts]),
        None if channel is None else [notice.text() for notice in of_drafts(drafts)],
    )


def _column(values: Sequence[Any]) -> list[Any] | None:
    # A column that nobody uses is not sent: unnest() fills up what is missing.
    return None if values.count(None) == len(values) else list(values)


def _options(n: int, options: Options) -> dict[str, Any]:
    note = f"replay of {options.replay_of}" if options.replay_of else None
    told = {
        "n": n,
        "queue": options.queue,
        "priority": options.priority,
        "max_attempts": options.max_attempts,
        "max_crashes": options.max_crashes,
        "timeout_ms": None if options.timeout is None else as_ms(options.timeout),
        "delay_ms": None if options.delay is None else as_ms(options.delay),
        "starts": None if options.run_at is None else floored(options.run_at).isoformat(),
        "schedule": options.schedule,
        "tick": None if options.tick is None else floored(options.tick).isoformat(),
        "parent_id": options.parent_id,
        "replay_of": options.replay_of,
        "correlation_id": options.correlation_id,
        "user_id": options.user_id,
        "entity_name": options.entity_name,
        "entity_id": options.entity_id,
        "tags": list(options.tags) or None,
        "metadata": options.metadata_json,
        "trace": options.trace,
        "queued": line_end(Happened.ENQUEUED, Status.QUEUED, note=note),
        "scheduled": line_end(Happened.ENQUEUED, Status.SCHEDULED, note=note),
    }
    if options.awaits is not None:
        blocked = line_end(Happened.ENQUEUED, Status.BLOCKED, note=note)
        told |= {"blocked": blocked, "awaits": options.awaits, "takes": options.takes}
    if options.rate is not None:
        told |= {"rate_n": options.rate.n, "rate_ms": options.rate.per_ms}
    return told


BOUNDED = "SELECT name, max_depth FROM windlass_queue_settings WHERE name = ANY ($1::text[]) AND max_depth IS NOT NULL"
# Counted up to the largest depth only: how much more waits there does not matter.
FACTS = """
SELECT 'known', id, NULL, NULL, NULL FROM windlass_jobs WHERE id = ANY ($1::text[])
UNION ALL SELECT 'holder', unique_key, id, status, created_at FROM windlass_jobs WHERE unique_key = ANY ($2::text[])
UNION ALL SELECT 'same', key, job_id, NULL, NULL FROM windlass_idempotency
    WHERE key = ANY ($3::text[]) AND expires_at > statement_timestamp()
UNION ALL SELECT 'depth', name, ((
    SELECT count(*) FROM (SELECT FROM windlass_jobs WHERE status = 'queued' AND queue = name LIMIT most) AS queued
) + (
    SELECT count(*) FROM (
        SELECT FROM windlass_jobs WHERE status IN ('scheduled', 'retrying', 'blocked') AND queue || '' = name LIMIT most
    ) AS others
))::text, NULL, NULL FROM unnest($4::text[], $5::int[]) AS bounded (name, most)
"""


def carefully(link: Link, drafts: Sequence[Draft], channel: str | None = None) -> Steps[list[Inserted]]:
    """Look before writing: drafts with keys, and queues with a largest depth, under the locks of those."""
    for _ in range(_TRIES):
        bounds: Rows = yield BOUNDED, (sorted({draft.options.queue for draft in drafts}),)
        keys = sorted({draft.unique_queued for draft in drafts if draft.unique_queued is not None})
        same = sorted({draft.idempotency_key for draft in drafts if draft.idempotency_key is not None})
        depths: dict[str, int] = dict(bounds)
        locks = key_locks(link, keys)
        locks += [f"{link.scope}:same:{key}" for key in same] + [f"{link.scope}:depth:{name}" for name in depths]
        if locks:
            yield LOCK, (sorted(locks),)
        facts: Rows = yield FACTS, ([draft.id for draft in drafts], keys, same, list(depths), list(depths.values()))
        turns = yield from taking(drafts)
        verdicts = yield from _Insertion(facts, depths, turns, channel).write(drafts)
        if verdicts is not None:
            return verdicts
    raise StoreUnavailable(f"others kept changing the same jobs on {link.place.address}: try again")


REMEMBER = """
INSERT INTO windlass_idempotency (key, job_id, expires_at)
SELECT key, job_id, date_trunc('milliseconds', statement_timestamp()) + ms * interval '1 millisecond'
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS told (key, job_id, ms)
ON CONFLICT (key) DO UPDATE SET job_id = excluded.job_id, expires_at = excluded.expires_at
"""
# As core.admission.replacement says, by the clock of the statement that writes.
_RUN_AT = """
CASE WHEN $6::bigint IS NULL THEN asked.run_at
    ELSE greatest(c.now, least(asked.run_at, j.created_at + $6::bigint * interval '1 millisecond')) END
"""
_WAITS = f"coalesce(starts_with(j.blocked_by, '{Kind.FLOW.prefix}'), false)"
REPLACE = f"""
WITH {CLOCK}, asked AS (
    SELECT CASE WHEN $4::bigint IS NOT NULL THEN c.now + $4::bigint * interval '1 millisecond'
        ELSE coalesce($5::text::timestamptz, c.now) END AS run_at
    FROM clock AS c
)
UPDATE windlass_jobs AS j SET payload = $2::text::json, priority = $3::int,
    run_at = CASE WHEN {_WAITS} THEN j.run_at ELSE {_RUN_AT} END,
    status = CASE WHEN {_WAITS} THEN 'blocked' WHEN {_RUN_AT} > c.now THEN 'scheduled' ELSE 'queued' END,
    queued_at = CASE WHEN {_WAITS} THEN j.queued_at WHEN {_RUN_AT} > c.now THEN NULL ELSE c.now END,
    updated_at = {AT}, blocked_by = CASE WHEN {_WAITS} THEN j.blocked_by END, {marked()},
    {append(f"CASE WHEN {_WAITS} THEN $9::text WHEN {_RUN_AT} > c.now THEN $8::text ELSE $7::text END")}
FROM clock AS c, asked
WHERE j.id = $1::text AND j.status IN ('scheduled', 'queued', 'blocked', 'retrying') RETURNING j.id
"""  # noqa: S608  # made of constants


class _Insertion:
    """Drafts judged one after another, each knowing those before it, then written in as few statements as can be."""

    def __init__(self, facts: Rows, depths: dict[str, int], turns: Turns, channel: str | None) -> None:
        self._most, self._turns, self._channel = depths, turns, channel
        self._known: set[str] = set()
        self._holders: dict[str, Holder] = {}
        self._same: dict[str, str] = {}
        self._depth: dict[str, int] = {}
        for kind, name, what, status, _ in facts:
            match kind:
                case "known":
                    self._known.add(name)
                case "holder":
                    self._holders[name] = Holder(what, STATUSES[status])
                case "same":
                    self._same[name] = what
                case _:
                    self._depth[name] = int(what)
        self._new: list[Draft] = []

    def write(self, drafts: Sequence[Draft]) -> Steps[list[Inserted] | None]:
        """One verdict each, or None when somebody was faster and all has to be looked at again."""
        verdicts: list[Inserted] = []
        remembered: list[tuple[str, str, int]] = []
        for draft in drafts:
            verdict = self._judge(draft)
            if isinstance(verdict, Replaced):
                if not (yield from self._flush()):
                    return None
                replaced: Rows = yield REPLACE, _replacement(draft, verdict.id)
                if not replaced:
                    return None
            elif verdict is None:
                verdict = Created(draft.id)
                self._new.append(draft)
                self._take(draft)
                window = draft.options.idempotency_window
                if draft.idempotency_key is not None and window is not None:
                    remembered.append((draft.idempotency_key, draft.id, as_ms(window)))
            verdicts.append(verdict)
        if not (yield from self._flush()):
            return None
        if remembered:
            keys, ids, windows = zip(*remembered, strict=True)
            yield REMEMBER, (list(keys), list(ids), list(windows))
        return verdicts

    def _flush(self) -> Steps[bool]:
        new, self._new = self._new, []
        if not new:
            return True
        rows: Rows = yield INSERT, _values(new, self._turns, None, self._channel, checked=True)
        return bool(rows[0][2] == len(new))

    def _judge(self, draft: Draft) -> Inserted | None:
        queue = draft.options.queue
        known = Known(
            is_there=draft.id in self._known,
            same=self._same.get(draft.idempotency_key or ""),
            holder=self._holders.get(draft.unique_queued or ""),
            depth=self._depth.get(queue, 0),
            most=self._most.get(queue),
        )
        return judge(draft, known)

    def _take(self, draft: Draft) -> None:
        self._known.add(draft.id)
        if draft.unique_queued is not None:
            self._holders[draft.unique_queued] = Holder(draft.id, Status.QUEUED)
        if draft.idempotency_key is not None and draft.options.idempotency_window is not None:
            self._same[draft.idempotency_key] = draft.id
        if draft.options.queue in self._depth:
            self._depth[draft.options.queue] += 1


def _replacement(draft: Draft, holder: str) -> tuple[Any, ...]:
    options = draft.options
    starts: datetime | None = options.run_at
    return (
        holder,
        draft.payload_json,
        options.priority,
        None if options.delay is None else as_ms(options.delay),
        None if starts is None else floored(starts).isoformat(),
        None if options.longest_wait is None else as_ms(options.longest_wait),
        line_end(Happened.REPLACED, Status.QUEUED),
        line_end(Happened.REPLACED, Status.SCHEDULED),
        line_end(Happened.REPLACED, Status.BLOCKED),
    )
