"""When a failed job is tried again: how often, how long after, and for which errors. Pure: chance is an argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import NamedTuple, TypeAlias, cast

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.core.signals import Signal, as_duration

MOST_ATTEMPTS = 1_000_000
LONGEST = 36_500 * 86_400.0  # a century of seconds: a date that far still fits every store's calendar
JITTER = 0.25  # the largest part of a delay that jitter adds to it

Errors: TypeAlias = tuple[type[BaseException], ...]
Delay: TypeAlias = Callable[[int], float | timedelta]
"""from the number of the failed attempt to how long to wait"""


class Wait(NamedTuple):
    """How long a failed job waits, and why it is not as its policy's own function would have it."""

    seconds: float
    fault: str | None = None


@dataclass(unsafe_hash=True)
class Retry(Signal):
    """Said by a declaration, the policy of its retries; raised by a handler, the wish to be tried again.

    As a policy: at most `attempts` runs, and after each failed one a wait that grows from `base` to `cap`, which are
    seconds or timedeltas and kept as seconds.

    The wait after failed attempt n is `base * factor ** (n - 1)`, at most `cap`; `Retry.fixed`, `Retry.linear` and
    `Retry.custom` make other shapes. With `jitter` up to a quarter is added, never taken away: a job never runs
    earlier than asked. Only errors of the classes in `on`, and of none in `never`, are tried again.

    As a signal: `raise Retry(after=30)` fails the attempt and tries again after 30 seconds (or a timedelta), while
    attempts are left; without `after` the handler's own policy says when.

    Equal policies compare equal, and a policy pickles whenever its `delay` does. Raises `SettingsError` for numbers
    that make no policy.
    """

    attempts: int = 5
    _: KW_ONLY
    base: float | timedelta = 1.0
    factor: float = 2.0
    cap: float | timedelta = 60.0
    jitter: bool = True
    on: Errors = (Exception,)
    never: Errors = ()
    delay: Delay | None = None
    after: float | timedelta | None = None

    def __post_init__(self) -> None:
        """Refuse what could not be obeyed later, when a job has already failed."""
        _check_attempts(self.attempts)
        self.base, self.cap = _as_seconds("base", self.base), _as_seconds("cap", self.cap)
        # A factor below one would hurry: each failure would be tried again sooner than the one before.
        _check_number("factor", self.factor, 1.0, LONGEST)
        _check_errors("on", self.on)
        _check_errors("never", self.never)
        self.asked = None if self.after is None else as_duration(self.after, "Retry after")
        if self.delay is not None and not callable(self.delay):
            raise SettingsError(f"Retry delay is {self.delay!r}: expected a function from the attempt to seconds")

    @classmethod
    def of(cls, value: int | Retry | None) -> Retry:
        """The policy that `retry=` means: a policy is itself, a number is its attempts, None is the default."""
        if value is None:
            return DEFAULT_POLICY
        return value if isinstance(value, Retry) else cls(value)

    @classmethod
    def fixed(
        cls,
        attempts: int,
        delay: float | timedelta,
        *,
        jitter: bool = True,
        on: Errors = (Exception,),
        never: Errors = (),
    ) -> Retry:
        """The same wait of `delay` after every failed attempt."""
        return cls(attempts, base=delay, factor=1.0, cap=delay, jitter=jitter, on=on, never=never)

    @classmethod
    def linear(
        cls,
        attempts: int,
        step: float | timedelta,
        *,
        cap: float | timedelta = 60.0,
        jitter: bool = True,
        on: Errors = (Exception,),
        never: Errors = (),
    ) -> Retry:
        """A wait of `step` times the number of the failed attempt, at most `cap`."""
        growing = _Linear(_as_seconds("step", step), _as_seconds("cap", cap))
        return cls(attempts, base=step, factor=1.0, cap=cap, jitter=jitter, on=on, never=never, delay=growing)

    @classmethod
    def custom(
        cls,
        attempts: int,
        delay: Delay,
        *,
        jitter: bool = True,
        on: Errors = (Exception,),
        never: Errors = (),
    ) -> Retry:
        """A wait of `delay(attempt)`, which gives seconds or a timedelta, at most a century.

        A job is never lost to a bad function: where it raises, or returns anything but a finite, non-negative
        duration, the default exponential wait stands in, and the job's history says so.
        """
        return cls(attempts, jitter=jitter, on=on, never=never, delay=delay)

    def delay_after(self, attempt: int, spread: float) -> float:
        """Seconds to wait after failed attempt number `attempt`, counted from 1. Never raises, never negative.

        `spread` in [0, 1) is the chance that jitter is made of; 0 gives the bare delay. What lies outside is treated
        as the nearest end, so that no chance can make a job early.
        """
        return self.wait_after(attempt, spread).seconds

    def wait_after(self, attempt: int, spread: float) -> Wait:
        """The same, with what was wrong with the policy's own function, if anything was."""
        asked, fault = self._asked(min(max(attempt, 1), MOST_ATTEMPTS))
        added = asked * JITTER * min(1.0, max(0.0, spread)) if self.jitter else 0.0
        return Wait(asked + added, fault)

    def allows(self, error: BaseException) -> bool:
        """Whether an error of this class is worth another attempt."""
        return isinstance(error, self.on) and not isinstance(error, self.never)

    def _asked(self, attempt: int) -> Wait:
        usual = _exponential(attempt, cast("float", self.base), self.factor, cast("float", self.cap))
        if self.delay is None:
            return Wait(usual)
        said = _told(self.delay, attempt)
        return Wait(usual, said) if isinstance(said, str) else Wait(said)


