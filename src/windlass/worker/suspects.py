"""Suspects: a job that one more crash would fail runs without others like it beside it.

When a worker dies, every job it held is found lost and has one crash more, the culprit and those that only happened to
run beside it. Run one at a time on their last chance, only the culprit meets its end; the others finish.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.core.context import Ctx
    from windlass.core.job import Job
    from windlass.worker.execution import Runner
    from windlass.worker.slots import Running


def is_suspect(job: Job) -> bool:
    """Whether its worker died under it before, and one more time would fail it."""
    return 0 < job.crashes >= job.max_crashes - 1


class Alone:
    """Lets suspects take turns: one per worker at a time, each with its whole timeout."""

    def __init__(self, begin: Callable[[Running], None]) -> None:
        self._begin = begin
        self._turn = asyncio.Lock()

    def around(self, runner: Runner) -> Runner:
        """The runner for a suspect."""
        return _Turn(runner, self._turn, self._begin)


class _Turn:
    def __init__(self, runner: Runner, turn: asyncio.Lock, begin: Callable[[Running], None]) -> None:
        self._runner, self._turn, self._begin = runner, turn, begin

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Wait for the turn, then run; a stop also ends the waiting."""
        task = asyncio.current_task()
        running.stopper = None if task is None else lambda _: task.cancel()
        async with self._turn:
            if running.declaration.mode != "process":  # that runner begins it when the process is ready
                self._begin(running)
            return await self._runner.run(running, ctx)
