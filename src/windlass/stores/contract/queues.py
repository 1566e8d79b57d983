"""Queues: listing, pausing, their largest depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from windlass.stores.contract.views import Count

DEPTH_CAP = 1_000
"""The jobs of a queue are counted so far, and it is said where there are more: a list must stay cheap at any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """One queue as an operator sees it."""

    name: str
    paused_at: datetime | None
    max_depth: int | None
    depth: Count
    """queued jobs, counted up to `DEPTH_CAP`"""
    processing: Count
    oldest: timedelta | None
    """how long the longest-waiting queued job has waited, among the first hundred of each priority"""


class Queues(Protocol):
    """Queues exist from the first job or setting that names them."""

    async def list(self) -> Sequence[QueueInfo]:
        """Every queue, by name."""
        ...

    async def pause(self, names: Sequence[str]) -> None:
        """Let nothing more be claimed from these; what runs goes on."""
        ...

    async def resume(self, names: Sequence[str]) -> None:
        """Let them be claimed again."""
        ...

    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Refuse inserts while so many jobs wait: queued, scheduled, retrying or blocked. None is no limit."""
        ...
