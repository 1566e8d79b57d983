"""Whether what a long-lived process holds stays flat, by samples of it taken at an even pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

MIB = 2**20
FEWEST = 16
"""samples that are needed to tell: four of each quarter"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """One thing that may leak."""

    name: str
    samples: Sequence[float]
    allowance: float
    """by how much it may grow from the second quarter of the time to the last, however long that is"""

    @property
    def ends(self) -> tuple[float, float]:
        """The medians of the second and of the last quarter.

        The first quarter is left out, as a process that has just started still takes what it needs. Medians, as
        a fault may double the connections for a moment, which is no leak.
        """
        quarter = len(self.samples) // 4
        return median(self.samples[quarter : 2 * quarter]), median(self.samples[-quarter:])

    def missing(self) -> list[str]:
        """What is wrong with it."""
        if len(self.samples) < FEWEST:
            return [f"{self.name}: {len(self.samples)} samples are too few: nothing was proved"]
        first, last = self.ends
        if last - first <= self.allowance:
            return []
        return [f"{self.name} grew from {first:.1f} to {last:.1f}, at most by {self.allowance:g} is flat"]

    def told(self) -> str:
        """From where to where, in a phrase."""
        if len(self.samples) < FEWEST:
            return f"{self.name} unknown"
        first, last = self.ends
        return f"{self.name} {first:.1f} → {last:.1f}"
