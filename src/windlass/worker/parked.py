"""Parked jobs: those that were put aside because no handler could read their payload, and that this worker can read."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.errors import PayloadUnfit
from windlass.core.events import JobOperated
from windlass.stores.contract import Action, Operated, Order
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from windlass.core.events import Hub
    from windlass.core.job import Job
    from windlass.core.registry import Registry
    from windlass.stores.contract import Store

EVERY = 60.0
"""seconds between two looks; the first is taken when the worker starts, as after a deployment"""
_PAGE = 100


class Parked:
    """Queues again what the handlers here can read.

    Where versions of a handler work side by side, the job may go to the other one, which parks it anew: it is tried
    again at the next look, and spends no attempt.
    """

    def __init__(self, store: Store, hub: Hub, registry: Registry, types: Collection[str], worker_id: str) -> None:
        self._store, self._hub, self._registry, self._worker_id = store, hub, registry, worker_id
        self._lines = [BlockedBy(Kind.PAYLOAD, type_).text for type_ in sorted(types)]
        self._steady = Steady(hub, "look for parked jobs")

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._steady.attempt(self.free)
            # At different moments, where many workers started together.
            await asyncio.sleep(random.uniform(0.75, 1.25) * EVERY)

    async def free(self) -> int:
        """Queue every parked job that can be read here, and return how many."""
        freed = 0
        page = await self._store.views.blocked(self._lines, _PAGE)
        for line in {job.blocked_by for job in page if job.blocked_by is not None}:
            part = [job for job in page if job.blocked_by == line]
            while part:
                freed += await self._retry([job for job in part if self._reads(job)])
                part = await self._store.views.blocked([line], _PAGE, part[-1]) if len(part) == _PAGE else []
        return freed

    def _reads(self, job: Job) -> bool:
        declaration = self._registry.get(job.type)
        if job.takes is not None:
            # Results are still to come, so it was parked for want of a key, for which it is enough to be tried again.
            return declaration.codec.opens(job.payload_json)
        try:
            declaration.arguments(job.payload_json)
        except PayloadUnfit:
            return False
        return True

    async def _retry(self, jobs: Sequence[Job]) -> int:
        orders = [
            Order(id=job.id, action=Action.RETRY, actor=self._worker_id, reason="its payload can be read here")
            for job in jobs
        ]
        answers = await self._store.jobs.operate(orders) if orders else []
        queued = [order for order, answer in zip(orders, answers, strict=True) if answer.verdict is Operated.DONE]
        for order in queued:
            self._hub.tell(JobOperated(order.id, "retry", order.actor, order.reason))
        return len(queued)
