"""`stats`: counts now, and rates and run times of what ended lately."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.facts import at, ms
from windlass.cli.words import clock, duration, milliseconds
from windlass.client.figures import By
from windlass.core.status import Status

if TYPE_CHECKING:
    from datetime import timedelta

    from windlass.client.figures import RunFigures
    from windlass.client.stats import Overview

_ENDS = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.RETRYING)
_PERCENTILES = (50, 95, 99)


def stats(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(metavar="DURATION", help="How far back.")] = "24h",
    by: Annotated[By, typer.Option(help="Tell apart by this.")] = By.TYPE,
) -> None:
    """Show how many jobs stand where, and how those that ended lately did.

    Percentiles are right within a tenth. Where there are so many jobs that counting them takes long, it is said from
    when the counts are.

    Example: windlass stats --since 1h --by queue
    """
    span = duration(since, "--since")

    async def work(desk: Desk) -> None:
        seen = await desk.app.stats.read(span, max_age=0)
        if desk.screen.as_json:
            desk.screen.fact(_facts(seen, by))
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
        "by": by.value,
        "counts": counts,
        "figures": [{by.value: name, **figure_facts(one, seen.since)} for name, one in seen.figures(by).items()],
    }


def figure_facts(figures: RunFigures, since: timedelta) -> dict[str, Any]:
    """The runs of one type or queue for `--json`."""
    minutes = since.total_seconds() / 60
    return {
        "runs": figures.runs,
        **{status.value: figures.ended[status] for status in _ENDS},
        "per_minute": round(figures.runs / minutes, 3),
        "error_rate": round(figures.error_rate, 4),
        "wait_avg_ms": _ms(figures.average_wait),
        **{f"run_p{name}_ms": _ms(figures.percentile(name / 100)) for name in _PERCENTILES},
    }


def _show(desk: Desk, seen: Overview, by: By, since: str) -> None:
    now: Counter[Status] = Counter()
    for one in seen.counts.by:
        now[one.status] += one.count.n
    exact = all(one.count.exact for one in seen.counts.by)
    desk.screen.line(
        "now   " + "  ".join(f"{status} {now[status]:,}" for status in Status) + ("" if exact else "  (or more)")
    )
    if (seen.at - seen.counts.at).total_seconds() >= 1:
        desk.screen.say(f"counted at {clock(seen.counts.at)} UTC: there is so much that it is counted seldom")
    figures = seen.figures(by)
    if not figures:
        desk.screen.say(f"nothing ended in the last {since}")
        return
    heads = (by.value, "runs", "/min", "succeeded", "retried", "failed", "errors", "avg wait", "p50", "p95", "p99")
    desk.screen.table(heads, [_row(name, one, seen.since) for name, one in figures.items()])


def _row(name: str, one: RunFigures, span: timedelta) -> tuple[object, ...]:
    return (
        name,
        f"{one.runs:,}",
        f"{one.runs * 60 / span.total_seconds():.1f}",
        f"{one.ended[Status.SUCCEEDED]:,}",
        f"{one.ended[Status.RETRYING]:,}",
        f"{one.ended[Status.FAILED]:,}",
        f"{one.error_rate:.1%}",
        milliseconds(_ms(one.average_wait)),
        *(milliseconds(_ms(one.percentile(name / 100))) for name in _PERCENTILES),
    )


def _ms(span: timedelta | None) -> int | None:
    return None if span is None else round(span.total_seconds() * 1000)
