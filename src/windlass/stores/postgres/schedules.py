"""Schedules on PostgreSQL: the tick is moved on and its job inserted in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.stores.contract import Created, Due, Fired, Firing, Schedule, Tick
from windlass.stores.postgres.connection import Room, guarded
from windlass.stores.postgres.inserting import insert_in
from windlass.stores.postgres.notices import DUE as DUE_NOW
from windlass.stores.postgres.notices import of_drafts
from windlass.stores.postgres.records import CLOCK, floored
from windlass.stores.schedule_rows import COLUMNS, asked_of, schedule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.postgres.connection import Ask

# A changed rule starts from its own next tick; an unchanged one must not skip or repeat the tick it stands at.
PUT = """
INSERT INTO windlass_schedules AS s (
    name, expression, zone, overlap, missed, missed_limit, type, payload, queue, options, next_tick, declared,
    updated_at
) VALUES (
    $1::text, $2::text, $3::text, $4::text, $5::text, $6::int, $7::text, $8::text::json, $9::text, $10::text::json,
    $11::timestamptz, $12::boolean, date_trunc('milliseconds', statement_timestamp())
)
ON CONFLICT (name) DO UPDATE SET
    next_tick = CASE WHEN s.expression = excluded.expression AND s.zone = excluded.zone
        THEN s.next_tick ELSE excluded.next_tick END,
    expression = excluded.expression, zone = excluded.zone, overlap = excluded.overlap, missed = excluded.missed,
    missed_limit = excluded.missed_limit, type = excluded.type, payload = excluded.payload, queue = excluded.queue,
    options = excluded.options, declared = excluded.declared, updated_at = excluded.updated_at
"""
REMOVE = """
WITH forgotten AS (DELETE FROM windlass_ticks WHERE schedule = ANY ($1::text[]))
DELETE FROM windlass_schedules WHERE name = ANY ($1::text[]) RETURNING name
"""
ALL = f"SELECT {COLUMNS} FROM windlass_schedules ORDER BY name"  # noqa: S608  # made of constants
# One row at least, for the clock and the next tick. Both ways are the index of the ticks of what is not paused.
DUE = f"""
WITH {CLOCK}, next AS MATERIALIZED (
    SELECT clock.now, (
        SELECT min(next_tick) FROM windlass_schedules WHERE paused_at IS NULL AND next_tick > clock.now
    ) AS tick FROM clock
), due AS MATERIALIZED (
    SELECT {COLUMNS} FROM windlass_schedules WHERE paused_at IS NULL AND next_tick <= (SELECT now FROM clock)
    ORDER BY next_tick LIMIT $1::int
)
SELECT next.now, next.tick, due.* FROM next LEFT JOIN due ON true ORDER BY due.next_tick, due.name
"""  # noqa: S608  # made of constants
PAUSE = """
UPDATE windlass_schedules
SET paused_at = CASE WHEN $2::boolean THEN coalesce(paused_at, date_trunc('milliseconds', statement_timestamp())) END
WHERE name = ANY ($1::text[])
"""
# The row is held from here on, so that one firing of a tick wins. Whether it has come is judged by the server's clock.
ADVANCE = """
UPDATE windlass_schedules
SET next_tick = $3::timestamptz, last_tick = $2::timestamptz,
    updated_at = date_trunc('milliseconds', statement_timestamp())
