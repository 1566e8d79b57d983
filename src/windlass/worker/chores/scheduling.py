"""Scheduling: ticks that have come become jobs. Any number of workers may do it: the store lets one fire each tick."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from windlass.client.schedules import draft_of
from windlass.core.events import Hub, JobEnqueued, ScheduleFired, ScheduleMissed, ScheduleSkipped
from windlass.core.schedule import plan
from windlass.stores.contract import Fired, Firing, Schedule
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from datetime import datetime

    from windlass.core.draft import Draft, Options
    from windlass.core.registry import Registry
    from windlass.stores.contract import Store

AT_ONCE = 100
_LEAST = 0.25  # seconds between two looks, however many notices come


class Scheduling:
    """The loop that sleeps until the next tick of any schedule."""

    def __init__(
        self,
        store: Store,
        hub: Hub,
        registry: Registry,
        defaults: Options,
        poll: float,
        fired: Callable[[], None],
        new_id: Callable[[], str],
    ) -> None:
        self._store, self._hub, self._registry, self._defaults = store, hub, registry, defaults
        self._poll, self._fired, self._new_id = poll, fired, new_id
        self._steady = Steady(hub, "schedule")
        self.wake = asyncio.Event()

    async def declare(self) -> None:
        """Put the schedules that handlers declare in code."""
        now = await self._store.now()
        await self._store.schedules.put(self._declared(now))

    async def run(self, on_duty: Callable[[], Awaitable[None]]) -> None:
        """Fire until cancelled."""
        while True:
            await on_duty()
            self.wake.clear()
            found = await self._steady.attempt(self.once)
            seconds = self._poll if found is None else min(self._poll, found)
            least = min(seconds, _LEAST)
            await asyncio.sleep(least)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds - least):
                    await self.wake.wait()

    async def once(self) -> float:
        """Fire what is due; how long until the next tick."""
        due = await self._store.schedules.due(AT_ONCE)
        for schedule in due.schedules:
            await self._fire(schedule, due.now)
        if due.schedules:
            return 0.0
        return self._poll if due.next_in is None else max(0.001, due.next_in.total_seconds())

    async def _fire(self, schedule: Schedule, now: datetime) -> None:
        with self._sending(self._firings(schedule, now)) as firings:
            answers = await self._store.schedules.fire(firings)
            for firing, answer in zip(firings, answers, strict=True):
                self._tell(firing, answer)
        if Fired.FIRED in answers:
            self._fired()

    @contextmanager
    def _sending(self, firings: list[Firing]) -> Generator[list[Firing], None, None]:
        """While inside, a span is around what they send, if the application is traced."""
        drafts = [firing.draft for firing in firings if firing.draft is not None]
        spans = self._registry.spans
        if spans is None or not drafts:
            yield firings
            return
        with spans.sending(drafts, apart=True) as sent:
            by_id = {draft.id: draft for draft in sent}
            yield [one if one.draft is None else replace(one, draft=by_id[one.draft.id]) for one in firings]

    def _tell(self, firing: Firing, answer: Fired) -> None:
        draft = firing.draft
        match answer:
            case Fired.FIRED if draft is not None:
                self._hub.tell(JobEnqueued(draft.id, draft.type, draft.options.queue, draft.options.correlation_id))
                self._hub.tell(ScheduleFired(firing.name, firing.expected, draft.id))
            case Fired.SKIPPED:
                self._hub.tell(ScheduleSkipped(firing.name, firing.expected))
            case Fired.MISSED:
                self._hub.tell(ScheduleMissed(firing.name, firing.expected, firing.ticks))
            case _:
                pass  # somebody else accounts for the tick

    def _firings(self, schedule: Schedule, now: datetime) -> list[Firing]:
        told = plan(schedule.cron, schedule.next_tick, now)
        ticks = [*told.fire, told.next]
        firings = [self._firing(schedule, tick, following) for tick, following in pairwise(ticks)]
        if told.missed_since is not None:
            # The missed ones are accounted for in one step from the oldest of them to the first that is made up for.
            missed = Firing(
                name=schedule.name, expected=schedule.next_tick, next_tick=ticks[0], draft=None, ticks=told.missed
            )
            firings.insert(0, missed)
        return firings

    def _firing(self, schedule: Schedule, tick: datetime, following: datetime) -> Firing:
        return Firing(
            name=schedule.name,
            expected=tick,
            next_tick=following,
            draft=self._draft(schedule, tick),
            unless_live=schedule.cron.overlap == "skip",
        )

    def _draft(self, schedule: Schedule, tick: datetime) -> Draft:
        known = schedule.type in self._registry
        options = self._registry.get(schedule.type).options if known else self._defaults
        return draft_of(schedule, options, self._new_id(), tick)

    def _declared(self, now: datetime) -> list[Schedule]:
        return [
            Schedule(
                name=one.name if number == 0 else f"{one.name}#{number + 1}",
                cron=cron,
                type=one.name,
                payload_json=one.codec.encode((), {}),
                queue=one.options.queue,
                next_tick=cron.after(now),
                declared=True,
            )
            for one in self._registry
            for number, cron in enumerate(one.schedules)
        ]
