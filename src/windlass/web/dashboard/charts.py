"""Charts: drawn as SVG on the server, each with the same figures as a table. No script and no style is in them.

What is drawn is told by classes and by attributes of SVG, as the policy of the pages wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDE, _HIGH = 120, 28


def sparkline(values: Sequence[float], label: str) -> Markup:
    """A line without axes, beside a figure that is told in words; `label` is what is read aloud."""
    most = max(values, default=0) or 1
    step = _WIDE / max(len(values) - 1, 1)
    points = [(n * step, _HIGH - 2 - (value / most) * (_HIGH - 5)) for n, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"0,{_HIGH} {line} {_WIDE},{_HIGH}" if points else ""
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<polygon class="spark-area" points="{}"/><polyline class="spark-line" points="{}"/></svg>'
    ).format(_WIDE, _HIGH, label, area, line)


def bar(value: float, of: float, label: str, *, tone: str = "accent") -> Markup:
    """How much of something is used."""
    part = min(max(value / of, 0.0), 1.0) if of else 0.0
    return Markup(
        '<svg class="bar tone-{}" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="bar-back" width="100" height="6" rx="3"/>'
        '<rect class="bar-fill" width="{:.1f}" height="6" rx="3"/></svg>'
    ).format(tone, label, part * 100)
