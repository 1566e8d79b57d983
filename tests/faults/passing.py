"""A row of the matrix as a test."""

from __future__ import annotations

from tests.faults.matrix import EVERY, ROWS
from tests.faults.own_server import kind
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place


async def passed(number: str, spot: Place) -> Finding:
    """Run it short, with another seed on each store, so that they see different choices; printed with a failure."""
    seed = EVERY.index(kind(spot))
    finding = await ROWS[number].run(spot, seed, long=False)
    assert finding.good, f"{number} seed {seed} in {spot.folder}: {finding.told()}"
    return finding
