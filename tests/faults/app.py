"""The application of trials whose store is wrong on purpose: which mistake it makes is told by the trial's place."""

from __future__ import annotations

from tests.faults.broken import broken_at
from windlass import Windlass
from windlass.chaos import workload
from windlass.chaos.place import Place


def application(place: Place) -> Windlass:
    """The usual workload; on a broken store where one is asked for."""
    return workload.application(place, broken_at(place) if place.control else None)


app = application(Place.told())
