"""Charts: drawn as SVG on the server, each with the same figures as a table. No script and no style is in them.

What is drawn is told by classes and by attributes of SVG, as the policy of the pages wants it. A plot is stretched to
its room and words stand beside it, so that they are never stretched with it. Charts that share an axis of time carry
their figures in attributes, from which `frame/charts.js` tells those of one step where somebody points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING

from markupsafe import Markup

from windlass.web.dashboard.words import lasting, moment, short

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WIDE, _HIGH = 120, 28
_PLOT_WIDE, _PLOT_HIGH = 1000.0, 200.0
_SHADES = 6
"""of a heat map, and none"""
_MOST_TICKS = 7
_TICKS = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 10080, 20160)
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Series:
    """One row of figures, as many as there are steps; None where there is nothing to tell."""

    name: str
    values: Sequence[float | None]
    colour: int = 1
    """1 to 8: blue, orange, green, vermilion, sky, pink, yellow, grey"""
    total: str = ""
    """what is told of all steps, where nobody points at one"""
    href: str | None = None
    """the list behind it"""
    query: str = ""
    """which jobs it is about, in the words of a search"""


@dataclass(frozen=True, slots=True)
class Mark:
    """An instant that all charts of a page show: a deploy."""

    at: datetime
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What a chart has in common with the others of its page, whose axis of time it shares."""

    name: str
    step: timedelta
    zoom: str
    """the address of the same page for another time, with `FROM` and `UNTIL` in it"""
    table: str
    """where the same is a table, or a drawing again"""
    as_table: bool = False
    jobs: str = ""
    """the address of the jobs behind a step, with `QUERY` in it"""
    query: str = ""
    """which those are, with `FROM` and `UNTIL` in it"""
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plot:
    """What is drawn, and what stands beside it."""

    kind: str
    drawn: Markup
    marks: tuple[str, ...]
    most: float = 0.0
    least: float = 0.0
    """where the axis begins, if it is one of logarithms"""
    key: Markup | None = None
    """what explains the colours, where series do not"""
    queries: str = ""


def in_ms(value: float | None) -> str:
    """So many milliseconds in words."""
    return lasting(None if value is None else value / 1000)


