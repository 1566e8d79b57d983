"""A figure: what was measured, what it was measured against, and the floor it must reach."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value; `least` or `most` is what the project promises itself."""

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None
    told: dict[str, float] = field(default_factory=dict[str, float])
    """what it was made of"""

    @property
    def ok(self) -> bool:
        """Whether it is within what was promised."""
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    def __str__(self) -> str:
        return self.row(28)

    def row(self, width: int) -> str:
        """As a line of a table whose names are of this width."""
        floor = "" if self.least is None else f"  (at least {self.least:,g})"
        ceiling = "" if self.most is None else f"  (at most {self.most:,g})"
        made = "  " + ", ".join(f"{name} {value:,.4g}" for name, value in self.told.items()) if self.told else ""
        verdict = "ok  " if self.ok else "MISS"
        return f"{verdict} {self.name:<{width}} {self.value:>12,.2f} {self.unit}{floor}{ceiling}{made}"


def median(values: list[float]) -> float:
    """The middle one."""
    return sorted(values)[len(values) // 2]


def percentile(values: list[float], part: float) -> float:
    """The value that `part` of them do not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]
