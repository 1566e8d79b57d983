"""`app.schedules`: cron rules at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.draft import kept_options
from windlass.core.keys import check_name
from windlass.stores.contract import Schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.client import Client
    from windlass.client.flows import Bound
    from windlass.core.schedule import Cron


class SchedulesRoom:
    """Schedules live in the store: one put here fires until it is removed, whatever code is running."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def put(self, name: str, job: Bound[Any], cron: Cron) -> None:
        """Create or update a schedule; a changed rule starts at its own next tick."""
        store = await self._client.ready()
        await store.schedules.put([self._schedule(name, job, cron, await store.now())])

    async def remove(self, name: str) -> bool:
        """Forget a schedule; jobs it already made stay. False when there was none."""
        store = await self._client.ready()
        return await store.schedules.remove([name]) > 0

    async def list(self) -> Sequence[Schedule]:
        """Every schedule, by name."""
        store = await self._client.ready()
        return await store.schedules.list()

    async def pause(self, name: str) -> None:
        """Fire no more until resumed."""
        store = await self._client.ready()
        await store.schedules.pause([name], paused=True)

    async def resume(self, name: str) -> None:
        """Fire again; ticks missed meanwhile are treated by the schedule's own policy."""
        store = await self._client.ready()
        await store.schedules.pause([name], paused=False)

    def _schedule(self, name: str, job: Bound[Any], cron: Cron, now: Any) -> Schedule:
        return Schedule(
            name=check_name(name, "the schedule's name"),
            cron=cron,
            type=job.type,
            payload_json=job.payload_json,
            queue=job.options.queue,
            options_json=kept_options(job.options),
            next_tick=cron.after(now),
        )
