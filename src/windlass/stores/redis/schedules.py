"""Schedules in Redis: the tick is moved on and its job inserted in one script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.stores.contract import Due, Fired, Firing, Schedule, Tick
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.inserting import Groups, draft_values
from windlass.stores.redis.records import as_ms, duration, instant, packed, unpacked
from windlass.stores.redis.views import as_pairs
from windlass.stores.schedule_rows import asked_of, schedule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.redis.connection import Value

_NO_DRAFT: tuple[Value, ...] = ("",) * 7
TICKS_KEPT = 50


class RedisSchedules(Room):
    """See `contract.Schedules` for what each promises."""

    @guarded
    async def put(self, schedules: Sequence[Schedule]) -> None:
        """Write each by name."""
        await self.link.run("put", [value for one in schedules for value in (one.name, _record(one))])

    @guarded
    async def remove(self, names: Sequence[str]) -> int:
        """Forget these."""
        removed: int = await self.link.once("drop", list(names))
        return removed

    @guarded
    async def list(self) -> Sequence[Schedule]:
        """Every schedule, by name."""
        found = as_pairs(await self.link.command("HGETALL", self.link.key("schedules")))
        return [_schedule(name, record) for name, record in sorted((name.decode(), value) for name, value in found)]

    @guarded
    async def due(self, n: int) -> Due:
        """What is to be fired now."""
        now, following, *found = await self.link.run("due", [n])
        schedules = [_schedule(name.decode(), record) for name, record in as_pairs(found)]
        return Due(tuple(schedules), instant(now), None if following < 0 else duration(following))

    @guarded
    async def pause(self, names: Sequence[str], *, paused: bool) -> None:
        """Stop or restart firing."""
        await self.link.run("halt", [int(paused), *names])

    @guarded
    async def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        """Account for ticks, one answer each."""
        if not firings:
            return []
        groups = Groups()
        values: list[Value] = []
        for one in firings:
            values += [one.name, as_ms(one.expected), as_ms(one.next_tick), int(one.unless_live)]
            values += [one.ticks, int(one.draft is not None)]
            values += _NO_DRAFT if one.draft is None else draft_values(one.draft, groups)
        told = await self.link.once("fire", [len(groups), *groups.values, *values])
        return [Fired(word.decode()) for word in told]

    @guarded
    async def ticks(self, name: str) -> Sequence[Tick]:
        """The newest accounted ticks."""
        found = await self.link.command("ZREVRANGE", self.link.key(f"ticks:{name}"), 0, TICKS_KEPT - 1)
        return [_tick(one.decode()) for one in found]


def _tick(text: str) -> Tick:
    tick, fired, job_id, ticks = text.split(",")
    return Tick(instant(tick), Fired(fired), job_id or None, int(ticks))


def _record(one: Schedule) -> bytes:
    _, *asked = asked_of(one)
    nothing_yet = ("", "")  # neither fired nor paused
    fields: list[Any] = [*asked, as_ms(one.next_tick), *nothing_yet, int(one.declared), ""]
    return packed([str(field) for field in fields])


def _schedule(name: str, record: bytes) -> Schedule:
    return schedule_of([name, *unpacked(record)], instant)
