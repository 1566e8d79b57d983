"""Buckets: how often somebody may come, and how long one waits who guesses. Memory is bounded, however many come."""

from __future__ import annotations

from collections import OrderedDict

MOST_KNOWN = 10_000
"""of whom something is remembered; beyond, who came longest ago begins anew"""
BURST = 2
"""seconds' worth of requests that may come at once"""
FREE = 10
"""failures that cost nothing: a mistyped key, an old bookmark"""
FORGIVEN = 10.0
"""seconds after which one failure is forgotten"""
LONGEST = 60.0
"""seconds that a guesser waits at most"""


class Buckets:
    """A token bucket for each name: so many tokens a second, two seconds' worth at once. A rate of 0 is no limit."""

    def __init__(self, rate: float, most: int = MOST_KNOWN) -> None:
        self._rate, self._burst, self._most = rate, max(1.0, rate * BURST), most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Of how many something is remembered."""
        return len(self._levels)

    def take(self, name: str, now: float) -> float:
        """Take a token; seconds until there is one again, and 0 where one was taken."""
        if not self._rate:
            return 0.0
        level, at = self._levels.pop(name, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._rate)
        taken = level >= 1
        self._levels[name] = level - taken, now
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return 0.0 if taken else (1 - level) / self._rate


class Guesses:
    """Failures of each name to say who it is: after the first ten each makes the wait twice as long."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._failed: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Of how many something is remembered."""
        return len(self._failed)

    def wait(self, name: str, now: float) -> float:
        """Seconds until this one may try again."""
        failures, at = self._failed.get(name, (0.0, now))
        over = failures - FREE
        return 0.0 if over <= 0 else max(0.0, min(LONGEST, 2.0 ** min(over - 1, LONGEST)) - (now - at))

    def note(self, name: str, now: float) -> None:
        """It has failed once more."""
        failures, at = self._failed.pop(name, (0.0, now))
        self._failed[name] = max(0.0, failures - (now - at) / FORGIVEN) + 1, now
        if len(self._failed) > self._most:
            self._failed.popitem(last=False)
