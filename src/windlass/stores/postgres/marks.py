"""Marks: how far a claim need not look again, while an old snapshot keeps what was claimed from being cleared away."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from windlass.core.job import Job

_SLOW = 0.005  # seconds: looking for jobs takes a tenth of it unless there is much to step over
_SHARE = 10  # how many times longer than it took, the next look from the beginning is put off,
_LONGEST = 1.0  # but never longer than so many seconds


class Marks:
    """How far each queue was seen to be empty; in use only after a look from the beginning that was slow.

    A job that is queued again, or a new one of higher priority, lies before its queue's mark. So a look from the
    beginning is due soon: within a second at most, and sooner the faster the last one was.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, datetime, str]] = {}
        self._types: frozenset[str] = frozenset()
        self._slow = False
        self._due = 0.0

    def due(self, types: frozenset[str]) -> float:
        """Seconds until the next look from the beginning."""
        if types != self._types:  # there may be jobs of other types before the marks
            self.forget()
            self._types = types
        return max(0.0, self._due - time.monotonic()) if self._slow and self._last else 0.0

    def asked(self) -> tuple[Any, ...]:
        """The last values of a statement that looks from the marks."""
        marks = self._last.values()
        return list(self._last), *([mark[part] for mark in marks] for part in range(3))

    def looked(self, seconds: float) -> None:
        """Learn how long a look from the beginning took."""
        self._slow = seconds > _SLOW
        self._due = time.monotonic() + min(seconds * _SHARE, _LONGEST)
        self._last.clear()

    def passed(self, jobs: Iterable[Job]) -> None:
        """Everything up to these has been taken, by this claim or others."""
        if self._slow:
            for job in jobs:
                here = (job.priority, job.run_at, job.id)
                self._last[job.queue] = max(here, self._last.get(job.queue, here))

    def forget(self) -> None:
        """Look from the beginning next time."""
        self._last.clear()
