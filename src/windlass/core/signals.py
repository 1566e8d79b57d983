"""What a handler raises to steer its own job. Signals are not errors: they say what should happen next.

Signal(Exception)
├── Retry(after=…)     try again, then: the attempt counts (lives in core/retry.py: it is the policy's class too)
├── Snooze(for_)       run later: the attempt does not count
├── Cancel(reason)     end as cancelled
└── Reject(reason)     end as failed at once, whatever attempts are left

Suspend is none of these: `ctx.wait` and its like raise it, and no `except Exception` may hold it up.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

from windlass.core.errors import SettingsError
from windlass.core.keys import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.core.outcome import Outcome

LONGEST = timedelta(days=36_500)
FOR_EVER = timedelta(days=36_000)
"""who waits longer was given no end: to say when that is would help nobody"""


class Signal(Exception):
    """The root of what a handler may raise about its own job."""


class Snooze(Signal):
    """Run this job again after the given time (seconds or a timedelta), without spending an attempt."""

    def __init__(self, for_: float | timedelta, reason: str | None = None) -> None:
        self.for_ = as_duration(for_, "Snooze")
        self.reason = reason
        super().__init__(reason or f"snoozed for {self.for_}")

    def __reduce__(self) -> tuple[type[Snooze], tuple[timedelta, str | None]]:
        """Travel between processes as what it was made from; by default an exception is remade from its message."""
        return type(self), (self.for_, self.reason)


class Cancel(Signal):
    """End this job as cancelled; it is not tried again."""

    def __init__(self, reason: str = "cancelled by its handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Reject(Signal):
    """End this job as failed now: trying again would not help."""

    def __init__(self, reason: str = "rejected by its handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Suspend(BaseException):
    """Leave the handler here: the job goes on later, in a new attempt that finds what this one has kept.

    No error, and not for handlers to raise or to catch: what must be tidied up on the way belongs in a `finally`.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("the job is suspended here and goes on later: do not catch this")
        self.outcome = outcome


def suspension_in(error: BaseException) -> Suspend | None:
    """What suspends the job, alone or in a group of nothing else: an error beside it counts more."""
    raised = list(_leaves(error))
    first = raised[0]
    return first if isinstance(first, Suspend) and all(isinstance(one, Suspend) for one in raised) else None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(one)
    else:
        yield error


def as_duration(value: float | timedelta, of: str) -> timedelta:
    """Read seconds or a timedelta; refuse what is negative, not finite or longer than a century."""
    found = read_duration(value)
    if found is None or not timedelta(0) <= found <= LONGEST:
        raise SettingsError(f"{of} is {shown(value)}: give seconds or a timedelta from 0 to 100 years")
    return found


def read_duration(value: object) -> timedelta | None:
    """The same for callers with bounds and words of their own; None if it is neither a number nor a timedelta."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return timedelta(seconds=value)
    except (OverflowError, ValueError):
        return None
