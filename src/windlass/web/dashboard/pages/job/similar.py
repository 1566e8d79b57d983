"""Similar jobs: how long the last of its type ran, drawn with this one marked, and how it compares."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from markupsafe import Markup

from windlass.core.status import Status
from windlass.core.wording import milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.job import Job

MOST = 50
_WIDE, _HIGH, _LINE = 12.0, 72.0, 6.0
_TONES = {Status.SUCCEEDED: "good", Status.FAILED: "bad"}
_LEAST = 5
"""so many have to have run before one is compared with them"""


@dataclass(frozen=True, slots=True)
class Run:
    """How long one job ran last."""

    job: Job
    ms: int
    here: bool


@dataclass(frozen=True, slots=True)
class Similar:
    """The last runs of one type, oldest first."""

    runs: Sequence[Run]
    ms: int | None
    """this one's"""
    running: bool
    """it has not ended yet"""

    @property
    def others(self) -> list[int]:
        """How long the others ran."""
        return [one.ms for one in self.runs if not one.here]

    @property
    def median(self) -> float | None:
        """Half of the others ran no longer."""
        return median(self.others) if self.others else None

    @property
    def told(self) -> str:
        """How this one compares."""
        others, middle = self.others, self.median
        if middle is None:
            return "No other job of this type has run lately."
        usual = (
            f"the median of {len(others)} others is {milliseconds(middle)}"
            if len(others) > 1
            else (f"the one other ran {milliseconds(middle)}")
        )
        if self.ms is None:
            return f"It has not run yet; {usual}."
        verb = "It has run for" if self.running else "It ran"
        if len(others) < _LEAST or middle < 1:
            return f"{verb} {milliseconds(self.ms)}; {usual}."
        return f"{verb} {milliseconds(self.ms)}, {_compared(self.ms / middle)}: {usual}."

    def draw(self) -> Markup:
        """A bar for each, this one marked, and a line at the median."""
        most = max((one.ms for one in self.runs), default=0) or 1
        wide = _WIDE * max(len(self.runs), 12)
        bars: list[Markup] = []
        for n, one in enumerate(self.runs):
            high = max(one.ms / most * (_HIGH - _LINE), 2.0)
            kind = "here" if one.here else f"tone-{_TONES.get(one.job.status, 'calm')}"
            bars.append(
                Markup('<rect class="run {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                    kind, n * _WIDE + 1.5, _HIGH - high, _WIDE - 3, high
                )
            )
        if self.median is not None:
            y = _HIGH - self.median / most * (_HIGH - _LINE)
            bars.append(Markup('<path class="median" d="M0 {:.1f}H{:.0f}"/>').format(y, wide))
        return Markup(
            '<svg class="runs" viewBox="0 0 {:.0f} {:.0f}" preserveAspectRatio="none" role="img" aria-label="{}">'
            "{}</svg>"
        ).format(wide, _HIGH, f"How long the last {len(self.runs)} ran. {self.told}", Markup("").join(bars))


def similar(job: Job, last: Sequence[Job], elapsed_ms: int | None) -> Similar:
    """A job among the last of its type, which are given newest first."""
    running = job.status is Status.PROCESSING
    ms = elapsed_ms if running else job.duration_ms
    runs = [Run(one, one.duration_ms, one.id == job.id) for one in reversed(last) if one.duration_ms is not None]
    if ms is not None:
        runs = [one for one in runs if not one.here]
        place = next((n for n, one in enumerate(runs) if one.job.id > job.id), len(runs))
        runs.insert(place, Run(job, ms, here=True))
    return Similar(runs, ms, running)


def _compared(times: float) -> str:
    if 0.8 <= times <= 1.25:
        return "about as long as most"
    if times > 1:
        return f"{times:,.1f} times as long as most" if times < 10 else f"{times:,.0f} times as long as most"
    return f"{1 / times:,.1f} times as fast as most" if times > 0.1 else "much faster than most"
