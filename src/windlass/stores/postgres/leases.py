"""Leases that this store has handed out: what the jobs of a worker are, if a claim of its is in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.core.job import Job

_MOST = 100_000  # so many are kept before it is asked which of them are over


class Held(NamedTuple):
    """One lease."""

    token: int
    worker_id: str
    alone: bool
    """nobody can be waiting for its end"""
    queue: str


class Leases:
    """Each from its claim until the store hears of its end.

    Of some ends it never does: a lease was lost, or a caller's transaction ended the job, which may have been rolled
    back. So a lease that is kept here may be over; but every job that still runs is here.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._held: dict[str, Held] = {}
        self._least = self._most = most

    def add(self, worker_id: str, jobs: Iterable[Job]) -> None:
        """These were handed out."""
        for job in jobs:
            alone = job.limit_key is None and job.unique_running is None and job.next_id is None
            self._held[job.id] = Held(job.lease_token, worker_id, alone, job.queue)

    def get(self, job_id: str) -> Held | None:
        """The latest lease of a job."""
        return self._held.get(job_id)

    def of(self, worker_id: str) -> set[tuple[str, int]]:
        """The ids and tokens of one worker's."""
        return {(job_id, held.token) for job_id, held in self._held.items() if held.worker_id == worker_id}

    def end(self, ended: Iterable[tuple[str, int]]) -> None:
        """These are over; a later lease of the same job is not."""
        for job_id, token in ended:
            held = self._held.get(job_id)
            if held is not None and held.token == token:
                del self._held[job_id]

    @property
    def many(self) -> bool:
        """Whether it is time to ask which of them are over."""
        return len(self._held) > self._most

    def asked(self) -> None:
        """It was asked, and what is left may well be many."""
        self._most = max(self._least, 2 * len(self._held))
