"""Recycling: when a worker makes room for a fresh process."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Literal, TypeAlias

from windlass.core.events import WorkerWarned
from windlass.worker.presence import memory_mb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windlass.core.events import Hub
    from windlass.worker.attempt import Attempts
    from windlass.worker.config import WorkerConfig
    from windlass.worker.slots import Slots

Cause: TypeAlias = Literal["jobs", "memory", "stuck"]
PATIENCE = 30.0
"""seconds that all slots have to be stuck where it is not said how many may be: some handler may be about to end"""
_EVERY, _EVERY_COUNTING = 1.0, 0.02  # seconds between two looks; the second where jobs are counted


class Recycling:
    """Looks at one worker now and then, and stops it once there is a cause."""

    def __init__(self, config: WorkerConfig, slots: Slots, attempts: Attempts, hub: Hub) -> None:
        self._config, self._slots, self._attempts, self._hub = config, slots, attempts, hub
        self._judge = Judge(config)
        self.cause: Cause | None = None
        """why it stopped the worker"""

    async def run(self, stop: Callable[[], None]) -> None:
        """Look until there is a cause, or until cancelled."""
        while self.cause is None:
            await asyncio.sleep(_EVERY_COUNTING if self._config.max_jobs else _EVERY)
            self.cause = self._look()
        stop()

    def _look(self) -> Cause | None:
        config, now = self._config, time.monotonic()
        size = 0.0 if config.max_memory_mb is None else memory_mb()
        stuck = self._slots.stuck(now)
        cause = self._judge.cause(now, started=self._attempts.started, memory_mb=size, stuck=stuck)
        if cause == "stuck":
            text = f"{held(config, stuck)}: stopping, a fresh process has to take over"
            self._hub.tell(WorkerWarned(config.worker_id, cause, text))
        return cause


class Judge:
    """What counts as a cause."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._all_stuck_since: float | None = None

    def cause(self, now: float, *, started: int, memory_mb: float, stuck: Mapping[str, int]) -> Cause | None:
        """Why the worker should stop now; None if it should not."""
        config = self._config
        if config.max_jobs is not None and started >= config.max_jobs:
            return "jobs"
        if config.max_memory_mb is not None and memory_mb > config.max_memory_mb:
            return "memory"
        if config.max_stuck is not None:
            return "stuck" if sum(stuck.values()) >= config.max_stuck else None
        if all_stuck(config, stuck) is None:
            self._all_stuck_since = None
            return None
        if self._all_stuck_since is None:
            self._all_stuck_since = now
        return "stuck" if now - self._all_stuck_since >= PATIENCE else None


def all_stuck(config: WorkerConfig, stuck: Mapping[str, int]) -> str | None:
    """Where every slot is held by a handler that will not end: the name of a queue, or "" for all there are."""
    if sum(stuck.values()) >= config.concurrency:
        return ""
    return next((name for name, slots in (config.queues or {}).items() if stuck.get(name, 0) >= slots), None)


def held(config: WorkerConfig, stuck: Mapping[str, int]) -> str:
    """The same as a sentence."""
    queue = all_stuck(config, stuck) or ""
    n, most = (stuck[queue], (config.queues or {})[queue]) if queue else (sum(stuck.values()), config.concurrency)
    where = f" of queue {queue!r}" if queue else ""
    whom = "is held by a handler" if n == 1 else "are held by handlers"
    return f"{n} of {most} slots{where} {whom} that will not end"
