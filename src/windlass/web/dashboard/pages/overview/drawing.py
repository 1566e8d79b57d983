"""What the overview draws: five charts on one axis of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windlass.web.dashboard.charts import Mark, Series, Shared, bands, heat, in_ms, lines, stacked
from windlass.web.dashboard.visit import quoted
from windlass.web.dashboard.words import number, quoted_word, short, visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from markupsafe import Markup

    from windlass.client.charts import Charts, HeatBand
    from windlass.web.dashboard.visit import Visit

NAMES = ("finished", "backlog", "wait", "run", "fleet")
_ENDED = "finished>=FROM finished<UNTIL"
_OUTCOMES = (("succeeded", 3), ("retrying", 2), ("failed", 4), ("cancelled", 8), ("other", 7))
_WORDS = {"retrying": "failed, retried", "other": "handed back"}
_BACKLOG_COLOURS = (1, 2, 6, 3, 7, 5)
_HEAT_AT_LEAST = 6


class Drawn(NamedTuple):
    """A chart, and how much of the page it takes."""

    name: str
    wide: bool
    figure: Markup


def drawn(visit: Visit, charts: Charts, marks: tuple[Mark, ...] = ()) -> list[Drawn]:
    """The charts for who visits; what stood in queues and who worked is not told to one user."""
    draws = {"finished": finished, "backlog": backlog, "wait": waits, "run": runs, "fleet": fleet}
    names = NAMES if visit.sees_all else ("finished", "wait", "run")
    return [Drawn(name, name == "finished", draws[name](visit, charts, marks=marks)) for name in names]


def finished(visit: Visit, charts: Charts, narrowed: str = "", marks: tuple[Mark, ...] = ()) -> Markup:
    """How many runs ended in a minute, by outcome."""
    minutes = charts.step.total_seconds() / 60
    series: list[Series] = []
    for name, colour in _OUTCOMES:
        counts = [getattr(point, name) for point in charts.points]
        if any(counts) or name in ("succeeded", "failed"):
            query = f"status:{name}" if name in ("succeeded", "failed", "cancelled") else ""
            total = number(getattr(charts.total, name))
            per_minute = [n / minutes for n in counts]
            href = _href(visit, charts, f"{narrowed} {query}") if query else None
            series.append(Series(_WORDS.get(name, name), per_minute, colour, total, href, query))
    shared = _shared(visit, charts, "finished", f"{narrowed} {_ENDED}", marks)
    return stacked("Finished per minute", charts.steps, series, shared=shared)


def backlog(visit: Visit, charts: Charts, *, marks: tuple[Mark, ...] = ()) -> Markup:
    """What waited in each queue."""
    colours = dict(enumerate(_BACKLOG_COLOURS))
    series: list[Series] = []
    for place, one in enumerate(charts.backlog[: len(_BACKLOG_COLOURS)]):
        href = visit.url(f"/queues/{quoted(one.queue)}") if one.queue != "other" else visit.url("/queues")
        series.append(Series(visible(one.queue), one.waiting, colours[place], _last(one.waiting), href))
    if not series:
        series = [Series("waiting", [None] * len(charts.steps))]
    return lines("Backlog by queue", charts.steps, series, shared=_shared(visit, charts, "backlog", marks=marks))


def standing_of(visit: Visit, charts: Charts, queue: str) -> Markup:
    """What stood in one queue."""
    nothing: list[float | None] = [None] * len(charts.steps)
    found = next((one for one in charts.backlog if one.queue == queue), None)
    told = (
        ("waiting", "queued", 1),
        ("running", "processing", 3),
        ("scheduled", "scheduled", 8),
        ("blocked", "blocked", 6),
    )
    series = [
        Series(
            name,
            values := nothing if found is None else getattr(found, name),
            colour,
            _last(values),
            visit.url("/jobs", q=f"status:{status} {of_queue(queue)}"),
        )
        for name, status, colour in told
    ]
    return lines("Jobs in the queue", charts.steps, series, shared=_shared(visit, charts, "standing"))


def waits(visit: Visit, charts: Charts, narrowed: str = "", marks: tuple[Mark, ...] = ()) -> Markup:
    """How long runs had waited."""
    series = _bands(visit, charts, "wait", f"{narrowed} wait", (("p50", 1), ("p95", 5), ("p99", 6)))
    shared = _shared(visit, charts, "wait", f"{narrowed} {_ENDED}", marks)
    return bands("Wait time", charts.steps, series, in_ms, shared=shared)


def runs(visit: Visit, charts: Charts, narrowed: str = "", marks: tuple[Mark, ...] = ()) -> Markup:
    """How long runs took: each length of time has a row."""
    rows = _filled(charts.heat, len(charts.steps))
    beside = _bands(visit, charts, "run", f"{narrowed} ran", (("p50", 0), ("p95", 0)))
    return heat(
        "Run times",
        charts.steps,
        [(_edge(least), counts) for least, _, counts in rows],
        in_ms,
        beside=beside,
        queries=[f"ran>={least}ms ran<{most}ms" for least, most, _ in rows],
        shared=_shared(visit, charts, "run", f"{narrowed} {_ENDED}", marks),
    )


def fleet(visit: Visit, charts: Charts, *, marks: tuple[Mark, ...] = ()) -> Markup:
    """Who worked, and how much of them was used."""
    found, url = charts.fleet, visit.url("/workers")
    series = [
        Series("slots in use", found.used, 1, _last(found.used), visit.url("/jobs", q="status:processing")),
        Series("slots", found.slots, 8, _last(found.slots), url),
        Series("workers", found.workers, 2, _last(found.workers), url),
    ]
    return lines("Workers and slots", charts.steps, series, shared=_shared(visit, charts, "fleet", marks=marks))


def _shared(visit: Visit, charts: Charts, name: str, query: str = "", marks: tuple[Mark, ...] = ()) -> Shared:
    as_table = visit.asked("table") == name
    return Shared(
        name=name,
        step=charts.step,
        zoom=visit.here(**{"from": "FROM", "until": "UNTIL", "since": None, "table": None}),
        table=visit.here(table=None if as_table else name),
        as_table=as_table,
        jobs=f"{visit.url('/jobs')}?q=QUERY" if query else "",
        query=query.strip(),
        marks=marks,
    )


def _href(visit: Visit, charts: Charts, query: str) -> str:
    """The jobs that ended in all of the time, and what else they are."""
    bounds = f"finished>={_told(charts.steps[0])} finished<{_told(charts.at)}"
    return visit.url("/jobs", q=f"{query} {bounds}".strip())


def _bands(visit: Visit, charts: Charts, of: str, term: str, named: Sequence[tuple[str, int]]) -> list[Series]:
    """Percentiles, each with the jobs that took longer."""
    found: list[Series] = []
    for name, colour in named:
        values = [getattr(getattr(point, of), f"{name}_ms") for point in charts.points]
        total = getattr(getattr(charts.total, of), f"{name}_ms")
        href = None if total is None else _href(visit, charts, f"{term}>={round(total)}ms")
        found.append(Series(name, values, colour, in_ms(total), href))
    return found


def _filled(bands: Sequence[HeatBand], steps: int) -> list[tuple[int, int, Sequence[int]]]:
    """The rows from below; a few empty ones above and below where there are few, so that it looks like a map."""
    if not bands:
        return [(10**power, 10 ** (power + 1), [0] * steps) for power in range(5)]
    found: list[tuple[int, int, Sequence[int]]] = [(one.from_ms, one.to_ms, one.n) for one in bands]
    while len(found) < _HEAT_AT_LEAST:
        most = found[-1][1]
        found.append((most, most * 2, [0] * steps))
    return found


def _edge(ms: int) -> str:
    for size, word in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if ms >= size:
            return f"{ms / size:.2g} {word}"
    return f"{ms} ms"


def _last(values: Sequence[float | None]) -> str:
    """The newest that is known."""
    return next((short(round(value)) for value in reversed(values) if value is not None), "")


def _told(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def of_queue(queue: str) -> str:
    """The term of a search that means a queue."""
    return f"queue:{quoted_word(queue)}"
