"""Steps of time: how long they are on an axis that has about 180 of them, and when each begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

LONGEST = timedelta(days=30)
"""so long minutes are kept"""
MINUTE = timedelta(minutes=1)
MOST_STEPS = 180
_STEPS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 10, 30, 60, 240))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def step_of(span: timedelta) -> timedelta:
    """The shortest step of which at most about 180 make up the span."""
    return next((step for step in _STEPS if span <= step * MOST_STEPS), _STEPS[-1])


def begin_of(at: datetime, step: timedelta) -> datetime:
    """When the step began that this instant lies in."""
    return at - (at - _EPOCH) % step


def steps_of(at: datetime, span: timedelta, step: timedelta) -> tuple[datetime, ...]:
    """The steps that the span up to now touches, oldest first."""
    first, last = begin_of(at - span, step), begin_of(at, step)
    return tuple(first + step * n for n in range((last - first) // step + 1))
