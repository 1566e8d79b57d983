"""Taking: a job that takes what came out of those before it is given their results as an argument."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from windlass.core.errors import PayloadInvalid
from windlass.core.payload import WHOLE
from windlass.core.status import Status
from windlass.core.values import canonical
from windlass.stores.contract import Filter

if TYPE_CHECKING:
    from windlass.core.context import Ctx
    from windlass.core.job import Job
    from windlass.stores.contract import Store
    from windlass.worker.execution import Runner
    from windlass.worker.slots import Running

_PAGE = 1_000
_LARGEST = 64 * 1024 * 1024  # bytes of all results together


class Taking:
    """Fills in the argument, then lets another runner run the job."""

    def __init__(self, runner: Runner, store: Store) -> None:
        self._runner, self._store = runner, store

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run with the results; PayloadInvalid when one of them is no longer there."""
        running.job = ctx.job = await self._filled(running.job)
        return await self._runner.run(running, ctx)

    async def _filled(self, job: Job) -> Job:
        takes = job.takes or WHOLE
        name, listed = takes.removesuffix("[]"), takes.endswith("[]")
        found = await self._results(job)
        if not found or (not listed and len(found) > 1):
            raise PayloadInvalid(
                f"{job.type} takes the result of the job before it, found {len(found)}: it was deleted or pruned"
                " meanwhile, so the flow has to be enqueued again"
            )
        taken: Any = found if listed else found[0]
        payload = taken if name == WHOLE else {**job.payload, name: taken}
        return job._replace(payload_json=canonical(payload, job.type, _LARGEST))

    async def _results(self, job: Job) -> list[Any]:
        page = await self._store.views.find(Filter(next_id=job.id), _PAGE)
        ended = [one for one in reversed(page.jobs) if one.status is Status.SUCCEEDED]
        return [None if one.result_json is None else json.loads(one.result_json) for one in ended]
