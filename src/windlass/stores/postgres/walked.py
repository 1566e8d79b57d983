"""Walked: how far claims came through jobs that cannot be taken, so as not to walk over them each time.

They stand in lines which others have, or have expired and are not cancelled yet.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Place: TypeAlias = "tuple[int, datetime, str]"
"""where a job stands in its queue: priority, run_at, id"""

_FEW = 1_000  # so many jobs are walked over each time
_SHARE = 10  # how many times longer than it took, the next walk from the beginning is put off,
_LONGEST = 1.0  # but never longer than so many seconds


class Walked:
    """The way behind: where the next walk goes on, and which lines it leaves to others.

    Before these places are only jobs in lines that others had, expired ones, and what was queued there since. So a walk
    from the beginning follows when this one has come to the end, after a pause that is short beside what it cost.
    """

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self.passed: dict[str, str] = {}
        """lines that others have, each with a lock of it"""
        self._types: frozenset[str] = frozenset()
        self._through = False
        self._began = self._due = 0.0
        self._spent = 0.0

    def begin(self, types: frozenset[str]) -> None:
        """A walk begins: from the places, unless it is time to begin anew."""
        self._began = time.monotonic()
        if types != self._types or (self._through and self._began >= self._due):
            self.forget()
            self._types = types

    def begin_anew(self) -> None:
        """A walk begins, from the beginning."""
        self.forget()
        self._began = time.monotonic()

    def asked(self) -> tuple[Any, ...]:
        """The places, as values of a statement."""
        places = self._places.values()
        return list(self._places), *([place[part] for place in places] for part in range(3))

    def came(self, places: Mapping[str, Place], passed: Mapping[str, str], n: int, *, through: bool) -> None:
        """A walk came to these places, over so many jobs; and whether to the end."""
        if n < _FEW and not self._places:
            return  # that little is walked again each time
        now = time.monotonic()
        self._spent += now - self._began
        self._places.update(places)
        self.passed = dict(passed)
        if through and not self._through:
            self._through, self._due = True, now + min(self._spent * _SHARE, _LONGEST)

    def forget(self) -> None:
        """Walk from the beginning next time."""
        self._places.clear()
        self.passed = {}
        self._through, self._spent = False, 0.0
