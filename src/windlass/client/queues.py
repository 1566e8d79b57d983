"""`app.queues`: look at queues, pause and resume them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.client.bulk import check_count
from windlass.core.errors import SettingsError
from windlass.core.keys import check_name

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
        await (await self._client.ready()).queues.pause(_named(names))

    async def resume(self, *names: str) -> None:
        """Let them be claimed again."""
        await (await self._client.ready()).queues.resume(_named(names))

    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Refuse enqueues beyond this many waiting jobs with QueueFull; None lifts it."""
        check_name(name, "the queue")
        if max_depth is not None:
            check_count(max_depth, "max_depth", least=0)
        await (await self._client.ready()).queues.limit_depth(name, max_depth)


def _named(names: Sequence[str]) -> Sequence[str]:
    if not names:
        raise SettingsError("no queue was named: which?")
    return [check_name(name, "the queue") for name in names]
