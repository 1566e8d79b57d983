"""Outages: a worker for which the store was away, or which stood still itself, lets the others come back first.

While the store is away nobody can extend a lease, so that leases of living workers end, too. The first worker to ask
when it is back would find them lost; each second of waiting lets the living extend what they hold or write how it
ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.worker.config import WorkerConfig


class Outage:
    """When the store last answered this worker's heartbeat, and until when it does not rescue."""

    def __init__(self, config: WorkerConfig, now: float) -> None:
        self._lease = config.lease.total_seconds()
        heartbeat = config.heartbeat.total_seconds()
        # Shorter than any silence in which somebody's lease could have ended that was extended in time before it.
        self._usual = max(1.5 * heartbeat, 0.75 * (self._lease - heartbeat))
        self._answered = now
        self._until = now

    def answered(self, now: float) -> None:
        """The store answered: if it had not for long, it is back."""
        silence = now - self._answered
        self._answered = now
        if silence > self._usual:
            self._until = now + min(self._lease, silence)

    def over(self, now: float) -> bool:
        """Whether the store answers, and has for long enough that every living worker has come back."""
        return now >= self._until and now - self._answered <= self._usual