WHERE name = $1::text AND next_tick = $2::timestamptz AND paused_at IS NULL RETURNING 1
"""
EARLY = "SELECT $1::timestamptz > statement_timestamp()"
ANY_LIVE = """
SELECT 1 FROM windlass_jobs
WHERE schedule = $1::text AND status IN ('scheduled', 'queued', 'blocked', 'processing', 'retrying') LIMIT 1
"""
TICK_JOB = "SELECT id FROM windlass_jobs WHERE schedule = $1::text AND tick = $2::timestamptz"
RECORD = """
INSERT INTO windlass_ticks (schedule, tick, fired, job_id, ticks)
VALUES ($1::text, $2::timestamptz, $3::text, $4::text, $5::int)
ON CONFLICT (schedule, tick)
DO UPDATE SET fired = excluded.fired, job_id = excluded.job_id, ticks = excluded.ticks
"""
TRIM = """
DELETE FROM windlass_ticks WHERE schedule = $1::text AND tick <= (
    SELECT tick FROM windlass_ticks WHERE schedule = $1::text ORDER BY tick DESC LIMIT 1 OFFSET $2::int
)
"""
TICKS = """
SELECT tick, fired, job_id, ticks FROM windlass_ticks WHERE schedule = $1::text ORDER BY tick DESC LIMIT $2::int
"""
TICKS_KEPT = 50


class PostgresSchedules(Room):
    """See `contract.Schedules` for what each promises."""

    @guarded
    async def put(self, schedules: Sequence[Schedule]) -> None:
        """Write each by name."""
        newest = {one.name: one for one in schedules}

        async def work(ask: Ask) -> None:
            for name in sorted(newest):
                await ask(PUT, *_row(newest[name]))

        await self.link.transaction(work)
        self.link.changed(DUE_NOW)

    @guarded
    async def remove(self, names: Sequence[str]) -> int:
        """Forget these."""
        removed = len(await self.link.fetch(REMOVE, list(names)))
        self.link.changed(DUE_NOW)
        return removed

    @guarded
    async def list(self) -> list[Schedule]:
        """Every schedule, by name."""
        return [schedule_of(row) for row in await self.link.fetch(ALL)]

    @guarded
    async def due(self, n: int) -> Due:
        """What is to be fired now."""
        rows = await self.link.fetch(DUE, n)
        now, tick, *_ = rows[0]
        schedules = tuple(schedule_of(row[2:]) for row in rows if row[2] is not None)
        return Due(schedules, now, None if tick is None else tick - now)

    @guarded
    async def pause(self, names: Sequence[str], *, paused: bool) -> None:
        """Stop or restart firing."""
        await self.link.fetch(PAUSE, list(names), paused)
        self.link.changed(DUE_NOW)

    @guarded
    async def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        """Account for ticks, one answer each."""
        # A transaction each: schedules that several workers fire at once must not be waited for crosswise.
        answers = [await self._fire_one(one) for one in firings]
        made = [one.draft for one, fired in zip(firings, answers, strict=True) if fired is Fired.FIRED]
        self.link.changed(*of_drafts([draft for draft in made if draft is not None]))
        return answers

    @guarded
    async def ticks(self, name: str) -> Sequence[Tick]:
        """The newest accounted ticks."""
        rows = await self.link.fetch(TICKS, name, TICKS_KEPT)
        return [Tick(tick, Fired(fired), job_id, ticks) for tick, fired, job_id, ticks in rows]

    async def _fire_one(self, one: Firing) -> Fired:
        return await self.link.transaction(lambda ask: self._fire(ask, one))

    async def _fire(self, ask: Ask, one: Firing) -> Fired:
        tick = floored(one.expected)
        [(early,)] = await ask(EARLY, tick)
        if early:
            return Fired.EARLY
        if not await ask(ADVANCE, one.name, tick, floored(one.next_tick)):
            return Fired.STALE
        fired, job_id = await self._make(ask, one)
        await ask(RECORD, one.name, tick, fired.value, job_id, one.ticks)
        await ask(TRIM, one.name, TICKS_KEPT)
        return fired

    async def _make(self, ask: Ask, one: Firing) -> tuple[Fired, str | None]:
        if one.draft is None:
            return Fired.MISSED, None
        if one.unless_live and await ask(ANY_LIVE, one.name):
            return Fired.SKIPPED, None
        known = await ask(TICK_JOB, one.name, floored(one.expected))
        if known:
            return Fired.SKIPPED, known[0][0]  # fired before the schedule was removed and put again
        made = (await insert_in(self.link, ask, [one.draft]))[0]
        return (Fired.FIRED, made.id) if isinstance(made, Created) else (Fired.SKIPPED, None)


def _row(one: Schedule) -> tuple[Any, ...]:
    return (*asked_of(one), floored(one.next_tick), one.declared)
