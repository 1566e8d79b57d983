"""Recycling: when a worker makes room for a fresh process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.worker.config import WorkerConfig

Cause: TypeAlias = Literal["jobs", "memory", "stuck"]
PATIENCE = 30.0
"""seconds that all slots have to be stuck where it is not said how many may be: some handler may be about to end"""


class Recycling:
    """Looks at one worker now and then."""

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
