"""Charts: drawn as SVG on the server, each with the same figures as a table. No script and no style is in them.

What is drawn is told by classes and by attributes of SVG, as the policy of the pages wants it. A plot is stretched to
its room and words stand beside it, so that they are never stretched with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from markupsafe import Markup

from windlass.web.dashboard.words import moment, short

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

_WIDE, _HIGH = 120, 28
_PLOT_WIDE, _PLOT_HIGH = 1000.0, 200.0
_SHADES = 6
"""of a heat map, and none"""


@dataclass(frozen=True, slots=True)
class Series:
    """One row of figures, as many as there are steps; None where there is nothing to tell."""

    name: str
    values: Sequence[float | None]
    colour: int = 1
    """1 to 8: blue, orange, green, vermilion, sky, pink, yellow, grey"""


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


def stacked(title: str, at: Sequence[datetime], series: Sequence[Series], told: Callable[..., str] = short) -> Markup:
    """Bars that stand on each other, one for each step of time."""
    sums = [sum(one.values[n] or 0 for one in series) for n in range(len(at))]
    most = _round_up(max(sums, default=0))
    wide = _PLOT_WIDE / max(len(at), 1)
    drawn: list[Markup] = []
    for n in range(len(at)):
        tops = list(accumulate(one.values[n] or 0 for one in series))
        for one, top in zip(series, tops, strict=True):
            value = one.values[n] or 0
            if value:
                drawn.append(
                    Markup('<rect class="fill c{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                        one.colour, n * wide, _y(top, most), wide * 0.82, value / most * _PLOT_HIGH
                    )
                )
    return _figure(title, at, series, Markup("").join(drawn), (told(most), told(most / 2), "0"), told)


def lines(title: str, at: Sequence[datetime], series: Sequence[Series], told: Callable[..., str] = short) -> Markup:
    """A line for each series; where it has nothing to tell there is a gap."""
    most = _round_up(_most(series))
    drawn = [
        Markup('<polyline class="line c{}" points="{}"/>').format(one.colour, points)
        for one in series
        for points in _strokes(one.values, most)
    ]
    return _figure(title, at, series, Markup("").join(drawn), (told(most), told(most / 2), "0"), told)


def bands(title: str, at: Sequence[datetime], series: Sequence[Series], told: Callable[..., str] = short) -> Markup:
    """Percentiles, the lowest first: what lies between two is filled, the darker the lower."""
    most = _round_up(_most(series))
    drawn: list[Markup] = []
    for one in reversed(series):
        for points in _strokes(one.values, most):
            first, last = points.split(" ", 1)[0].split(",")[0], points.rsplit(" ", 1)[-1].split(",")[0]
            area = f"{first},{_PLOT_HIGH:.0f} {points} {last},{_PLOT_HIGH:.0f}"
            drawn += [
                Markup('<polygon class="band c{}" points="{}"/>').format(one.colour, area),
                Markup('<polyline class="line c{}" points="{}"/>').format(one.colour, points),
            ]
    return _figure(title, at, series, Markup("").join(drawn), (told(most), told(most / 2), "0"), told)


def heat(
    title: str,
    at: Sequence[datetime],
    rows: Sequence[tuple[str, Sequence[int]]],
    told: Callable[..., str] = short,
) -> Markup:
    """Counts by time and, from below, by row, such as how long runs took; darker is more."""
    most = max((value for _, values in rows for value in values), default=0)
    wide, high = _PLOT_WIDE / max(len(at), 1), _PLOT_HIGH / max(len(rows), 1)
    drawn = [
        Markup('<rect class="heat h{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
            max(1, math.ceil(_SHADES * math.log1p(value) / math.log1p(most))),
            n * wide,
            _PLOT_HIGH - (row + 1) * high,
            wide + 0.3,
            high + 0.3,
        )
        for row, (_, values) in enumerate(rows)
        for n, value in enumerate(values)
        if value
    ]
    named = [Series(name, values, 0) for name, values in rows]
    marks = (rows[-1][0], rows[len(rows) // 2][0], rows[0][0]) if rows else ("", "", "")
    return _figure(title, at, named, Markup("").join(drawn), marks, told, legend=False)


def _figure(
    title: str,
    at: Sequence[datetime],
    series: Sequence[Series],
    drawn: Markup,
    marks: tuple[str, str, str],
    told: Callable[..., str],
    *,
    legend: bool = True,
) -> Markup:
    """The drawing with its words around it, and the same as a table."""
    words = Markup("").join(
        Markup('<li><span class="swatch c{}"></span>{}</li>').format(one.colour, one.name) for one in series
    )
    shown = Markup('<ul class="legend">{}</ul>').format(words) if legend else Markup("")
    ends = [at[0], at[len(at) // 2], at[-1]] if at else []
    return Markup(
        '<figure class="chart"><figcaption><h3>{}</h3>{}</figcaption><div class="plot">'
        '<div class="plot-y" aria-hidden="true">{}</div>'
        '<svg viewBox="0 0 {:.0f} {:.0f}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<path class="grid" d="M0 0.5H1000M0 100H1000M0 199.5H1000"/>{}</svg>'
        '<div class="plot-x" aria-hidden="true">{}</div></div>{}</figure>'
    ).format(
        title,
        shown,
        Markup("").join(Markup("<span>{}</span>").format(mark) for mark in marks),
        _PLOT_WIDE,
        _PLOT_HIGH,
        f"{title}: {_in_words(series, told)}",
        drawn,
        Markup("").join(Markup("<span>{}</span>").format(moment(one)) for one in ends),
        _twin(title, at, series, told),
    )


def _twin(title: str, at: Sequence[datetime], series: Sequence[Series], told: Callable[..., str]) -> Markup:
    """The same figures as a table, for who does not see the drawing or wants to know exactly."""
    head = Markup("").join(Markup('<th scope="col" class="num">{}</th>').format(one.name) for one in series)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            moment(when),
            Markup("").join(Markup('<td class="num">{}</td>').format(told(one.values[n])) for one in series),
        )
        for n, when in enumerate(at)
    )
    return Markup(
        '<details class="twin"><summary>As a table</summary><div class="table-room" tabindex="0" role="region"'
        ' aria-label="{} as a table"><table class="table"><thead><tr><th scope="col">From</th>{}</tr></thead>'
        "<tbody>{}</tbody></table></div></details>"
    ).format(title, head, body)


def _in_words(series: Sequence[Series], told: Callable[..., str]) -> str:
    ends = [
        f"{one.name} {told(known[-1])} at the end, {told(max(known))} at most"
        for one in series
        if (known := [value for value in one.values if value is not None])
    ]
    return "; ".join(ends) or "nothing yet"


def _strokes(values: Sequence[float | None], most: float) -> list[str]:
    """The points of each stretch without gaps."""
    step = _PLOT_WIDE / max(len(values) - 1, 1)
    found: list[list[str]] = [[]]
    for n, value in enumerate(values):
        if value is None:
            found.append([])
        else:
            found[-1].append(f"{n * step:.1f},{_y(value, most):.1f}")
    # One point alone is drawn as a short stroke, else it would not be seen.
    return [" ".join(points * 2 if len(points) == 1 else points) for points in found if points]


def _y(value: float, most: float) -> float:
    return _PLOT_HIGH - value / most * _PLOT_HIGH


def _most(series: Sequence[Series]) -> float:
    return max((value for one in series for value in one.values if value is not None), default=0)


def _round_up(value: float) -> float:
    """The next figure above that people like at an axis: 1, 2 or 5 and zeros."""
    if value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * part for part in (1, 2, 5, 10) if size * part >= value)
