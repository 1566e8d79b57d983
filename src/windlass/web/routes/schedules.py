"""Schedules: cron rules and intervals, put and looked at while everything runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from windlass.core.errors import HandlerNotFound, ScheduleNotFound, SettingsError
from windlass.core.every import When, every
from windlass.core.keys import shown
from windlass.core.schedule import cron
from windlass.core.sealing import masked
from windlass.web.asking import App, Controller, Overseer
from windlass.web.auditing import Audit
from windlass.web.callers import Caller
from windlass.web.given import HALF_AN_ENTITY, INTEGRAL, Asked, Key, Name, Priority, Span, both, neither, never
from windlass.web.routing import Repeatable, id_of
from windlass.web.shapes import Instant, JobShape, Shape, job_shape

if TYPE_CHECKING:
    from windlass.client.options import Asked as Options
    from windlass.stores.contract import Schedule

router = APIRouter(route_class=Repeatable, tags=["schedules"])
_UPCOMING = 3
Rule = Annotated[str, Field(max_length=200, examples=["0 8 * * mon-fri"], json_schema_extra={"format": "cron"})]
Zone = Annotated[str, Field(max_length=64, examples=["Europe/Paris"], json_schema_extra={"format": "time-zone"})]


class Put(Asked):
    """A schedule as it is to be: when, which job, and what its jobs are enqueued with."""

    model_config = ConfigDict(
        json_schema_extra=never(both("cron", "every"), neither("cron", "every"), both("tz", "every"), *HALF_AN_ENTITY)
    )

    type: Name
    payload: dict[str, Any] | None = None
    cron: Rule | None = None
    every: Annotated[int, Field(ge=1, le=31_622_400), INTEGRAL] | None = None
    """seconds; this or `cron`"""
    tz: Zone | None = None
    overlap: Literal["skip", "queue", "allow"] | None = None
    missed: Literal["latest", "all", "none"] | None = None
    missed_limit: Annotated[int, Field(ge=1, le=1000), INTEGRAL] | None = None
    queue: Name | None = None
    priority: Priority | None = None
    max_attempts: Annotated[int, Field(ge=1, le=1000), INTEGRAL] | None = None
    timeout: Span | None = None
    expires: Span | None = None
    user_id: Key | None = None
    """only administrators may name one who is not there yet"""
    entity_name: Key | None = None
    entity_id: Key | None = None
    correlation_id: Key | None = None
    tags: Annotated[list[Name] | None, Field(max_length=32)] = None
    metadata: dict[str, Any] | None = None

    def when(self) -> When:
        """Its rule; SettingsError where it cannot be one."""
        if (self.cron is None) == (self.every is None):
            raise SettingsError('a schedule needs either cron, such as "0 8 * * *", or every, in seconds')
        words: dict[str, Any] = {"overlap": self.overlap, "missed": self.missed, "limit": self.missed_limit}
        policy = {name: value for name, value in words.items() if value is not None}
        if self.cron is not None:
            return cron(self.cron, self.tz or "UTC", **policy)
        if self.tz is not None:
            raise SettingsError("tz goes with cron: an interval has no zone")
        return every(self.every or 0, **policy)

    def options(self) -> Options:
        """What its jobs are enqueued with."""
        rule = {"type", "payload", "cron", "every", "tz", "overlap", "missed", "missed_limit"}
        given = {name: getattr(self, name) for name in self.model_fields_set - rule}
        return cast("Options", {name: value for name, value in given.items() if value is not None})


class ScheduleShape(Shape):
    """A schedule as it stands."""

    name: str
    type: str
    queue: str
    expression: str
    """a cron rule, or an interval such as `every 30s`"""
    described: str
    tz: str
    overlap: str
    missed: str
    next_tick: Instant
    upcoming: list[Instant]
    last_tick: Instant | None
    paused_at: Instant | None
    declared: bool
    """it came from code"""
    payload: Any
    """of its jobs; secrets are `***`"""
    options: dict[str, Any]
    """what else its jobs are enqueued with, in the words of a request; durations are seconds"""
    updated_at: Instant | None


class SchedulesShape(Shape):
    """All schedules."""

    items: list[ScheduleShape]


class TickShape(Shape):
    """What became of one tick, or of several in a row that were missed."""

    tick: Instant
    fired: str
    job_id: str | None
    ticks: int


class TicksShape(Shape):
    """The newest ticks of a schedule, newest first."""

    items: list[TickShape]


@router.get("/schedules", summary="All schedules")
async def schedules(app: App, _: Overseer) -> SchedulesShape:
    """Every schedule, by name, with its next ticks."""
    return SchedulesShape(items=[_shape(one) for one in await app.schedules.list()])


@router.get("/schedules/{name:path}/ticks", summary="What became of its ticks")
async def ticks(name: Name, app: App, _: Overseer) -> TicksShape:
    """Its newest ticks, newest first, at most 50."""
    await _there(app, name)
    found = await app.schedules.ticks(name)
    return TicksShape(
        items=[TickShape(tick=one.tick, fired=one.fired.value, job_id=one.job_id, ticks=one.ticks) for one in found]
    )


# After the others: a name may hold a slash.
@router.get("/schedules/{name:path}", summary="One schedule")
async def one_schedule(name: Name, app: App, _: Overseer) -> ScheduleShape:
    """A schedule as it stands."""
    return _shape(await _there(app, name))


@router.put(
    "/schedules/{name:path}",
    summary="Create or change a schedule",
    responses={201: {"model": ScheduleShape, "description": "It is new"}},
)
async def put(name: Name, body: Put, response: Response, app: App, caller: Controller, audit: Audit) -> ScheduleShape:
    """Create a schedule (201) or change it (200); a changed rule starts at its own next tick."""
    rule, before = body.when(), await _named(app, name)
    if before is not None:
        caller.check_limits(before.type, before.queue)
    caller.check_job(body.type, body.queue or await app.types.queue_of(body.type))
    caller.user_of(body.user_id, None if before is None else options_of(before.options_json).get("userId"))
    await _check_known(app, body.type)
    await app.schedules.put(name, body.type, rule, body.payload, **body.options())
    made = await _there(app, name)
    response.status_code = 201 if before is None else 200
    await audit.record("schedule.put", f"schedule:{name}", before=_audited(before), after=_audited(made))
    return _shape(made)


@router.delete("/schedules/{name:path}", status_code=204, summary="Remove a schedule")
async def remove(name: Name, app: App, caller: Controller, audit: Audit) -> None:
    """Forget it; jobs that it made stay. One that code declares is back with the next worker that starts."""
    before = await _meant(caller, app, name)
    await app.schedules.remove(name)
    await audit.record("schedule.remove", f"schedule:{name}", before=_audited(before))


@router.post("/schedules/{name:path}/pause", summary="Pause a schedule")
async def pause(name: Name, app: App, caller: Controller, audit: Audit) -> ScheduleShape:
    """Fire no more until it is resumed."""
    before = await _meant(caller, app, name)
    await app.schedules.pause(name)
    return await _changed(app, name, "schedule.pause", before, audit)


@router.post("/schedules/{name:path}/resume", summary="Resume a schedule")
async def resume(name: Name, app: App, caller: Controller, audit: Audit) -> ScheduleShape:
    """Fire again; ticks missed meanwhile are treated by its own rule."""
    before = await _meant(caller, app, name)
    await app.schedules.resume(name)
    return await _changed(app, name, "schedule.resume", before, audit)


@router.post("/schedules/{name:path}/run", status_code=201, summary="Run its job now")
async def run(name: Name, request: Request, app: App, caller: Controller, audit: Audit) -> JobShape:
    """Enqueue its job now, beside its ticks; also of a paused one."""
    await _meant(caller, app, name)
    handle = await app.schedules.run_now(name, job_id=id_of(request))
    await audit.record("schedule.run", f"schedule:{name}", job=handle.id)
    return job_shape(await handle.job(), inside=caller.sees_all)


async def _changed(app: App, name: str, action: str, before: Schedule, audit: Audit) -> ScheduleShape:
    after = await _there(app, name)
    await audit.record(action, f"schedule:{name}", before=_audited(before), after=_audited(after))
    return _shape(after)


async def _named(app: App, name: str) -> Schedule | None:
    return next((one for one in await app.schedules.list() if one.name == name), None)


async def _there(app: App, name: str) -> Schedule:
    found = await _named(app, name)
    if found is None:
        raise ScheduleNotFound(name[:200])
    return found


async def _meant(caller: Caller, app: App, name: str) -> Schedule:
    """The schedule that an order is for, if the key is good for its jobs."""
    found = await _there(app, name)
    caller.check_limits(found.type, found.queue)
    return found


async def _check_known(app: App, type_: str) -> None:
    """Refuse a type that nobody handles: its jobs would wait for ever, and a slip of the pen would be found late."""
    if all(one.type != type_ for one in await app.types.known()):
        raise HandlerNotFound(
            f"no handler is known of the type {shown(type_)}, neither here nor told of by a worker lately:"
            " start a worker that handles it first"
        )


def _shape(one: Schedule) -> ScheduleShape:
    same = ("name", "type", "queue", "next_tick", "last_tick", "paused_at", "declared", "updated_at")
    rule = ("expression", "tz", "overlap", "missed")
    return ScheduleShape(
        **{name: getattr(one, name) for name in same},
        **{name: getattr(one.cron, name) for name in rule},
        described=one.cron.describe(),
        payload=masked(one.payload_json),
        options=options_of(one.options_json),
        upcoming=[] if one.paused_at is not None else [one.next_tick, *one.cron.next(_UPCOMING - 1, one.next_tick)],
    )


def options_of(text: str) -> dict[str, Any]:
    """Those that have a value."""
    found: dict[str, Any] = {}
    for name, value in json.loads(text).items():
        if value is None or value == []:
            continue
        if name.endswith("_ms"):
            found[to_camel(name.removesuffix("_ms"))] = value / 1000
        elif name.endswith("_json"):
            found[to_camel(name.removesuffix("_json"))] = masked(value)
        else:
            found[to_camel(name)] = value
    return found


def _audited(one: Schedule | None) -> dict[str, Any] | None:
    """What an operator can change of it, but for the payload: that may hold what is nobody else's business."""
    if one is None:
        return None
    shown_ = _shape(one).model_dump(mode="json", by_alias=True)
    return {name: shown_[name] for name in ("type", "queue", "expression", "tz", "overlap", "missed", "pausedAt")}
