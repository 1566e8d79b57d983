"""Attempts: the runs of a job, how each ended, and the traceback of the last that failed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.web.dashboard.pages.job.moves import RUN_ENDS, attempt_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from windlass.core.history import Entry
    from windlass.core.job import Error, Job

_FRAME = re.compile(r'^\s*(?:[|+]\s*)*File "(?P<path>[^"\n]*)", line \d+')
_LIBRARY = re.compile(
    r"(?:^|[\\/])(?:site-packages|dist-packages|lib[\\/]python3[^\\/]*|windlass[\\/]\w+)[\\/]|^<frozen "
)
_OUTCOMES = {
    Happened.SUCCEEDED: ("succeeded", "good"),
    Happened.RETRYING: ("failed", "warn"),
    Happened.FAILED: ("failed", "bad"),
    Happened.SNOOZED: ("snoozed", "calm"),
    Happened.RELEASED: ("handed back", "calm"),
    Happened.LOST: ("lost", "bad"),
    Happened.CRASHED: ("crashed", "bad"),
    Happened.CANCELLED: ("cancelled", "calm"),
    Happened.SUSPENDED: ("suspended", "hold"),
    Happened.BLOCKED: ("parked", "hold"),
}
_WITH_ERROR = frozenset({Happened.RETRYING, Happened.FAILED, Happened.LOST, Happened.CRASHED, Happened.BLOCKED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run."""

    number: int | None
    token: int | None
    worker: str | None
    began: datetime
    ended: datetime | None
    outcome: str
    tone: str
    note: str
    error: Error | None = None
    """of the last that failed: the store keeps no other"""

    @property
    def lasted(self) -> timedelta | None:
        """How long, once it has ended."""
        return None if self.ended is None else self.ended - self.began


def attempts(job: Job, history: Sequence[Entry]) -> list[Attempt]:
    """Every run that the history tells of, oldest first."""
    numbers = attempt_numbers(job, history)
    found: list[Attempt] = []
    began: Entry | None = None
    failed: int | None = None
    for entry in history:
        if entry.happened is Happened.CLAIMED:
            began = entry
        elif began is not None and entry.happened in RUN_ENDS:
            if entry.happened in _WITH_ERROR:
                failed = len(found)
            found.append(_attempt(began, entry, numbers.get(began.number)))
            began = None
    if began is not None and job.status is Status.PROCESSING:
        found.append(_attempt(began, None, numbers.get(began.number)))
    if failed is not None and job.error is not None:
        found[failed] = _with_error(found[failed], job.error)
    return found


def _attempt(began: Entry, ended: Entry | None, number: int | None) -> Attempt:
    outcome, tone = ("running", "run") if ended is None else _OUTCOMES[ended.happened]
    return Attempt(
        number=number,
        token=began.token,
        worker=began.actor,
        began=began.at,
        ended=None if ended is None else ended.at,
        outcome=outcome,
        tone=tone,
        note="" if ended is None else ended.note or "",
    )


def _with_error(one: Attempt, error: Error) -> Attempt:
    return Attempt(
        number=one.number,
        token=one.token,
        worker=one.worker,
        began=one.began,
        ended=one.ended,
        outcome=one.outcome,
        tone=one.tone,
        note=one.note,
        error=error,
    )


@dataclass(frozen=True, slots=True)
class Frames:
    """Lines of a traceback that belong together: of the application, or of libraries."""

    library: bool
    text: str
    count: int
    """frames; none of what is said before, between and after them"""


def folded(traceback: str) -> list[Frames]:
    """A traceback in which what libraries did can be folded; the last frame is never folded, wherever it is."""
    parts: list[tuple[bool, list[str], int]] = []
    for line in traceback.rstrip().splitlines():
        frame = _FRAME.match(line)
        inside = frame is None and line.startswith((" ", "\t", "|"))
        if frame is not None:
            library = _LIBRARY.search(frame["path"]) is not None
            if parts and parts[-1][2] and parts[-1][0] == library:
                parts[-1] = (library, [*parts[-1][1], line], parts[-1][2] + 1)
            else:
                parts.append((library, [line], 1))
        elif (inside and parts) or (parts and not parts[-1][2]):
            parts[-1][1].append(line)
        else:
            parts.append((False, [line], 0))
    return [Frames(library, "\n".join(lines), count) for library, lines, count in parts]
