"""`app.queues`: look at queues, pause and resume them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.client.bulk import check_count
from windlass.client.sharing import Shared
from windlass.core.errors import SettingsError
from windlass.core.keys import check_name
from windlass.core.signals import as_duration
from windlass.core.status import Status
from windlass.stores.contract import Count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.client.client import Client
    from windlass.client.stats import StatsRoom
    from windlass.stores.contract import QueueInfo


class QueuesRoom:
    """Queues exist from the first job or setting that names them."""

    def __init__(self, client: Client, stats: StatsRoom) -> None:
        self._client, self._stats = client, stats
        self._shared: Shared[Sequence[QueueInfo]] = Shared()

    async def list(self, *, max_age: float | timedelta = 0) -> Sequence[QueueInfo]:
        """Every queue, by name. With a `max_age` many who ask share one answer of at most that age.

        A depth of more than a thousand is the one that was counted last; see `app.stats`.
        """
        return await self._shared.get(self._list, as_duration(max_age, "max_age"))

    async def _list(self) -> Sequence[QueueInfo]:
        queues = await (await self._client.ready()).queues.list()
        if all(queue.depth.exact and queue.processing.exact for queue in queues):
            return queues
        counts = await self._stats.counts()
        return [
            replace(
                queue,
                depth=_counted(queue.depth, counts.of(queue=queue.name, status=Status.QUEUED)),
                processing=_counted(queue.processing, counts.of(queue=queue.name, status=Status.PROCESSING)),
            )
            for queue in queues
        ]

    async def pause(self, *names: str) -> None:
        """Let nothing more be claimed from these; what runs goes on."""
        await (await self._client.ready()).queues.pause(_named(names))
        self._shared = Shared()  # the operator sees their own change

    async def resume(self, *names: str) -> None:
        """Let them be claimed again."""
        await (await self._client.ready()).queues.resume(_named(names))
        self._shared = Shared()

    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Refuse enqueues beyond this many waiting jobs with QueueFull; None lifts it."""
        check_name(name, "the queue")
        if max_depth is not None:
            check_count(max_depth, "max_depth", least=0)
        await (await self._client.ready()).queues.limit_depth(name, max_depth)
        self._shared = Shared()


def _counted(seen: Count, kept: Count) -> Count:
    """How many there are where a look stopped at its bound: at least so many, and more if more were counted."""
    return seen if seen.exact else Count(max(seen.n, kept.n), exact=False)


def _named(names: Sequence[str]) -> Sequence[str]:
    if not names:
        raise SettingsError("no queue was named: which?")
    return [check_name(name, "the queue") for name in names]