@dataclass(frozen=True, slots=True)
class _Linear:
    """A class and not a closure, so that policies pickle and compare."""

    step: float
    cap: float

    def __call__(self, attempt: int) -> float:
        return min(self.step * attempt, self.cap)


def _exponential(attempt: int, base: float, factor: float, cap: float) -> float:
    try:
        # As floats: whole numbers would grow into millions of digits before the cap is looked at.
        return min(float(base) * float(factor) ** (attempt - 1), float(cap))
    except OverflowError:
        # The power left the floats; a base of nothing stays nothing whatever multiplies it.
        return float(cap) if base else 0.0


def _told(delay: Delay, attempt: int) -> float | str:
    """What a user's function says, or what is wrong with it."""
    try:
        return _seconds(delay(attempt))
    except Exception as error:  # noqa: BLE001  # whatever a user's function raises, the failed job must still be settled
        return f"its retry delay raised {shown(error)}, so the default wait stands in"


def _seconds(given: object) -> float | str:
    said = given.total_seconds() if isinstance(given, timedelta) else given
    # A comparison, unlike float(), also stands an int too large for a float; not-a-number fails it.
    if isinstance(said, int | float) and not isinstance(said, bool) and 0 <= said < math.inf:
        return float(min(said, LONGEST))
    return f"its retry delay said {shown(given)}, which is no number of seconds, so the default wait stands in"


def _check_attempts(found: object) -> None:
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= MOST_ATTEMPTS:
        raise SettingsError(
            f"Retry attempts is {found!r}: expected a whole number from 1 to {MOST_ATTEMPTS}; "
            "the first run counts, so use 1 for a job that is never tried again"
        )


def _check_number(name: str, found: object, least: float, most: float, unit: str = "") -> None:
    # Not-a-number fails every comparison, so the range refuses it too.
    if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found <= most:
        raise SettingsError(f"Retry {name} is {found!r}: expected a number from {least:g} to {most:g}{unit}")


def _as_seconds(name: str, given: float | timedelta) -> float:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    _check_number(name, seconds, 0.0, LONGEST, " of seconds, or a timedelta")
    return seconds


def _check_errors(name: str, found: object) -> None:
    if not isinstance(found, tuple) or not all(_is_error(one) for one in cast("tuple[object, ...]", found)):
        raise SettingsError(f"Retry {name} is {found!r}: expected a tuple of exception classes, such as (OSError,)")


def _is_error(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, BaseException)


DEFAULT_POLICY = Retry()
