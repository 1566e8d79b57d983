"""Coroutine handlers run in the worker's own loop; stopping one cancels its task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.core.context import Ctx
    from windlass.worker.slots import Running


class CoroutineRunner:
    """Calls the handler and awaits it."""

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run to the end; a stop arrives in the handler as CancelledError."""
        declaration, job = running.declaration, ctx.job
        arguments = declaration.arguments(job.payload_json)
        task = running.task or asyncio.current_task()
        running.stopper = None if task is None else lambda _: task.cancel()
        if running.reason is not None:  # stopped before it began
            raise asyncio.CancelledError
        call = declaration.call(ctx, **arguments) if declaration.wants_ctx else declaration.call(**arguments)
        try:
            result = await call
        except BaseException as error:
            ctx.left(error)
            raise
        ctx.left()
        return declaration.codec.encode_result(result)
