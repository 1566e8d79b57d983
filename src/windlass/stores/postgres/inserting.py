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
from windlass.core.fields import Origin
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.columns import of_draft
from windlass.stores.contract import Created, Inserted, Replaced
from windlass.stores.postgres.connection import carry
from windlass.stores.postgres.joining import elsewhere, located
from windlass.stores.postgres.locking import LOCK, key_locks
from windlass.stores.postgres.notices import channel_of, of_drafts
from windlass.stores.postgres.records import (
    AT,
    CLOCK,
    KEPT,
    STATUSES,
    TURNS,
    TYPES,
    append,
    as_kept,
    as_ms,
    asked_of,
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

_OWN, _ASKED = KEPT.of(Origin.DRAFT), KEPT.of(Origin.OPTIONS)
_FIRST_OWN = 8  # the number of the parameter from which on drafts have their own
_ARRAYS = ", ".join(f"${n}::{TYPES[kind]}[]" for n, kind in enumerate(_OWN.values(), _FIRST_OWN))
_MADE = {
    **as_kept("d", Origin.DRAFT),
    **as_kept("o", Origin.OPTIONS),
    "unique_key": "d.unique_queued",
    "fair_key": "CASE WHEN d.fair_key IS NULL AND gate.turns THEN '' ELSE d.fair_key END",
    "blocked_by": f"CASE WHEN o.awaits IS NOT NULL THEN '{Kind.FLOW.prefix}' || d.id END",
    "status": "o.status",
    "run_at": """CASE WHEN d.turn IS NOT NULL AND o.status = 'queued'
        THEN timestamptz 'epoch' + d.turn * interval '1 millisecond' ELSE o.run_at END""",
    "created_at": "o.now",
    "updated_at": "o.now",
    "queued_at": "o.queued_at",
    "expires_at": "o.now + o.expires_ms * interval '1 millisecond'",
    "history": "o.line",
}
"""The columns of a new job, of draft d and options o."""

# What drafts have in common is sent once, as JSON; what each has for itself, as arrays. Nothing is written
# into a queue with a largest depth, unless the caller has counted what waits there, nor on another installation.
INSERT = f"""
WITH {CLOCK}, asked AS MATERIALIZED (
    SELECT o.*, c.now, CASE WHEN o.delay_ms IS NOT NULL THEN c.now + o.delay_ms * interval '1 millisecond'
        ELSE coalesce(o.starts, c.now) END AS run_at
    FROM clock AS c, json_to_recordset($2::text::json) AS o (
        n int, delay_ms bigint, expires_ms bigint, starts timestamptz, queued text, scheduled text, blocked text,
        {", ".join(f"{name} {TYPES[kind]}" for name, kind in _ASKED.items())}
    )
), options AS MATERIALIZED (
    SELECT asked.*,
        CASE WHEN awaits IS NOT NULL THEN 'blocked' WHEN run_at > now THEN 'scheduled' ELSE 'queued' END AS status,
        CASE WHEN run_at > now THEN NULL ELSE now END AS queued_at, '{{"n":1,"at":' || {epoch("now")}
        || CASE WHEN awaits IS NOT NULL THEN blocked WHEN run_at > now THEN scheduled ELSE queued END AS line
    FROM asked
), gate AS MATERIALIZED (
    SELECT NOT $3::boolean AND EXISTS (
        SELECT FROM windlass_queue_settings AS s JOIN options AS o ON s.name = o.queue WHERE s.max_depth IS NOT NULL
    ) AS bounded, $4::text IS NULL OR EXISTS (
        SELECT FROM windlass_meta WHERE key = 'identity' AND value = $4::text
    ) AS here, {TURNS} AS turns
), opened AS (
    INSERT INTO windlass_queues (name)
    SELECT DISTINCT o.queue FROM options AS o, gate
    WHERE gate.here AND NOT gate.bounded AND NOT EXISTS (SELECT FROM windlass_queues AS q WHERE q.name = o.queue)
), made AS (
    INSERT INTO windlass_jobs ({", ".join(_MADE)})
    SELECT {", ".join(_MADE.values())}
    FROM unnest($1::int[], $6::bigint[], {_ARRAYS}) AS d (n, turn, {", ".join(_OWN)})
    JOIN options AS o ON o.n = d.n, gate
    WHERE gate.here AND NOT gate.bounded
    ON CONFLICT DO NOTHING RETURNING 1
)
SELECT gate.here, gate.bounded, (SELECT count(*) FROM made), (
    SELECT string_agg(pg_notify($5::text, notice)::text, '') FROM unnest($7::text[]) AS notice
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
    each: Sequence[Options] = columns[_OPTIONS]
    options = {id(shared): shared for shared in each}
    numbers = {key: n for n, key in enumerate(options)}
    fair = any(columns[_FAIR_KEY])
    return (
        [numbers[key] for key in map(id, each)],
        json.dumps([_options(numbers[key], shared) for key, shared in options.items()], ensure_ascii=False),
        checked,
        identity,
        channel,
        _column([turns.take(draft) for draft in drafts]) if fair else None,
        None if channel is None else [notice.text() for notice in of_drafts(drafts)],
        *map(_column, of_draft(columns)),
    )


_OPTIONS, _FAIR_KEY = Draft._fields.index("options"), Draft._fields.index("fair_key")


def _column(values: Sequence[Any]) -> list[Any] | None:
    # A column that nobody uses is not sent: unnest() fills up what is missing.
    return None if values.count(None) == len(values) else list(values)


def _options(n: int, options: Options) -> dict[str, Any]:
    note = f"replay of {options.replay_of}" if options.replay_of else None
    told = {
        "n": n,
        "delay_ms": None if options.delay is None else as_ms(options.delay),
        "expires_ms": None if options.expires is None else as_ms(options.expires),
        "starts": None if options.run_at is None else floored(options.run_at).isoformat(),
        "queued": line_end(Happened.ENQUEUED, Status.QUEUED, note=note),
        "scheduled": line_end(Happened.ENQUEUED, Status.SCHEDULED, note=note),
        "blocked": None if options.awaits is None else line_end(Happened.ENQUEUED, Status.BLOCKED, note=note),
        **dict(zip(_ASKED, asked_of(options), strict=True)),
    }
    return {name: value for name, value in told.items() if value is not None}


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
    expires_at = c.now + $10::bigint * interval '1 millisecond', kept = NULL,
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
        None if options.expires is None else as_ms(options.expires),
    )
