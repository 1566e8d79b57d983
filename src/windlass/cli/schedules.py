"""`schedules`: list with what comes next, put, run now, pause, resume and remove."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.enqueueing import read_payload
from windlass.cli.facts import schedule_facts
from windlass.cli.output import NOT_FOUND, USAGE, Stop
from windlass.cli.words import clock, duration
from windlass.client.workers import Presence
from windlass.core.every import Every, every
from windlass.core.schedule import cron

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.client.options import Asked
    from windlass.core.every import When
    from windlass.stores.contract import Schedule, Tick

_UPCOMING = 3


class Deed(StrEnum):
    """What to do with schedules."""

    LIST = "list"
    PUT = "put"
    RUN = "run"
    PAUSE = "pause"
    RESUME = "resume"
    REMOVE = "remove"


def schedules(
    ctx: typer.Context,
    deed: Annotated[
        Deed, typer.Argument(metavar="[list | put | run | pause | resume | remove]", help="What to do.")
    ] = Deed.LIST,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME …", help="Which schedules.")] = None,
    rule: Annotated[str | None, typer.Option("--cron", metavar="'* * * * *'", help="put: when.")] = None,
    interval: Annotated[
        str | None, typer.Option("--every", metavar="DURATION", help="put: how often, instead of --cron.")
    ] = None,
    tz: Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="put: on whose clocks; else UTC.")] = None,
    type: Annotated[str | None, typer.Option("--type", "-t", help="put: the handler's name.")] = None,
    payload: Annotated[
        list[str] | None, typer.Option("--payload", metavar="JSON | @FILE | - | KEY=VALUE", help="put: its arguments.")
    ] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="put: where its jobs wait.")] = None,
    overlap: Annotated[str | None, typer.Option(help="put: skip, queue or allow.")] = None,
    missed: Annotated[str | None, typer.Option(help="put: latest, all or none.")] = None,
) -> None:
    """List the schedules with their next runs; put one; run the jobs of some now; pause, resume or remove some.

    One marked `orphan` was declared in code that no live worker runs any more: its jobs would wait for ever.

    For instance:

      windlass schedules put acme --type report --payload customer=acme --cron "0 8 * * *" --tz Europe/Paris

      windlass schedules put poll --type fetch_mail --every 30s

      windlass schedules run acme
    """
    if deed is not Deed.LIST and not names:
        raise Stop(USAGE, f"which schedules? For instance: windlass schedules {deed} morning_report")
    asked = {"--cron": rule, "--every": interval, "--tz": tz, "--type": type, "--payload": payload, "--queue": queue}
    asked |= {"--overlap": overlap, "--missed": missed}
    if deed is Deed.PUT:
        if type is None or names is None or len(names) != 1:
            raise Stop(
                USAGE,
                "put needs one NAME, --type, and --cron or --every: windlass schedules put acme --type report --cron …",
            )
        given = _when(rule, interval, tz, {"overlap": overlap, "missed": missed})
        put = _Put(names[0], type, given, read_payload(payload or []), queue)
    elif any(asked.values()):
        wrong = ", ".join(option for option, one in asked.items() if one)
        raise Stop(USAGE, f"{wrong} goes with put: windlass schedules put NAME --type … --cron …")
    else:
        put = None

    async def work(desk: Desk) -> None:
        if put is not None:
            where: Asked = {} if put.queue is None else {"queue": put.queue}
            await desk.app.schedules.put(put.name, put.type, put.cron, put.payload, **where)
            rule = {"type": put.type, "expression": put.cron.expression, "tz": put.cron.tz}
            await desk.record("schedule.put", f"schedule:{put.name}", after=rule)
        known = {one.name for one in await desk.app.schedules.list()}
        for name in names or ():
            if name in known:
                await _do(desk, deed, name)
        if deed is not Deed.RUN:
            await _show(desk, set(names or known))
        missing = set(names or ()) - known
        if missing:
            raise Stop(NOT_FOUND, f"no schedule is called {', '.join(sorted(missing))}")

    at_desk(ctx, work, makes=deed is Deed.PUT)


@dataclass(frozen=True, slots=True)
class _Put:
    name: str
    type: str
    cron: When
    payload: Any
    queue: str | None


def _when(rule: str | None, interval: str | None, tz: str | None, choices: dict[str, Any]) -> When:
    """What --cron or --every says."""
    decided = {word: choice for word, choice in choices.items() if choice is not None}
    if (rule is None) == (interval is None):
        raise Stop(USAGE, "put needs either --cron, such as '0 8 * * *', or --every, such as 30s")
    if interval is None:
        return cron(rule or "", tz or "UTC", **decided)
    if tz is not None:
        raise Stop(USAGE, "--tz goes with --cron: an interval has no zone")
    return every(duration(interval, "--every"), **decided)


async def _do(desk: Desk, deed: Deed, name: str) -> None:
    match deed:
        case Deed.PAUSE:
            await desk.app.schedules.pause(name)
            await desk.record("schedule.pause", f"schedule:{name}")
        case Deed.RESUME:
            await desk.app.schedules.resume(name)
            await desk.record("schedule.resume", f"schedule:{name}")
        case Deed.REMOVE:
            await desk.app.schedules.remove(name)
            await desk.record("schedule.remove", f"schedule:{name}")
            desk.screen.say(f"{name} removed; jobs it made stay")
        case Deed.RUN:
            handle = await desk.app.schedules.run_now(name)
            await desk.record("schedule.run", f"schedule:{name}", job=handle.id)
            if desk.screen.as_json:
                desk.screen.fact({"schedule": name, "id": handle.id, "created": handle.created})
            else:
                desk.screen.line(handle.id)
        case Deed.LIST | Deed.PUT:
            return


async def _show(desk: Desk, names: set[str]) -> None:
    found = [one for one in await desk.app.schedules.list() if one.name in names]
    handled = {
        name for worker in await desk.app.workers.list() if worker.presence is Presence.ALIVE for name in worker.types
    }
    rows: list[tuple[object, ...]] = []
    for one in found:
        ticks = await desk.app.schedules.ticks(one.name)
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
    form = "%a %d %b %H:%M:%S" if any(tick.second for tick in local) else "%a %d %b %H:%M"
    times = ", ".join(format(tick, form) for tick in local) or "–"
    described = one.cron.describe()
    rule = described if isinstance(one.cron, Every) else f"{described} ({one.cron.expression})"
    return one.name, rule, one.cron.tz, one.type, times, said, state
