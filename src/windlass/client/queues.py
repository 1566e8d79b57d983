"""`app.queues`: look at queues, pause and resume them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.client import Client
    from windlass.stores.contract import QueueInfo


class QueuesRoom:
    """Queues exist from the first job or setting that names them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self) -> Sequence[QueueInfo]:
        """Every queue, by name."""
        return await (await self._client.ready()).queues.list()

    async def pause(self, *names: str) -> None:
        """Let nothing more be claimed from these; what runs goes on."""
        await (await self._client.ready()).queues.pause(names)

    async def resume(self, *names: str) -> None:
        """Let them be claimed again."""
        await (await self._client.ready()).queues.resume(names)

    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Refuse enqueues beyond this many waiting jobs with QueueFull; None lifts it."""
        await (await self._client.ready()).queues.limit_depth(name, max_depth)
