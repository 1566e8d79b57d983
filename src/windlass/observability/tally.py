"""Tallies: what has been counted, in cells of eight bytes that another process can read while they are written.

A worker that is supervised counts in memory that its supervisor has given it, and the supervisor adds up: what a
process has counted outlives it, however it ends, and is counted once.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
import threading
from bisect import bisect_left
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from windlass.observability.measures import MEASURES, Kind, Measure

if TYPE_CHECKING:
    from collections.abc import Generator

Series: TypeAlias = "dict[tuple[Measure, tuple[str, ...]], list[float]]"
"""the cells of each measure by its labels: a count or a gauge has one, times have one for each bucket and their sum"""

LONG = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
"""seconds: the bounds of buckets for what jobs do"""
SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""the same for what loops and stores do"""
_CELL = 8
_MOST = 1 << 20
"""cells of one process: enough for 20,000 pairs of type and queue; pages that were never written take no memory"""
_BY_NAME = {one.name: one for one in MEASURES}
_ADDED = (Kind.COUNT, Kind.SECONDS)


def buckets_of(measure: Measure) -> tuple[float, ...]:
    """The upper bounds of its buckets, but for the last, which has none."""
    return LONG if measure.name.startswith("job.") else SHORT


def width_of(measure: Measure) -> int:
    """How many cells it takes."""
    return len(buckets_of(measure)) + 2 if measure.kind is Kind.SECONDS else 1


class Tally:
    """Counts, from any thread, in this process's own memory or in that of a file: see `Shared`."""

    def __init__(self, file: int | None = None) -> None:
        self._file = file
        self._own: list[float] = []
        self.cells: list[float] | memoryview[float] = self._own if file is None else _mapped(file)
        """each owner of a place may add there, under the lock"""
        self._places: dict[tuple[Measure, tuple[str, ...]], int] = {}
        self._used = 0
        self._named = _MOST * _CELL
        self.lock = threading.Lock()
        """held while cells are written"""

    def place(self, measure: Measure, labels: tuple[str, ...]) -> int:
        """Where its cells begin; they are there from now on."""
        place = self._places.get((measure, labels))
        return self._made(measure, labels) if place is None else place

    def _made(self, measure: Measure, labels: tuple[str, ...]) -> int:
        with self.lock:
            known = self._places.get((measure, labels))
            if known is not None:
                return known
            place, width = self._used, width_of(measure)
            if self._file is None:
                self._own.extend([0.0] * width)
            else:
                self._name(measure, labels, place + width)
            self._used += width
            self._places[measure, labels] = place
            return place

    def _name(self, measure: Measure, labels: tuple[str, ...], end: int) -> None:
        if end > _MOST or self._file is None:
            raise MemoryError(f"there is no room for another {measure.name}: {_MOST} cells are taken")
        line = json.dumps([measure.name, *labels]).encode() + b"\n"
        self._named += os.pwrite(self._file, line, self._named)

    def add(self, measure: Measure, value: float, labels: tuple[str, ...]) -> None:
        """Count one value."""
        place = self.place(measure, labels)
        with self.lock:
            if measure.kind is Kind.GAUGE:
                self.cells[place] = value
            elif measure.kind is Kind.COUNT:
                self.cells[place] += value
            else:
                buckets = buckets_of(measure)
                self.cells[place + bisect_left(buckets, value)] += 1
                self.cells[place + len(buckets) + 1] += value

    def read(self) -> Series:
        """What was counted so far."""
        with self.lock:
            return {key: list(self.cells[at : at + width_of(key[0])]) for key, at in self._places.items()}


class Shared:
    """The tallies of several processes, of those that are gone, too. From any thread.

    Each process has a file without a name, so nothing is left behind, whichever process dies first.
    """

    def __init__(self) -> None:
        self._alive: set[int] = set()
        self._past: Series = {}
        self._lock = threading.Lock()

    @contextmanager
    def process(self) -> Generator[int, None, None]:
        """A file for one process to count in, until it has ended."""
        file = _new_file()
        try:
            os.truncate(file, _MOST * _CELL)
            with self._lock:
                self._alive.add(file)
            try:
                yield file
            finally:
                with self._lock:
                    self._alive.discard(file)
                    _take_in(self._past, {key: cells for key, cells in _read(file).items() if key[0].kind in _ADDED})
        finally:
            os.close(file)

    @property
    def alive(self) -> int:
        """How many processes there are."""
        with self._lock:
            return len(self._alive)

    def read(self) -> Series:
        """What all of them have counted: what was has counted, too, but has no gauges any more."""
        with self._lock:
            found = {key: list(cells) for key, cells in self._past.items()}
            for file in self._alive:
                _take_in(found, _read(file))
        return found


def _take_in(sums: Series, series: Series) -> None:
    for key, cells in series.items():
        known = sums.get(key)
        if known is None:
            sums[key] = cells
        elif key[0].name in _LEAST:
            known[0] = min(known[0], cells[0])
        else:
            sums[key] = [one + other for one, other in zip(known, cells, strict=True)]


_LEAST = frozenset({"notifier.healthy"})
"""gauges that are as good as the worst of them; others add up"""


def _read(file: int) -> Series:
    names = os.pread(file, max(0, os.fstat(file).st_size - _MOST * _CELL), _MOST * _CELL)
    cells, place = _mapped(file), 0
    found: Series = {}
    for line in names[: names.rfind(b"\n") + 1].splitlines():
        name, *labels = json.loads(line)
        measure = _BY_NAME[name]
        width = width_of(measure)
        found[measure, tuple(labels)] = list(cells[place : place + width])
        place += width
    return found


def _mapped(file: int) -> memoryview[float]:
    return memoryview(mmap.mmap(file, _MOST * _CELL)).cast("d")


def _new_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("windlass-tally")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
