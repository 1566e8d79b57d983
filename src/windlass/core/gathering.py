"""What happens to every job, gathered by the batch for listeners that only count: no event is made of each for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from windlass.core.history import Happened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.core.job import Job
    from windlass.core.status import Status
    from windlass.core.transition import Transition

Ended: TypeAlias = "tuple[Job, Transition, float, BaseException | None]"
"""an end that is in the store: the job as it was claimed, what became of it, after how many seconds, what was raised"""
Claims: TypeAlias = "Mapping[tuple[str, str], Sequence[float]]"
"""by type and queue: the seconds that claimed jobs had waited, where that is known"""
Ends: TypeAlias = "Mapping[Ending, Sequence[float]]"
"""the seconds that attempts took, of all that ended alike"""


class Ending(NamedTuple):
    """How attempts ended that are counted together."""

    type: str
    queue: str
    happened: Happened
    to: Status
    crashed: bool


@runtime_checkable
class Gathering(Protocol):
    """A listener that is given these in place of `JobClaimed`, `JobStarted` and `JobEnded`."""

    def take_claims(self, claims: Claims) -> None:
        """A worker was given these jobs."""
        ...

    def take_start(self, job: Job) -> None:
        """A job is about to run."""
        ...

    def take_ends(self, ends: Ends) -> None:
        """These attempts are over, and that is in the store."""
        ...


def went_well(end: Ended) -> bool:
    """Whether it is the end that most jobs have, which is not worth an event."""
    return end[1].happened is Happened.SUCCEEDED


def not_well(ends: Sequence[Ended]) -> list[Ended]:
    """The others."""
    return [end for end in ends if end[1].happened is not Happened.SUCCEEDED]


def waits_of(jobs: Sequence[Job]) -> Claims:
    """How long they had waited, by type and queue."""
    found: dict[tuple[str, str], list[float]] = {}
    for job in jobs:
        if job.wait_ms is not None:
            key = (job.type, job.queue)
            alike = found.get(key)
            if alike is None:
                alike = found[key] = []
            alike.append(job.wait_ms / 1000)
    return found


def times_of(ends: Sequence[Ended]) -> Ends:
    """How long they took, by what is counted together."""
    found: dict[tuple[str, str, Happened, Status, bool], list[float]] = {}
    for job, change, seconds, _ in ends:
        key = (job.type, job.queue, change.happened, change.to, change.crashed)
        alike = found.get(key)
        if alike is None:
            alike = found[key] = []
        alike.append(seconds)
    return {Ending(*key): alike for key, alike in found.items()}
