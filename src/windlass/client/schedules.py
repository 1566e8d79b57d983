"""`app.schedules`: cron rules and intervals at run time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Unpack, cast

from windlass.client.calls import JobFunction
from windlass.client.flows import Bound
from windlass.client.options import Asked, lay_over
from windlass.core.draft import kept_options, with_kept
from windlass.core.errors import PayloadInvalid, ScheduleNotFound, SettingsError
from windlass.core.every import When
from windlass.core.handler import make_draft
from windlass.core.keys import check_name, shown
from windlass.core.values import canonical
from windlass.stores.contract import Schedule, Tick

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.client.client import Client
    from windlass.client.handle import Handle
    from windlass.core.draft import Draft, Options


class NeedsNothing(Protocol):
    """A declared job that can be called without arguments."""

    def bind(self) -> Bound[Any]: ...


class SchedulesRoom:
    """Schedules live in the store: one put here fires until it is removed, whatever code is running."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def put(
        self,
        name: str,
        job: NeedsNothing | Bound[Any] | str,
        cron: When,
        payload: Any = None,
        **asked: Unpack[Asked],
    ) -> None:
        """Create or update a schedule; a changed rule starts at its own next tick.

        The job is one that needs no arguments, one bound to them, or a type by its name, with payload and options
        beside it. Several schedules may make jobs of one handler, each under a name of its own.
        """
        check_name(name, "the schedule's name")
        if not isinstance(cast("object", cron), When):
            raise SettingsError(
                f"the rule of schedule {name!r} is {shown(cron)}: expected one made by cron() or every()"
            )
        if isinstance(job, JobFunction):
            declared = cast("JobFunction[..., Any]", job)
            made = await self._job(_with_no_arguments(name, declared, payload, asked), None, {})
        else:
            made = await self._job(cast("Bound[Any] | str", job), payload, asked)
        store = await self._client.ready()
        await store.schedules.put([_schedule(name, *made, cron, await store.now())])

    async def run_now(self, name: str, *, job_id: str | None = None) -> Handle[Any]:
        """Enqueue the job of a schedule now, beside its ticks, which stay as they are; also of a paused one.

        While the job is live, it counts for the schedule's `overlap` as one of its ticks does. ScheduleNotFound when
        there is no such schedule. Run again under the same `job_id` it is the same job.
        """
        schedule = await self._get(name)
        known = schedule.type in self._client.registry
        declaration = self._client.registry.get(schedule.type) if known else None
        published = await self._client.published(schedule.type)
        elsewhere = self._client.defaults if published is None else published.declared.enqueued_with
        options = elsewhere if declaration is None else declaration.options
        draft = draft_of(schedule, options, job_id or self._client.ids())
        return await self._client.enqueue(draft, None if declaration is None else declaration.codec)

    async def remove(self, name: str) -> bool:
        """Forget a schedule; jobs it already made stay. False when there was none."""
        store = await self._client.ready()
        return await store.schedules.remove([name]) > 0

    async def list(self) -> Sequence[Schedule]:
        """Every schedule, by name."""
        store = await self._client.ready()
        return await store.schedules.list()

    async def ticks(self, name: str) -> Sequence[Tick]:
        """What became of its newest ticks, newest first, at most 50; none of a schedule that is not there."""
        return await (await self._client.ready()).schedules.ticks(name)

    async def pause(self, name: str) -> None:
        """Fire no more until resumed; ScheduleNotFound when there is no such schedule."""
        await self._get(name)
        store = await self._client.ready()
        await store.schedules.pause([name], paused=True)

    async def resume(self, name: str) -> None:
        """Fire again; ticks missed meanwhile are treated by the schedule's own policy."""
        await self._get(name)
        store = await self._client.ready()
        await store.schedules.pause([name], paused=False)

    async def _get(self, name: str) -> Schedule:
        found = next((one for one in await self.list() if one.name == name), None)
        if found is None:
            raise ScheduleNotFound(name)
        return found

    async def _job(self, job: Bound[Any] | str, payload: Any, asked: Asked) -> tuple[str, str, Options]:
        """Type, payload and options of what its ticks make."""
        if isinstance(job, Bound):
            if payload is not None or asked:
                raise SettingsError(
                    f"a bound {job.type} was given with a payload or options beside it: bind and using() take those"
                )
            return job.type, job.payload_json, _kept(job.options, job.declaration.options)
        check_name(job, "the type")
        if job not in self._client.registry:
            published = await self._client.published(job)
            base = self._client.defaults if published is None else published.declared.enqueued_with
            plain = canonical({} if payload is None else payload, job)
            text = plain if published is None else published.encode(payload)
            return job, text, _kept(lay_over(base, asked), base)
        declaration = self._client.registry.get(job)
        text = declaration.codec.encode_plain({} if payload is None else payload)
        return job, text, _kept(lay_over(declaration.options, asked), declaration.options)


def _with_no_arguments(name: str, job: JobFunction[..., Any], payload: Any, asked: Asked) -> Bound[Any]:
    bind = f'bind them: app.schedules.put("{name}", {job.name}.bind(…), cron)'
    if payload is not None:
        raise SettingsError(f"{job.name} was given a payload beside it, but its arguments are bound to it; {bind}")
    try:
        return job.using(**asked).bind()
    except PayloadInvalid:
        raise SettingsError(f"{job.name} needs arguments, which a tick cannot give; {bind}") from None


_NOT_KEPT = {
    "delay": "delay",
    "run_at": "at",
    "unique": "unique",
    "longest_wait": "longest_wait",
    "idempotency_window": "idempotent",
    "limit": "limit",
    "rate": "rate",
    "fair_by": "fair_by",
}


def _kept(options: Options, declared: Options) -> Options:
    """The options, if a schedule can keep all that was asked for: keys come from its handler, times are its own."""
    lost = [word for field, word in _NOT_KEPT.items() if getattr(options, field) != getattr(declared, field)]
    if lost:
        raise SettingsError(
            f"a schedule does not keep {', '.join(lost)}: its ticks are its times, and keys, limits and rates are"
            " what the handler declares"
        )
    return options


def draft_of(schedule: Schedule, declared: Options, job_id: str, tick: datetime | None = None) -> Draft:
    """A job of the schedule, of one of its ticks or of none, over the options that its handler declares."""
    options = replace(
        with_kept(declared, schedule.options_json),
        queue=schedule.queue,
        schedule=schedule.name,
        tick=tick,
        delay=None,
        run_at=None,
        unique=None,
        idempotency_window=None,  # each tick is its own reason to run
    )
    made = make_draft(schedule.type, job_id, schedule.payload_json, options, templated=False)
    # overlap="queue": it waits its turn among the jobs of the ticks.
    alone = schedule.cron.overlap == "queue"
    return made._replace(limit_key=f"schedule:{schedule.name}", limit=1) if alone else made


def _schedule(name: str, type_: str, payload_json: str, options: Options, cron: When, now: datetime) -> Schedule:
    return Schedule(
        name=name,
        cron=cron,
        type=type_,
        payload_json=payload_json,
        queue=options.queue,
        options_json=kept_options(options),
        next_tick=cron.after(now),
    )
