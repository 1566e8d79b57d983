"""Coroutine handlers run in the worker's own loop; stopping one cancels its task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.core.context import Ctx
    from windlass.worker.slots import Running, StopReason


class CoroutineRunner:
    """Calls the handler and awaits it."""

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run to the end; a stop arrives in the handler as CancelledError."""
        declaration, job = running.declaration, running.job
        arguments = declaration.codec.decode(job.payload_json)
        task = asyncio.current_task()

        def stop(_: StopReason) -> None:
            if task is not None:
                task.cancel()

        running.stopper = stop
        call = declaration.call(ctx, **arguments) if declaration.wants_ctx else declaration.call(**arguments)
        timer = (
            asyncio.get_running_loop().call_later(job.timeout.total_seconds(), running.stop, "timeout")
            if job.timeout is not None
            else None
        )
        try:
            result = await call
        finally:
            if timer is not None:
                timer.cancel()
        return declaration.codec.encode_result(result)
