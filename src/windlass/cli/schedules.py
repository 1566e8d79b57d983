"""`schedules`: list with what comes next, pause, resume and remove."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.facts import schedule_facts
from windlass.cli.output import NOT_FOUND, USAGE, Stop
from windlass.cli.words import clock
from windlass.client.presence import live_workers

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.stores.contract import Schedule, Tick

_UPCOMING = 3


class Deed(StrEnum):
    """What to do with schedules."""

    LIST = "list"
    PAUSE = "pause"
    RESUME = "resume"
    REMOVE = "remove"


def schedules(
    ctx: typer.Context,
    deed: Annotated[Deed, typer.Argument(metavar="[list | pause | resume | remove]", help="What to do.")] = Deed.LIST,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME …", help="Which schedules.")] = None,
) -> None:
    """List the schedules with their next runs, or pause, resume and remove some.

    One marked `orphan` was declared in code that no live worker runs any more: its jobs would wait for ever.
    """
    if deed is not Deed.LIST and not names:
        raise Stop(USAGE, f"which schedules? For instance: windlass schedules {deed} morning_report")

    async def work(desk: Desk) -> None:
        known = {one.name for one in await desk.app.schedules.list()}
        for name in names or ():
            if name in known:
                await _do(desk, deed, name)
        await _show(desk, set(names or known))
        missing = set(names or ()) - known
        if missing:
            raise Stop(NOT_FOUND, f"no schedule is called {', '.join(sorted(missing))}")

    at_desk(ctx, work)


async def _do(desk: Desk, deed: Deed, name: str) -> None:
    match deed:
        case Deed.PAUSE:
            await desk.app.schedules.pause(name)
        case Deed.RESUME:
            await desk.app.schedules.resume(name)
        case Deed.REMOVE:
            await desk.app.schedules.remove(name)
            desk.screen.say(f"{name} removed; jobs it made stay")
        case Deed.LIST:
            return


async def _show(desk: Desk, names: set[str]) -> None:
    found = [one for one in await desk.app.schedules.list() if one.name in names]
    handled = {name for worker in await live_workers(desk.store) for name in worker.types}
    rows: list[tuple[object, ...]] = []
    for one in found:
        ticks = await desk.store.schedules.ticks(one.name)
        last = ticks[0] if ticks else None
        upcoming = [] if one.paused_at is not None else _upcoming(one)
        orphan = one.declared and one.type not in handled
        if desk.screen.as_json:
            desk.screen.fact(schedule_facts(one, last=last, upcoming=upcoming, orphan=orphan))
        else:
            rows.append(_row(one, last, upcoming, orphan=orphan))
    if rows:
        heads = ("schedule", "when", "zone", "type", "next (in its zone)", "last", "state")
        desk.screen.table(heads, rows)
    elif not found and not desk.screen.as_json:
        desk.screen.say("no schedules")


def _upcoming(one: Schedule) -> list[datetime]:
    return [one.next_tick, *one.cron.next(_UPCOMING - 1, one.next_tick)]


def _row(one: Schedule, last: Tick | None, upcoming: list[datetime], *, orphan: bool) -> tuple[object, ...]:
    zone = ZoneInfo(one.cron.tz)
    local = [tick.astimezone(zone) for tick in upcoming]
    said = "never" if last is None else f"{clock(last.tick)} {last.fired.value}"
    state = "paused" if one.paused_at is not None else "orphan" if orphan else "on"
    times = ", ".join(f"{tick:%a %d %b %H:%M}" for tick in local) or "–"
    return one.name, f"{one.cron.describe()} ({one.cron.expression})", one.cron.tz, one.type, times, said, state
