"""Surrounding: what an application lays around its runs, and a span, is entered before a handler begins, left after."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.around import Layer
    from windlass.core.context import Ctx
    from windlass.core.handler import Declaration
    from windlass.core.spans import Spans
    from windlass.worker.execution import Runner
    from windlass.worker.slots import Running, StopReason


class Surrounded:
    """Enters the layers in the worker's loop, lets another runner run the job, and leaves them."""

    def __init__(self, runner: Runner, layers: Sequence[Layer[Ctx]]) -> None:
        self._runner, self._layers = runner, layers

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run inside the layers; what a layer raises counts as if the handler had raised it."""
        task = asyncio.current_task()

        def stop(reason: StopReason) -> None:
            # Once its handler has ended, a request to cancel comes too late.
            if task is not None and not (over and reason == "cancel"):
                task.cancel()

        over = False
        running.stopper = stop
        if running.reason is not None:  # stopped before it began
            raise asyncio.CancelledError
        async with AsyncExitStack() as stack:
            for layer in self._layers:
                await stack.enter_async_context(layer.around(ctx))
            try:
                return await self._runner.run(running, ctx)
            finally:
                over = True
                running.stopper = stop


class Traced:
    """Lets another runner run the job inside a span; the layers are inside it, too."""

    def __init__(self, runner: Runner, spans: Spans) -> None:
        self._runner, self._spans = runner, spans

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run inside the span."""
        with self._spans.running((running.job,)):
            return await self._runner.run(running, ctx)


def in_the_loop(declaration: Declaration, layers: Sequence[Layer[Ctx]]) -> Sequence[Layer[Ctx]]:
    """Those that the worker's loop enters: of a `def` handler not the synchronous ones, which may block as it may."""
    return [layer for layer in layers if layer.awaits] if declaration.mode == "thread" else layers


def in_its_thread(layers: Sequence[Layer[Ctx]]) -> Sequence[Layer[Ctx]]:
    """Those that the thread of a `def` handler enters, inside the others."""
    return [layer for layer in layers if not layer.awaits]
