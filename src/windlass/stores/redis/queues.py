"""Queues in Redis: named in one hash, from the first job or setting that names them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from windlass.core.keys import check_name
from windlass.core.status import Status
from windlass.stores.contract import Count, QueueInfo
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import duration, instant
from windlass.stores.redis.views import as_pairs, counts_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class RedisQueues(Room):
    """See `contract.Queues` for what each promises."""

    @guarded
    async def list(self) -> Sequence[QueueInfo]:
        """Every queue, by name."""
        now, names, paused, depths, counts, waiting = await self.link.run("queues")
        paused_at = {name.decode(): instant(int(at)) for name, at in as_pairs(paused)}
        most = {name.decode(): int(n) for name, n in as_pairs(depths)}
        standing: dict[tuple[str, Status], int] = defaultdict(int)
        for status, queue, _, n in counts_of(counts):
            standing[queue, status] += n
        oldest = {name.decode(): int(at) for name, at in as_pairs(waiting)}
        return [
            QueueInfo(
                name=name,
                paused_at=paused_at.get(name),
                max_depth=most.get(name),
                depth=Count(standing[name, Status.QUEUED], exact=True),
                processing=Count(standing[name, Status.PROCESSING], exact=True),
                oldest=duration(max(0, now - oldest[name])) if name in oldest else None,
            )
            for name in sorted(name.decode() for name in names)
        ]

    @guarded
    async def pause(self, names: Sequence[str]) -> None:
        """Let nothing more be claimed from these."""
        await self.link.run("pause", [1, *[check_name(name, "the queue") for name in names]])

    @guarded
    async def resume(self, names: Sequence[str]) -> None:
        """Let them be claimed again."""
        await self.link.run("pause", [0, *names])

    @guarded
    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Set or lift the largest depth."""
        await self.link.run("depth", [check_name(name, "the queue"), "" if max_depth is None else max_depth])
