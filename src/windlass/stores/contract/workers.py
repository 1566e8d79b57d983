"""Workers: how each describes itself, and which are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A worker as it last described itself."""

    id: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    slots: int
    running: int
    stuck: int = 0
    memory_mb: float | None = None
    loop_lag_ms: float | None = None
    stopping: bool = False
    started_at: datetime | None = None
    beat_at: datetime | None = None


SILENT = timedelta(seconds=45)
"""a worker that has not beaten for so long is presumed dead: four of its default heartbeats and some"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A worker that has beaten lately, as far as another needs to know it."""

    id: str
    queues: tuple[str, ...]
    """the queues it consumes; empty is every queue"""
    handles: str = ""
    """the same for workers that handle the same types"""


class Workers(Protocol):
    """The workers that are there. A job's fate hangs on its lease, never on a worker's row."""

    async def beat(self, worker: WorkerInfo) -> Sequence[Peer]:
        """Write how the worker is, stamped by the store; answers all that have beaten lately, by id, itself among them.

        Left out are those that are stopping and those that have been silent for `SILENT`.
        """
        ...

    async def list(self) -> Sequence[WorkerInfo]:
        """Every worker that has not been forgotten, by id."""
        ...

    async def forget(self, ids: Sequence[str]) -> None:
        """Remove workers that have stopped."""
        ...
