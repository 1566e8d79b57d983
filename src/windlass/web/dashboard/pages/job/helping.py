"""Helping: what would let a job go on, for each reason why it stands where it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.client.explaining import Why
from windlass.core.fingerprint import fingerprint
from windlass.core.status import Status
from windlass.web.dashboard.words import quoted_word

if TYPE_CHECKING:
    from windlass.client.explaining import Explanation
    from windlass.core.job import Job
    from windlass.web.dashboard.visit import Visit

TONES = {
    Why.RUNNING: ("run", "processing"),
    Why.CANCELLING: ("warn", "stopping"),
    Why.LEASE_EXPIRED: ("bad", "silent"),
    Why.SCHEDULED: ("calm", "scheduled"),
    Why.RETRYING: ("warn", "retrying"),
    Why.EXPIRED: ("calm", "cancelled"),
    Why.PAUSED: ("hold", "paused"),
    Why.NO_WORKER: ("bad", "failed"),
    Why.NO_HANDLER: ("bad", "failed"),
    Why.NO_CONSUMER: ("bad", "failed"),
    Why.BUSY: ("warn", "queued"),
    Why.IN_LINE: ("wait", "queued"),
    Why.DUE: ("wait", "queued"),
    Why.PAYLOAD: ("bad", "blocked"),
}
"""of the sentence; of all that waits for something else, that of what is blocked"""
_ENDED = {Status.SUCCEEDED: "good", Status.FAILED: "bad", Status.CANCELLED: "calm"}


@dataclass(frozen=True, slots=True)
class Help:
    """Something that one may look at or do."""

    words: str
    href: str


def tone_of(told: Explanation) -> tuple[str, str]:
    """The tone and the icon of a sentence."""
    if told.why is Why.FINISHED:
        return _ENDED.get(told.status, "calm"), told.status.value
    return TONES.get(told.why, ("hold", "blocked"))


def helps(told: Explanation, job: Job, visit: Visit) -> list[Help]:
    """Where to go from the sentence; operators are led to what concerns all, others to their own jobs."""
    if job.status is Status.FAILED and job.error is not None:
        alike = f"status:failed type:{quoted_word(job.type)} fingerprint:{fingerprint(job.type, job.error)}"
        return [Help("Jobs with the same error", visit.url("/jobs", q=alike))]
    if not visit.sees_all:
        return []
    queue = quoted_word(job.queue)
    running = Help("What runs now", visit.url("/jobs", q="status:processing"))
    match told.why:
        case Why.PAUSED:
            return [Help("All queues", visit.url("/queues")), _waiting(visit, queue)]
        case Why.NO_WORKER | Why.NO_HANDLER | Why.NO_CONSUMER | Why.LEASE_EXPIRED | Why.PAYLOAD:
            return [Help("All workers", visit.url("/workers"))]
        case Why.BUSY | Why.IN_LINE:
            return [_waiting(visit, queue), running]
        case Why.LIMIT | Why.RATE | Why.RUNNING_KEY:
            return [
                Help(
                    f"Running jobs of {job.type}",
                    visit.url("/jobs", q=f"status:processing type:{quoted_word(job.type)}"),
                )
            ]
        case Why.FLOW:
            return [Help("All that it waits for", visit.url("/jobs", q=f"next:{job.id}"))]
        case _:
            return []


def _waiting(visit: Visit, queue: str) -> Help:
    return Help("What waits in its queue", visit.url("/jobs", q=f"status:queued queue:{queue}"))
