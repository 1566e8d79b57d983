"""Slots: room for running jobs, and what is known of each job that holds one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from windlass.core.handler import Declaration
    from windlass.core.job import Job, Progress
    from windlass.stores.contract import Want
    from windlass.worker.config import WorkerConfig

StopReason: TypeAlias = Literal["timeout", "cancel", "fence", "shutdown"]


_OBEY = 2.0
"""seconds a coroutine has to end after it was cancelled before it counts as stuck"""
_WEIGHT: dict[StopReason, int] = {"cancel": 0, "timeout": 1, "fence": 2, "shutdown": 3}


class Running:
    """One claimed job from its claim to the moment its end is in the store."""

    __slots__ = (
        "cancelled",
        "confirmed",
        "deadline",
        "declaration",
        "ended",
        "fenced",
        "job",
        "killer",
        "leads",
        "progress",
        "raised",
        "reason",
        "renewed",
        "reported",
        "started",
        "stopped_at",
        "stopper",
        "task",
        "valid_until",
    )

    def __init__(self, job: Job, declaration: Declaration, valid_until: float) -> None:
        self.job = job
        self.declaration = declaration
        self.valid_until = valid_until
        """by the monotonic clock, counted from before the claim or extension was sent"""
        self.started = time.monotonic()
        self.deadline: float | None = None
        """by the monotonic clock; set when the handler's own time begins"""
        self.confirmed = False
        """whether an extension has shown the store that this worker has the job in hand"""
        self.cancelled = False
        self.fenced = False
        """given up by the leasing thread, which may not wait for a blocked loop to say so"""
        self.ended = False
        """the handler's part is over; only the writing of its end is left"""
        self.leads = True
        """whether it stands for its slot: of a batch only the first does"""
        self.reason: StopReason | None = None
        self.stopped_at = float("inf")
        """when, by the monotonic clock, it was told to end at once"""
        self.progress: Progress | None = None
        self.reported: Progress | None = None
        """of its progress, what was written last"""
        self.raised: BaseException | None = None
        """what the handler raised, until its end is told"""
        self.stopper: Callable[[StopReason], object] | None = None
        self.task: asyncio.Task[None] | None = None
        """lives its attempt, if that is not one of a batch"""
        self.killer: Callable[[], None] | None = None
        """ends the handler at once, from any thread; only what runs in a process of its own has one"""
        self.renewed: Callable[[], None] | None = None
        """tells a handler in a process of its own, from any thread, that `valid_until` has changed"""

    def extend(self, valid_until: float) -> None:
        """Its lease was extended, which also confirms it. From any thread."""
        self.valid_until = valid_until
        self.confirmed = True
        renewed = self.renewed
        if renewed is not None:
            renewed()

    def fence(self) -> None:
        """Let the handler know, or end it, where that needs no loop. From any thread."""
        self.fenced = True
        killer = self.killer
        if killer is not None:
            killer()

    def stop(self, reason: StopReason) -> None:
        """Ask the runner to stop the handler; only a weightier reason takes the place of one that was ignored.

        A handler asked to cancel may go on, and then still has a timeout; one past that may still lose its lease.
        """
        if reason == "cancel":
            self.cancelled = True
        if self.ended or (self.reason is not None and _WEIGHT[reason] <= _WEIGHT[self.reason]):
            return
        if reason != "cancel" and self.reason in (None, "cancel"):
            self.stopped_at = time.monotonic()
        self.reason = reason
        if self.stopper is not None:
            self.stopper(reason)

    def is_cancelled(self) -> bool:
        """Whether the handler should end: asked to cancel, timed out, or the job is no longer this worker's."""
        return self.cancelled or self.fenced or self.reason is not None


class Slots:
    """Counts free slots, in all and by queue, and holds what runs. Changed only in the worker's loop."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._taken = 0
        self._by_queue: Counter[str] = Counter()
        self._asked = 0
        self._asked_of: Counter[str] = Counter()
        self.freed = asyncio.Event()
        self.exhausted: frozenset[str] = frozenset()
        """queues that may have more jobs than there was room for: claiming looks again when one of their jobs ends"""
        self.look = asyncio.Event()
        """set when there is reason to claim"""
        self.batches: list[asyncio.Event] = []
        """set when a slot is free again of a queue that has only so many: a claim for batches may have met none"""
        self.running: dict[str, Running] = {}
        """by job id, until its end is in the store; the leasing thread reads it, too"""
        self.outlived: Counter[str] = Counter()
        """by queue: how many hold a slot though their job is settled, because their thread goes on"""

    def stuck(self, now: float) -> Counter[str]:
        """By queue, how many slots handlers hold that do not end: threads, and coroutines that were cancelled.

        From any thread: what is counted is copied first.
        """
        deaf = Counter(
            one.job.queue
            for one in list(self.running.values())
            if one.leads and not one.ended and one.declaration.mode == "coroutine" and now - one.stopped_at > _OBEY
        )
        return Counter(dict(self.outlived)) + deaf

    @property
    def taken(self) -> int:
        """How many slots are in use."""
        return self._taken

    def full(self, queue: str | None = None) -> bool:
        """Whether every slot is in use, or every one that jobs of this queue may have, whatever a claim may bring."""
        if self._taken >= self._config.concurrency:
            return True
        most = None if queue is None or self._config.queues is None else self._config.queues.get(queue)
        return queue is not None and most is not None and self._by_queue[queue] >= most

    def free(self) -> tuple[int, Mapping[str, int] | None]:
        """How many jobs may start now: in all, and from each queue."""
        room = self._config.concurrency - self._taken - self._asked
        if self._config.queues is None:
            return room, None
        by_queue = {
            name: min(room, most - self._by_queue[name] - self._asked_of[name])
            for name, most in self._config.queues.items()
        }
        return min(room, sum(by_queue.values())), by_queue

    @contextmanager
    def asked(self, want: Want, slots: int | None = None) -> Generator[None, None, None]:
        """While inside, a claim is under way: what it may bring counts as taken, or so many slots."""
        n = want.n if slots is None else slots
        each = {name: min(most, n) for name, most in want.queues.items()} if want.queues else {}
        self._asked += n
        self._asked_of.update(each)
        try:
            yield
        finally:
            self._asked -= n
            self._asked_of.subtract(each)
            self.freed.set()  # it may have brought less

    def take(self, running: Running, *others: Running) -> None:
        """Fill a slot, with one job or with those that one call does; of each queue they came from one is taken."""
        self._taken += 1
        self.running[running.job.id] = running
        for other in others:
            other.leads = False
            self.running[other.job.id] = other
        if self._config.queues is not None:
            self._by_queue.update({member.job.queue for member in (running, *others)})

    def release(self, running: Running, *others: Running) -> None:
        """Empty a slot: the handler is over, its thread has ended, its process is gone."""
        self._taken -= 1
        if self._config.queues is not None:
            queues = {member.job.queue for member in (running, *others)}
            self._by_queue.subtract(queues)
            if not queues.isdisjoint(self.exhausted):
                self.look.set()
            for event in self.batches:
                event.set()
        self.freed.set()

    def forget(self, running: Running) -> None:
        """The job's end is in the store: its lease needs no more keeping."""
        if self.running.get(running.job.id) is running:
            del self.running[running.job.id]