def sparkline(values: Sequence[float], label: str, *, tone: str = "accent") -> Markup:
    """A line without axes, beside a figure that is told in words; `label` is what is read aloud."""
    most = max(values, default=0) or 1
    step = _WIDE / max(len(values) - 1, 1)
    points = [(n * step, _HIGH - 2 - (value / most) * (_HIGH - 5)) for n, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"0,{_HIGH} {line} {_WIDE},{_HIGH}" if points else ""
    return Markup(
        '<svg class="spark tone-{}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<polygon class="spark-area" points="{}"/><polyline class="spark-line" points="{}"/></svg>'
    ).format(tone, _WIDE, _HIGH, label, area, line)


def sparkbars(values: Sequence[int], label: str, *, tone: str = "bad") -> Markup:
    """Small bars: how often something happened, step by step."""
    most = max(values, default=0) or 1
    wide = _WIDE / max(len(values), 1)
    bars = "".join(
        _rect(n * wide, _HIGH - max(high, 2.5), wide * 0.72, max(high, 2.5))
        for n, value in enumerate(values)
        if value and (high := value / most * (_HIGH - 2))
    )
    return Markup(
        '<svg class="spark tone-{}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<path class="spark-base" d="M0 {}H{}"/><path class="spark-bars" d="{}"/></svg>'
    ).format(tone, _WIDE, _HIGH, label, _HIGH - 0.5, _WIDE, bars)


def bar(value: float, of: float, label: str, *, tone: str = "accent") -> Markup:
    """How much of something is used."""
    part = min(max(value / of, 0.0), 1.0) if of else 0.0
    return Markup(
        '<svg class="bar tone-{}" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="bar-back" width="100" height="6" rx="3"/>'
        '<rect class="bar-fill" width="{:.1f}" height="6" rx="3"/></svg>'
    ).format(tone, label, part * 100)


def stacked(
    title: str,
    at: Sequence[datetime],
    series: Sequence[Series],
    told: Callable[..., str] = short,
    *,
    shared: Shared | None = None,
) -> Markup:
    """Bars that stand on each other, one for each step of time."""
    most = round_up(max((sum(one.values[n] or 0 for one in series) for n in range(len(at))), default=0))
    wide = _PLOT_WIDE / max(len(at), 1)
    drawn: list[list[str]] = [[] for _ in series]
    for n in range(len(at)):
        for place, top in enumerate(accumulate(one.values[n] or 0 for one in series)):
            if value := series[place].values[n]:
                drawn[place].append(_rect(n * wide, _y(top, most), wide * 0.84, value / most * _PLOT_HIGH))
    paths = Markup("").join(
        Markup('<path class="fill c{}" d="{}"/>').format(one.colour, "".join(rects))
        for one, rects in zip(series, drawn, strict=True)
        if rects
    )
    return _figure(title, at, series, _Plot("stacked", paths, _marks(most, told), most), told, shared)


def lines(
    title: str,
    at: Sequence[datetime],
    series: Sequence[Series],
    told: Callable[..., str] = short,
    *,
    shared: Shared | None = None,
) -> Markup:
    """A line for each series; where it has nothing to tell there is a gap."""
    most = round_up(_most(series))
    drawn = Markup("").join(
        Markup('<polyline class="line c{}" points="{}"/>').format(one.colour, points)
        for one in reversed(series)
        for points in _strokes(one.values, most)
    )
    return _figure(title, at, series, _Plot("lines", drawn, _marks(most, told), most), told, shared)


def bands(
    title: str,
    at: Sequence[datetime],
    series: Sequence[Series],
    told: Callable[..., str] = short,
    *,
    shared: Shared | None = None,
) -> Markup:
    """Percentiles, the lowest first: what lies below is filled, the darker the lower. The axis is one of logarithms, so
    that all can be seen, be they never so far apart.
    """
    low, decades = _decades(series)
    most = low * 10**decades
    drawn: list[Markup] = []
    for one in reversed(series):
        heights = [None if value is None else math.log10(max(value, low) / low) for value in one.values]
        for points in _strokes(heights, decades):
            first, last = points.split(" ", 1)[0].split(",")[0], points.rsplit(" ", 1)[-1].split(",")[0]
            area = f"{first},{_PLOT_HIGH:.0f} {points} {last},{_PLOT_HIGH:.0f}"
            drawn += [
                Markup('<polygon class="band c{}" points="{}"/>').format(one.colour, area),
                Markup('<polyline class="line c{}" points="{}"/>').format(one.colour, points),
            ]
    marks = tuple(told(low * 10**power) for power in range(decades, -1, -1))
    return _figure(title, at, series, _Plot("lines", Markup("").join(drawn), marks, most, low), told, shared)


def heat(
    title: str,
    at: Sequence[datetime],
    rows: Sequence[tuple[str, Sequence[int]]],
    told: Callable[..., str] = short,
    *,
    beside: Sequence[Series] = (),
    queries: Sequence[str] = (),
    shared: Shared | None = None,
) -> Markup:
    """Counts by time and, from below, by row, such as how long runs took; darker is more.

    With `beside` are told of a step those figures, and not the counts. A row's query says which jobs are in it.
    """
    most = max((value for _, values in rows for value in values), default=0)
    wide, high = _PLOT_WIDE / max(len(at), 1), _PLOT_HIGH / max(len(rows), 1)
    shades: list[list[str]] = [[] for _ in range(_SHADES + 1)]
    for row, (_, values) in enumerate(rows):
        for n, value in enumerate(values):
            if value:
                shade = min(max(1, math.ceil(_SHADES * math.log1p(value) / math.log1p(most))), _SHADES)
                shades[shade].append(_rect(n * wide, _PLOT_HIGH - (row + 1) * high, wide + 0.3, high + 0.3))
    drawn = Markup("").join(
        Markup('<path class="heat h{}" d="{}"/>').format(shade, "".join(rects))
        for shade, rects in enumerate(shades)
        if rects
    )
    scale = Markup("").join(
        Markup('<rect class="heat h{}" x="{}" width="9" height="9"/>').format(shade, (shade - 1) * 10)
        for shade in range(1, _SHADES + 1)
    )
    key = Markup('<li class="shades">fewer <svg viewBox="0 0 60 9" aria-hidden="true">{}</svg> more</li>').format(scale)
    marks = tuple(rows[n][0] for n in _spread_over(len(rows))) if rows else ("", "", "")
    table = [Series(name, values, 0) for name, values in rows]
    plot = _Plot("heat", drawn, marks, len(rows), key=key, queries="|".join(queries))
    return _figure(title, at, table, plot, told, shared, tuple(beside))


def _figure(
    title: str,
    at: Sequence[datetime],
    series: Sequence[Series],
    plot: _Plot,
    told: Callable[..., str],
    shared: Shared | None,
    legend: tuple[Series, ...] | None = None,
) -> Markup:
    """The drawing with its words around it, and the same as a table."""
    named = series if legend is None else legend
    head = Markup('<figcaption><h3>{}</h3><ul class="legend">{}{}</ul>{}</figcaption>').format(
        title,
        plot.key or "",
        Markup("").join(_named(one, told) for one in named),
        "" if shared is None else _turn(title, shared),
    )
    if shared is not None and shared.as_table:
        body = _table(title, at, series, told)
    else:
        body = _drawing(title, at, named, plot, told, shared)
    below = _twin(title, at, series, told) if shared is None else ""
    return Markup('<figure class="chart"{}>{}{}{}</figure>').format(_carried(at, plot, shared), head, body, below)


def _drawing(
    title: str,
    at: Sequence[datetime],
    series: Sequence[Series],
    plot: _Plot,
    told: Callable[..., str],
    shared: Shared | None,
) -> Markup:
    ticks = _ticks(at)
    lying = 2 if plot.kind == "heat" else max(len(plot.marks) - 1, 1)
    across = "".join(f"M0 {min(max(n / lying * _PLOT_HIGH, 0.5), 199.5):.1f}H1000" for n in range(lying + 1))
    uprights = "".join(f"M{x * _PLOT_WIDE:.1f} 0V{_PLOT_HIGH:.0f}" for x, _, _ in ticks)
    return Markup(
        '<div class="plot"><div class="plot-y" aria-hidden="true">{}</div><div class="plot-room">'
        '<svg viewBox="0 0 {:.0f} {:.0f}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<path class="grid" d="{}"/>{}{}</svg>{}</div>'
        '<svg class="plot-x" aria-hidden="true">{}</svg></div>'
    ).format(
        Markup("").join(Markup("<span>{}</span>").format(mark) for mark in plot.marks),
        _PLOT_WIDE,
        _PLOT_HIGH,
        f"{title}: {_in_words(series, told)}",
        across + uprights,
        plot.drawn,
        _marks_at(at, () if shared is None else shared.marks),
        Markup('<div class="scan" data-kept data-label="{}"></div>').format(title) if shared is not None else "",
        Markup("").join(_label(*tick, odd=place % 2 == 1) for place, tick in enumerate(ticks)),
    )


def _marks_at(at: Sequence[datetime], marks: Sequence[Mark]) -> Markup:
    """A line from top to bottom for each."""
    if len(at) < 2 or not marks:
        return Markup("")
    span = (at[1] - at[0]) * len(at)
    drawn = "".join(f"M{min((one.at - at[0]) / span, 1) * _PLOT_WIDE:.1f} 0V{_PLOT_HIGH:.0f}" for one in marks)
    return Markup('<path class="mark-line" d="{}"/>').format(drawn)


def _carried(at: Sequence[datetime], plot: _Plot, shared: Shared | None) -> Markup:
    """What a script has to know of it."""
    if shared is None or not at:
        return Markup("")
    told = {
        "id": shared.name,
        "data-chart": plot.kind,
        "data-first": f"{at[0].timestamp() * 1000:.0f}",
        "data-step": f"{shared.step.total_seconds() * 1000:.0f}",
        "data-n": len(at),
        "data-most": f"{plot.most:g}",
        "data-least": f"{plot.least:g}",
        "data-zoom": shared.zoom,
        "data-jobs": shared.jobs,
        "data-query": shared.query,
        "data-rows": plot.queries,
    }
    return Markup("").join(Markup(' {}="{}"').format(name, value) for name, value in told.items())


def _named(one: Series, told: Callable[..., str]) -> Markup:
    """One line of the legend, with its figures for who points at a step."""
    word = Markup('<a href="{}">{}</a>').format(one.href, one.name) if one.href else one.name
    values = " ".join("-" if value is None else f"{value:.6g}" for value in one.values)
    unit = "ms" if told is in_ms else "n"
    return Markup('<li data-v="{}" data-unit="{}" data-query="{}" data-href="{}">{}{} <b>{}</b></li>').format(
        values,
        unit,
        one.query,
        one.href or "",
        Markup('<span class="swatch c{}"></span>').format(one.colour) if one.colour else "",
        word,
        one.total,
    )


def _turn(title: str, shared: Shared) -> Markup:
    word = "As a drawing" if shared.as_table else "As a table"
    return Markup('<a class="turn" href="{}#{}" aria-label="{}: {}">{}</a>').format(
        shared.table, shared.name, title, word.lower(), word
    )


def _twin(title: str, at: Sequence[datetime], series: Sequence[Series], told: Callable[..., str]) -> Markup:
    """The same figures as a table, for who does not see the drawing or wants to know exactly."""
    return Markup('<details class="twin"><summary>As a table</summary>{}</details>').format(
        _table(title, at, series, told)
    )


def _table(title: str, at: Sequence[datetime], series: Sequence[Series], told: Callable[..., str]) -> Markup:
    head = Markup("").join(Markup('<th scope="col" class="num">{}</th>').format(one.name) for one in series)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            moment(when),
            Markup("").join(Markup('<td class="num">{}</td>').format(told(one.values[n])) for one in series),
        )
        for n, when in enumerate(at)
    )
    return Markup(
        '<div class="table-room twin-room" tabindex="0" role="region" aria-label="{} as a table"><table class="table">'
        '<thead><tr><th scope="col">From</th>{}</tr></thead><tbody>{}</tbody></table></div>'
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
    step = _PLOT_WIDE / max(len(values), 1)
    found: list[list[tuple[float, str]]] = [[]]
    for n, value in enumerate(values):
        if value is None:
            found.append([])
        else:
            found[-1].append(((n + 0.5) * step, f"{_y(value, most):.1f}"))
    return [_stroke(points, step) for points in found if points]


def _stroke(points: Sequence[tuple[float, str]], step: float) -> str:
    # One point alone is drawn as a short stroke, else it would not be seen.
    if len(points) == 1:
        [(x, y)] = points
        points = [(x - step / 4, y), (x + step / 4, y)]
    return " ".join(f"{x:.1f},{y}" for x, y in points)


def _ticks(at: Sequence[datetime]) -> list[tuple[float, datetime, bool]]:
    """Instants to be named on the axis: where each is, as a share, and whether its day is told."""
    if len(at) < 2:
        return []
    step = at[1] - at[0]
    span = step * len(at)
    every = next((one for one in _TICKS if span / one <= _MOST_TICKS), _TICKS[-1])
    first = at[0] + (_EPOCH - at[0]) % every
    marks = [first + every * n for n in range(math.ceil((at[0] + span - first) / every))]
    return [(x, mark, every >= _DAY) for mark in marks if 0.02 < (x := (mark - at[0]) / span) < 0.98]


def _label(x: float, at: datetime, by_day: bool, *, odd: bool) -> Markup:  # noqa: FBT001  # as a tick has it
    word = f"{at.day} {at:%b}" if by_day else f"{at:%H:%M}"
    return Markup('<text x="{:.2f}%" y="12" data-at="{:.0f}" data-form="{}"{}>{}</text>').format(
        x * 100, at.timestamp() * 1000, "day" if by_day else "clock", Markup(' class="odd"') if odd else "", word
    )


def _spread_over(n: int) -> list[int]:
    """Which of so many rows are named, from above: at most five."""
    named = min(n, 5)
    return [round((n - 1) * (1 - place / max(named - 1, 1))) for place in range(named)]


def _marks(most: float, told: Callable[..., str]) -> tuple[str, str, str]:
    return told(most), told(most / 2), "0"


def _rect(x: float, y: float, wide: float, high: float) -> str:
    return f"M{x:.1f} {y:.1f}h{wide:.1f}v{high:.1f}h-{wide:.1f}z"


def _y(value: float, most: float) -> float:
    return _PLOT_HIGH - value / most * _PLOT_HIGH


def _decades(series: Sequence[Series]) -> tuple[float, int]:
    """The power of ten that an axis of logarithms begins with, and how many it is long: from one to seven."""
    known = [value for one in series for value in one.values if value is not None and value > 0]
    if not known:
        return 1.0, 3
    first, last = math.floor(math.log10(max(1.0, min(known)))), math.ceil(math.log10(max(1.0, *known)))
    last = max(last, first + 1)
    return 10.0 ** max(first, last - 7), min(last - first, 7)


def _most(series: Sequence[Series]) -> float:
    return max((value for one in series for value in one.values if value is not None), default=0)


def round_up(value: float) -> float:
    """The next figure above that people like at an axis: 1, 2 or 5 and zeros, or 1.5, 3 or 8."""
    if value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * part for part in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if size * part >= value)
