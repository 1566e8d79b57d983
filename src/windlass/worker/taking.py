"""Taking: a job that takes what came out of those before it is given their results as an argument."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from windlass.core.draft import Taken
from windlass.core.errors import PayloadInvalid
from windlass.core.payload import WHOLE
from windlass.core.sealing import holds_sealed, moved
from windlass.core.status import Status
from windlass.core.values import canonical
from windlass.stores.contract import Filter

if TYPE_CHECKING:
    from windlass.core.context import Ctx
    from windlass.core.job import Job
    from windlass.core.sealing import Seals
    from windlass.stores.contract import Store
    from windlass.worker.execution import Runner
    from windlass.worker.slots import Running

_PAGE = 1_000
_LARGEST = 64 * 1024 * 1024  # bytes of all results together
_NAMED = 5


class Taking:
    """Fills in the argument, then lets another runner run the job."""

    def __init__(self, runner: Runner, store: Store, seals: Seals | None = None) -> None:
        self._runner, self._store, self._seals = runner, store, seals

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run with the results; PayloadInvalid when one of them is no longer there."""
        ctx.job = await self.filled(ctx.job)
        return await self._runner.run(running, ctx)

    async def filled(self, job: Job) -> Job:
        """The job with the results in its payload; PayloadInvalid when one of them is no longer there."""
        taken = Taken.of(job.takes or WHOLE)
        results = await self._results(job, taken)
        value: Any = results[0] if taken.n is None else results
        payload = value if taken.name == WHOLE else {**json.loads(job.payload_json), taken.name: value}
        return job._replace(payload_json=canonical(payload, job.type, _LARGEST))

    async def _results(self, job: Job, taken: Taken) -> list[Any]:
        """In the order of the jobs; as many as it takes, or PayloadInvalid."""
        before = await self._before(job)
        ended = [one for one in before if one.status is Status.SUCCEEDED]
        expected = 1 if taken.n is None else taken.n or max(1, len(ended))
        if len(ended) != expected:
            raise _short(job, expected, before)
        return [self._result(one, job, index, taken) for index, one in enumerate(ended)]

    def _result(self, one: Job, job: Job, index: int, taken: Taken) -> Any:
        if one.result_json is None:
            return None
        result: Any = json.loads(one.result_json)
        if not holds_sealed(one.result_json):
            return result
        under = (*(() if taken.name == WHOLE else (taken.name,)), *(() if taken.n is None else (index,)))
        return moved(result, self._seals, ("result", one.type), ("payload", job.type), under)

    async def _before(self, job: Job) -> list[Job]:
        """The jobs that it awaited, oldest first."""
        jobs: list[Job] = []
        size, after = 0, None
        while True:
            page = await self._store.views.find(Filter(next_id=job.id), _PAGE, after)
            # Not those it gathered itself, in an attempt before: they name it as their next, too.
            before = [one for one in page.jobs if one.parent_id != job.id]
            jobs += before
            size += sum(len(one.result_json or "") for one in before)
            if size > _LARGEST:
                raise PayloadInvalid(
                    f"{job.type} takes results of more than {_LARGEST:,} bytes together: let the jobs before it store"
                    " what they made elsewhere, and return where it is"
                )
            after = page.next
            if after is None:
                return jobs[::-1]


def _short(job: Job, expected: int, before: list[Job]) -> PayloadInvalid:
    others = [f"job {one.id} is {one.status.value}" for one in before if one.status is not Status.SUCCEEDED]
    n = len(before) - len(others)
    what = "the result of the job before it" if expected == 1 else f"{expected:,} results of the jobs before it"
    why = "; ".join(others[:_NAMED]) or "what is missing was deleted or pruned meanwhile"
    return PayloadInvalid(f"{job.type} takes {what}, found {n:,}: {why}, so the flow has to be enqueued again")
