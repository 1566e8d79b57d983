"""Whether all is well: what is wrong or will be soon, found out by a few cheap looks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.client.workers import Presence
from windlass.core.status import Status
from windlass.core.wording import plural, span
from windlass.web.dashboard.visit import quoted
from windlass.web.dashboard.words import counted, quoted_word, share, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.figures import RunFigures
    from windlass.client.workers import WorkerState
    from windlass.core.job import Job
    from windlass.stores.contract import QueueInfo
    from windlass.web.dashboard.visit import Visit

OLD = timedelta(minutes=5)
_MANY_ERRORS, _TOO_MANY_ERRORS = 0.05, 0.2
_ENOUGH_RUNS = 20
_LOOKED_AT = 100
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at."""

    tone: str
    text: str
    href: str
    word: str
    """of the link"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was looked at, and what is to be said of it: the worst first."""

    queues: Sequence[QueueInfo]
    workers: Sequence[WorkerState]
    unhandled: Counter[str]
    """types that no live worker has a handler for, and how many of them are among the oldest that wait"""
    findings: tuple[Finding, ...] = ()

    @property
    def oldest(self) -> QueueInfo | None:
        """The queue with the longest wait."""
        waiting = [one for one in self.queues if one.oldest is not None]
        return max(waiting, key=lambda one: one.oldest or timedelta(0), default=None)

    @property
    def in_words(self) -> str:
        """How it stands, where nothing is wrong."""
        alive = [one for one in self.workers if one.alive]
        running, slots = sum(one.running for one in alive), sum(one.slots for one in alive)
        told = f"{plural(len(alive), 'worker')}, {running} of {slots} slots in use"
        if self.oldest is None or self.oldest.oldest is None:
            return f"{told}; nothing is waiting"
        return f"{told}; nothing is waiting longer than {span(self.oldest.oldest)}"


async def standing(visit: Visit, lately: RunFigures) -> Standing:
    """How it stands for who visits; of the runs of the last time there is one verdict."""
    if not visit.sees_all:
        return Standing(queues=(), workers=(), unhandled=Counter(), findings=tuple(_errors(visit, lately)))
    queues, workers = await visit.app.queues.list(max_age=visit.age), await visit.app.workers.list()
    alive = [one for one in workers if one.presence is Presence.ALIVE]
    waits = any(one.depth.n for one in queues)
    found = await unhandled(visit, alive) if alive and waits else Counter[str]()
    findings = [
        *_workers(visit, workers, alive, waits=waits),
        *_unhandled(visit, found),
        *_queues(visit, queues, alive),
        *_errors(visit, lately),
    ]
    findings.sort(key=lambda one: ("bad", "warn", "hold").index(one.tone))
    return Standing(queues=queues, workers=workers, unhandled=found, findings=tuple(findings))


async def unhandled(visit: Visit, alive: Sequence[WorkerState]) -> Counter[str]:
    """Types among the jobs that have waited longest that no live worker has a handler for."""
    known = {name for one in alive for name in one.types}
    page = await visit.jobs.find(status=Status.QUEUED, limit=_LOOKED_AT, oldest_first=True, max_age=2)
    return Counter(job.type for job in page.jobs if not _own(job) and job.type not in known)


def _own(job: Job) -> bool:
    # The process that serves the API runs them where no worker does.
    return job.type.startswith("windlass.")


def _workers(
    visit: Visit, workers: Sequence[WorkerState], alive: Sequence[WorkerState], *, waits: bool
) -> list[Finding]:
    found: list[Finding] = []
    url = visit.url("/workers")
    if not alive:
        text = "No worker is running, and jobs are waiting." if waits else "No worker is running."
        found.append(Finding(tone="bad" if waits else "warn", text=text, href=url, word="Workers"))
    silent = [one for one in workers if not one.alive]
    if silent:
        names = _some([one.id for one in silent])
        text = f"{plural(len(silent), 'worker')} stopped sending heartbeats: {names}."
        found.append(Finding(tone="warn", text=text, href=url, word="Workers"))
    stuck = sum(one.stuck for one in alive)
    if stuck:
        text = f"{plural(stuck, 'thread')} went on past the timeout and cannot be stopped."
        found.append(Finding(tone="warn", text=text, href=url, word="Workers"))
    return found


def _unhandled(visit: Visit, found: Counter[str]) -> list[Finding]:
    return [
        Finding(
            tone="bad",
            text=f"No worker handles {visible(type_)}: {n}{' or more' if n == _LOOKED_AT else ''} waiting.",
            href=visit.url("/jobs", q=f"status:queued type:{quoted_word(type_)}"),
            word="Show the jobs",
        )
        for type_, n in found.most_common(_NAMED)
    ]


def _queues(visit: Visit, queues: Sequence[QueueInfo], alive: Sequence[WorkerState]) -> list[Finding]:
    found: list[Finding] = []
    paused = [one for one in queues if one.paused_at is not None]
    if paused:
        held = ", ".join(f"{visible(one.name)} ({counted(one.depth)} waiting)" for one in paused[:_NAMED])
        rest = f" and {len(paused) - _NAMED} more" if len(paused) > _NAMED else ""
        text = f"{'Queues are' if len(paused) > 1 else 'A queue is'} paused: {held}{rest}."
        href = _queue(visit, paused[0].name) if len(paused) == 1 else visit.url("/queues")
        found.append(Finding(tone="hold", text=text, href=href, word="Open the queue"))
    for one in queues:
        if one.paused_at is not None or one.oldest is None:
            continue
        if alive and not any(not worker.queues or one.name in worker.queues for worker in alive):
            text = f"No worker consumes the queue {visible(one.name)}: {counted(one.depth)} waiting."
            found.append(Finding(tone="bad", text=text, href=_queue(visit, one.name), word="Open the queue"))
        elif one.oldest > OLD:
            text = f"A job has been waiting in {visible(one.name)} for {span(one.oldest)}."
            found.append(Finding(tone="warn", text=text, href=_queue(visit, one.name), word="Open the queue"))
    return found


def _errors(visit: Visit, lately: RunFigures) -> list[Finding]:
    if lately.runs < _ENOUGH_RUNS or lately.error_rate <= _MANY_ERRORS:
        return []
    tone = "bad" if lately.error_rate > _TOO_MANY_ERRORS else "warn"
    text = f"{share(lately.error_rate)} of the runs of the last 15 minutes failed."
    return [Finding(tone=tone, text=text, href=visit.url("/failures"), word="Failures")]


def _queue(visit: Visit, name: str) -> str:
    return visit.url(f"/queues/{quoted(name)}")


def _some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(visible(name) for name in names[:_NAMED]) + rest
