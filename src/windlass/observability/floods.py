"""Floods: of many warnings that are alike a log gets the first ones, and then their number."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from windlass.observability.lines import Line

MOST = 20
"""lines of one kind that are written in a window"""
WINDOW = 10.0
"""seconds"""
_KINDS = 1_000
"""kinds that are told apart in a window: names of types and errors may come from anywhere"""


class LeftOut(NamedTuple):
    """So many lines like this one were not written."""

    like: Line
    n: int


class Floods:
    """Counts what is alike. What was left out is told when the window is over, by a timer if nothing else comes."""

    def __init__(self, tell: Callable[[LeftOut], None], *, most: int = MOST, window: float = WINDOW) -> None:
        self._tell, self._most, self._window = tell, most, window
        self._lock = threading.Lock()
        self._counts: Counter[Hashable] = Counter()
        self._left_out: dict[Hashable, LeftOut] = {}
        self._until = 0.0
        self._timer: threading.Timer | None = None

    def admit(self, line: Line) -> bool:
        """Whether this line may be written."""
        if time.monotonic() >= self._until:
            self.end()
        with self._lock:
            kind = line.kind if line.kind in self._counts or len(self._counts) < _KINDS else None
            self._counts[kind] += 1
            if self._counts[kind] <= self._most:
                return True
            before = self._left_out.get(kind)
            self._left_out[kind] = LeftOut(line, 1) if before is None else before._replace(n=before.n + 1)
            if self._timer is None:
                self._timer = threading.Timer(max(0.0, self._until - time.monotonic()), self.end)
                self._timer.daemon = True
                self._timer.start()
            return False

    def end(self) -> None:
        """Begin a new window, and tell what was left out in the one before."""
        with self._lock:
            left_out = list(self._left_out.values())
            self._counts.clear()
            self._left_out.clear()
            self._until = time.monotonic() + self._window
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        for one in left_out:
            self._tell(one)
