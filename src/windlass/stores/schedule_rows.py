"""A schedule as the columns of a row, in one order on all stores that keep it so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.every import when
from windlass.stores.contract import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

COLUMNS = (
    "name, expression, zone, overlap, missed, missed_limit, type, payload, queue, options, next_tick, last_tick,"
    " paused_at, declared, updated_at"
)


def asked_of(schedule: Schedule) -> tuple[Any, ...]:
    """What is asked for when it is put, up to `options`: the values of the first ten columns."""
    cron = schedule.cron
    rule = (cron.expression, cron.tz, cron.overlap, cron.missed, cron.missed_limit)
    return (schedule.name, *rule, schedule.type, schedule.payload_json, schedule.queue, schedule.options_json)


def schedule_of(row: Sequence[Any], instant: Callable[[Any], datetime] | None = None) -> Schedule:
    """The schedule of a whole row. `instant` reads an instant that is there, where the driver does not."""
    expression, zone, overlap, missed, missed_limit = row[1:6]
    next_tick, last_tick, paused_at, declared, updated_at = row[10:15]
    if instant is not None:
        next_tick, updated_at = instant(next_tick), instant(updated_at)
        last_tick, paused_at = (instant(at) if at else None for at in (last_tick, paused_at))
    return Schedule(
        name=row[0],
        cron=when(expression, zone, overlap, missed, int(missed_limit)),
        type=row[6],
        payload_json=row[7],
        queue=row[8],
        options_json=row[9],
        next_tick=next_tick,
        last_tick=last_tick,
        paused_at=paused_at,
        declared=bool(int(declared)),
        updated_at=updated_at,
    )
