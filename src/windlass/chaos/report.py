"""What a trial found: figures that must be zero, each with what broke them, and figures to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

_MUST = {"zero": True}


def _zero(what: str) -> Any:
    return field(default=(), metadata={**_MUST, "what": what})


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The figures of one trial."""

    acknowledged: int
    """jobs whose enqueue returned: the n of the bound"""
    unknown: int = 0
    """enqueues that raised: their jobs may exist or not"""
    unknown_there: int = 0
    """and how many of those do"""
    faults: int = 0
    deaths: int = 0
    """worker processes that did not end by themselves"""
    runs: int = 0
    lost: tuple[str, ...] = _zero("acknowledged, and gone")
    unexpected: tuple[str, ...] = _zero("there, but nobody enqueued it, or not so often")
    unfinished: tuple[str, ...] = _zero("acknowledged, and not ended in time")
    misjudged: tuple[str, ...] = _zero("ended otherwise than it should")
    dup_in_lease: tuple[str, ...] = _zero("run again while its lease was valid")
    begun_late: tuple[str, ...] = _zero("begun after the loss of its lease was recorded")
    late_accepted: tuple[str, ...] = _zero("a result accepted of an attempt that had lost its lease")
    spent: tuple[str, ...] = _zero("attempts counted that no handler failed")
    failed_unbegun: tuple[str, ...] = _zero("failed, and never begun")
    crashes_of_the_living: tuple[str, ...] = _zero("crashes counted in the end to workers that did not die")
    violations: tuple[str, ...] = _zero("invariants that do not hold")
    dup_total: int = 0
    """runs beyond the first that no retry asked for: at least once is the promise"""
    late_refused: int = 0
    effects_twice: int = 0
    """jobs whose effect happened more than once"""
    recovery: tuple[float, ...] = ()
    """seconds from each fault to the next begin of each job it hit"""
    resume: tuple[float, ...] = ()
    """seconds from each healing until the healed began a job"""
    stalled: float = 0.0
    """seconds that the worst-off process was kept from running, by the machine or by a fault"""
    handback: tuple[float, ...] = ()
    """seconds from the end of the grace period until each job was handed back"""

    @property
    def broken(self) -> dict[str, tuple[str, ...]]:
        """What must be zero and is not, by name."""
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.metadata.get("zero")}
        return {name: found for name, found in named.items() if found}

    @property
    def bound(self) -> float:
        """With no failure in n: the share that at most fail, with 95 % certainty (rule of three)."""
        return min(1.0, 3 / self.acknowledged) if self.acknowledged else 1.0

    def told(self) -> str:
        """What is broken, for a failure's message."""
        return "\n".join(f"{name}: {len(found)}, as {found[0]}" for name, found in self.broken.items())

    def figures(self) -> dict[str, Any]:
        """Everything as plain values."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in ("recovery", "resume", "handback"):
                found |= {f"{one.name}_{name}": figure for name, figure in spread(value).items()}
            else:
                found[one.name] = len(value) if one.metadata.get("zero") else value
        return {
            **found,
            "bound": round(self.bound, 6),
            "broken": {name: list(x[:5]) for name, x in self.broken.items()},
        }


def spread(seconds: Sequence[float]) -> dict[str, float | None]:
    """Median, 95th percentile and largest; nothing where there is nothing."""
    if not seconds:
        return {"p50": None, "p95": None, "max": None}
    ranked = sorted(seconds)
    last = len(ranked) - 1
    return {
        "p50": round(ranked[last // 2], 3),
        "p95": round(ranked[round(last * 0.95)], 3),
        "max": round(ranked[last], 3),
    }


def together(reports: Sequence[Report]) -> Report:
    """Several trials of one fault as one."""
    added: dict[str, Any] = {}
    for one in fields(Report):
        values = [getattr(report, one.name) for report in reports]
        if one.name == "stalled":
            added[one.name] = max(values)
        elif isinstance(values[0], int):
            added[one.name] = sum(values)
        else:
            added[one.name] = tuple(item for some in values for item in some)
    return Report(**added)
