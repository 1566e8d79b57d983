"""`stats`: counts now, and rates and run times of what ended lately."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.facts import at, ms
from windlass.cli.words import clock, duration, milliseconds, plural
from windlass.client.figures import By
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.client.figures import Band, RunFigures
    from windlass.client.stats import Overview

_ENDS = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.RETRYING)


def stats(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(metavar="DURATION", help="How far back, at most 30 days.")] = "24h",
    by: Annotated[By, typer.Option(help="Tell apart by this.")] = By.TYPE,
    user: Annotated[str | None, typer.Option(help="Of this user's jobs alone: the newest 50,000.")] = None,
) -> None:
    """Show how many jobs stand where, and how those that ended lately did.

    Percentiles are right within a tenth, averages, shortest and longest exactly. Where there are so many jobs that
    counting them takes long, it is said from when the counts are.

    Example: windlass stats --since 1h --by queue
    """
    span = duration(since, "--since")

    async def work(desk: Desk) -> None:
        room = desk.app.stats if user is None else desk.app.stats.only(user)
        seen = await room.read(span, max_age=0)
        if desk.screen.as_json:
            desk.screen.fact({"user": user, **_facts(seen, by)})
        else:
            _show(desk, seen, by, since)

    at_desk(ctx, work)


def _facts(seen: Overview, by: By) -> dict[str, Any]:
    counts = [
        {"queue": one.queue, "status": one.status.value, "count": one.count.n, "exact": one.count.exact}
        for one in seen.counts.by
    ]
    return {
        "at": at(seen.at),
        "counted_at": at(seen.counts.at),
        "finished_counted_at": at(seen.counts.finished_at),
        "since_ms": ms(seen.since),
        "whole": seen.whole,
        "by": by.value,
        "counts": counts,
        "failed_last_hour": seen.failed_last_hour(),
        "total": figure_facts(seen.total(), seen.since),
        "figures": [{by.value: name, **figure_facts(one, seen.since)} for name, one in seen.figures(by).items()],
        "kinds": [
            {"queue": kind.queue, "type": kind.type, "status": kind.status.value, **_times(one)}
            for kind, one in seen.kinds().items()
        ],
        "series": [
            {"at": at(begin), **{status.value: ended[status] for status in _ENDS}} for begin, ended in seen.series()
        ],
    }


def figure_facts(figures: RunFigures, since: timedelta) -> dict[str, Any]:
    """The runs of one type, queue or status for `--json`."""
    minutes = since.total_seconds() / 60
    return {
        **{status.value: figures.ended[status] for status in _ENDS},
        "per_minute": round(figures.runs / minutes, 3),
        "error_rate": round(figures.error_rate, 4),
        **_times(figures),
    }


def _times(figures: RunFigures) -> dict[str, Any]:
    told: dict[str, Any] = {"runs": figures.runs}
    for name, band in (("run", figures.run_band), ("wait", figures.wait_band)):
        figures_ms = (band.average_ms, band.p50_ms, band.p95_ms, band.p99_ms, band.least_ms, band.most_ms)
        for column, found in zip(_COLUMNS, figures_ms, strict=True):
            told[f"{name}_{column}_ms"] = None if found is None else round(found)
    return told


_COLUMNS = ("avg", "p50", "p95", "p99", "min", "max")
_LEVELS = "▁▂▃▄▅▆▇█"
_BAR = 12


def _show(desk: Desk, seen: Overview, by: By, since: str) -> None:
    now: Counter[Status] = Counter()
    for one in seen.counts.by:
        now[one.status] += one.count.n
    exact = all(one.count.exact for one in seen.counts.by)
    told = [f"{status} {now[status]:,}" for status in Status if now[status]] or ["no jobs"]
    desk.screen.line("now   " + "  ".join(told) + ("" if exact else "  (or more)"))
    if (seen.at - seen.counts.at).total_seconds() >= 1:
        desk.screen.say(f"counted at {clock(seen.counts.at)} UTC: there is so much that it is counted seldom")
    if not seen.whole:
        desk.screen.say("this user has more jobs than are looked at: all of this is of the newest ones")
    figures = seen.figures(by)
    if not figures:
        desk.screen.say(f"nothing ended in the last {since}")
        return
    _show_total(desk, seen, since)
    most = max(one.runs for one in figures.values())
    rich = desk.screen.rich
    heads = (by.value, "runs", "/min", "succeeded", "retrying", "failed", "errors", *([""] if rich else []))
    desk.screen.say()
    desk.screen.table(heads, [_outcomes(name, one, seen.since, most, rich=rich) for name, one in figures.items()])
    for title, bands in (
        ("ran", {name: one.run_band for name, one in figures.items()}),
        ("waited", {name: one.wait_band for name, one in figures.items()}),
    ):
        desk.screen.say()
        desk.screen.table((f"{by.value} {title}", *_COLUMNS), [_took(name, band) for name, band in bands.items()])


def _show_total(desk: Desk, seen: Overview, since: str) -> None:
    total = seen.total()
    rate = total.runs * 60 / seen.since.total_seconds()
    failed = f"failed {seen.failed():,}, {seen.failed_last_hour():,} in the last hour"
    desk.screen.say(f"{since:<5} {plural(total.runs, 'run')}  {rate:.1f}/min  errors {total.error_rate:.1%}  {failed}")
    if desk.screen.rich:
        series = seen.series()
        for name, statuses in (("runs", tuple(Status)), ("bad", (Status.FAILED, Status.RETRYING))):
            counts = [sum(ended[status] for status in statuses) for _, ended in series]
            desk.screen.say(f"{name:<5} {_curve(counts)}  at most {max(_folded(counts)):,} a bar")


def _outcomes(name: str, one: RunFigures, span: timedelta, most: int, *, rich: bool) -> tuple[object, ...]:
    told = (
        name,
        f"{one.runs:,}",
        f"{one.runs * 60 / span.total_seconds():.1f}",
        f"{one.ended[Status.SUCCEEDED]:,}",
        f"{one.ended[Status.RETRYING]:,}",
        f"{one.ended[Status.FAILED]:,}",
        f"{one.error_rate:.1%}",
    )
    return (*told, "█" * max(1, round(_BAR * one.runs / most))) if rich else told


def _took(name: str, band: Band) -> tuple[str, ...]:
    figures = (band.average_ms, band.p50_ms, band.p95_ms, band.p99_ms, band.least_ms, band.most_ms)
    return (name, *map(milliseconds, figures))


_WIDTH = 50


def _folded(counts: Sequence[int]) -> list[int]:
    """So many bars as fit into a line, of as many steps each."""
    each = -(-len(counts) // _WIDTH)
    return [sum(counts[place : place + each]) for place in range(0, len(counts), each)]


def _curve(counts: Sequence[int]) -> str:
    bars = _folded(counts)
    most = max(bars)
    return "".join(_LEVELS[-(-n * (len(_LEVELS) - 1) // most)] if n else " " for n in bars)
