"""`stats`: counts now, and rates and run times from the minutes the store keeps."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.facts import at, ms
from windlass.cli.words import duration, milliseconds
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from windlass.stores.contract import Minute, Stats

_ENDS = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)


class By(StrEnum):
    """What the figures are told apart by."""

    TYPE = "type"
    QUEUE = "queue"


@dataclass(slots=True)
class Figures:
    """What ended in a stretch of time, of one kind."""

    ended: Counter[Status] = field(default_factory=Counter[Status])
    buckets: Counter[int] = field(default_factory=Counter[int])
    wait_ms: int = 0

    def add(self, minute: Minute) -> None:
        """Count one line of the store's minutes."""
        self.ended[minute.status] += minute.n
        self.buckets[minute.bucket] += minute.n
        self.wait_ms += minute.wait_ms

    @property
    def attempts(self) -> int:
        """How many runs ended, well or not."""
        return self.ended.total()

    @property
    def error_rate(self) -> float:
        """The share of runs that ended badly: those tried again and those failed for good."""
        return (self.ended[Status.FAILED] + self.ended[Status.RETRYING]) / self.attempts if self.attempts else 0.0

    def percentile(self, share: float) -> float | None:
        """How long the run at this share of them took, in ms: right to its bucket, estimated by place inside it."""
        left = share * self.attempts
        for bucket in sorted(self.buckets):
            n = self.buckets[bucket]
            if left <= n:
                low = 0.0 if bucket == 0 else 2.0 ** (bucket - 1)
                return low + (2.0**bucket - low) * (left / n)
            left -= n
        return None

    def facts(self, since: timedelta) -> dict[str, Any]:
        """The figures for `--json`."""
        minutes = since.total_seconds() / 60
        return {
            "runs": self.attempts,
            **{one.value: self.ended[one] for one in (*_ENDS, Status.RETRYING)},
            "per_minute": round(self.attempts / minutes, 3),
            "error_rate": round(self.error_rate, 4),
            "wait_avg_ms": round(self.wait_ms / self.attempts) if self.attempts else None,
            **{f"run_p{name}_ms": _whole(self.percentile(name / 100)) for name in (50, 95, 99)},
        }


def stats(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(metavar="DURATION", help="How far back.")] = "24h",
    by: Annotated[By, typer.Option(help="Tell apart by this.")] = By.TYPE,
) -> None:
    """Show how many jobs stand where, and how those that ended lately did.

    Run times come from powers of two, so percentiles are estimates within a factor of two.

    Example: windlass stats --since 1h --by queue
    """
    span = duration(since, "--since")

    async def work(desk: Desk) -> None:
        found = await desk.app.store.views.stats(span)
        figures = gather(found.minutes, by)
        if desk.screen.as_json:
            desk.screen.fact(_facts(found, figures, span, by))
        else:
            _show(desk, found, figures, span, by, since)

    at_desk(ctx, work)


def gather(minutes: Iterable[Minute], by: By) -> dict[str, Figures]:
    """The figures of each type or queue, most runs first."""
    found: defaultdict[str, Figures] = defaultdict(Figures)
    for one in minutes:
        found[one.type if by is By.TYPE else one.queue].add(one)
    return dict(sorted(found.items(), key=lambda pair: (-pair[1].attempts, pair[0])))


def _facts(found: Stats, figures: dict[str, Figures], span: timedelta, by: By) -> dict[str, Any]:
    counts = [
        {"queue": one.queue, "status": one.status.value, "count": one.count.n, "exact": one.count.exact}
        for one in found.counts
    ]
    return {
        "at": at(found.at),
        "since_ms": ms(span),
        "by": by.value,
        "counts": counts,
        "figures": [{by.value: name, **one.facts(span)} for name, one in figures.items()],
    }


def _show(desk: Desk, found: Stats, figures: dict[str, Figures], span: timedelta, by: By, since: str) -> None:
    now: Counter[Status] = Counter()
    for one in found.counts:
        now[one.status] += one.count.n
    exact = all(one.count.exact for one in found.counts)
    desk.screen.line(
        "now   " + "  ".join(f"{status} {now[status]:,}" for status in Status) + ("" if exact else "  (or more)")
    )
    if not figures:
        desk.screen.say(f"nothing ended in the last {since}")
        return
    heads = (by.value, "runs", "/min", "succeeded", "retried", "failed", "errors", "avg wait", "p50", "p95", "p99")
    desk.screen.table(heads, [_row(name, one, span) for name, one in figures.items()])


def _row(name: str, one: Figures, span: timedelta) -> tuple[object, ...]:
    return (
        name,
        f"{one.attempts:,}",
        f"{one.attempts * 60 / span.total_seconds():.1f}",
        f"{one.ended[Status.SUCCEEDED]:,}",
        f"{one.ended[Status.RETRYING]:,}",
        f"{one.ended[Status.FAILED]:,}",
        f"{one.error_rate:.1%}",
        milliseconds(one.wait_ms / one.attempts if one.attempts else None),
        *(milliseconds(one.percentile(share)) for share in (0.5, 0.95, 0.99)),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
