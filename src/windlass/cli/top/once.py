"""One screen, printed: the same figures and tables as the live view, as plain text or as facts."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from windlass.cli.facts import at, job_facts, ms, queue_facts, worker_facts
from windlass.cli.top.columns import Cell, written
from windlass.cli.top.heading import sparks, tiles, title
from windlass.cli.top.reading import Reader, View, Wanted
from windlass.cli.top.tables import table
from windlass.cli.words import clock
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.cli.desk import Desk
    from windlass.cli.top.picture import Picture, QueueSeen, RunningSeen

_WIDE = 120
"""columns where no terminal says how many it has"""


async def print_once(desk: Desk) -> None:
    """Look once, and show it."""
    shown = await Reader(desk.app).look(Wanted(View.FAILURES))
    if desk.screen.as_json:
        desk.screen.fact(_facts(shown))
        return
    width = shutil.get_terminal_size((_WIDE, 0)).columns
    for line in _lines(shown, desk.place, width):
        desk.screen.line(line)


def _lines(shown: Picture, place: str, width: int) -> Iterator[str]:
    yield written(title(place, Cell(f"{clock(shown.at)} UTC"), width))
    yield from (written(line) for line in tiles(shown, width))
    yield written(sparks(shown, width))
    for view in (View.QUEUES, View.WORKERS, View.RUNNING, View.FAILURES):
        rows = table(view, shown)
        yield ""
        if not rows.rows:
            yield rows.empty
            continue
        fitted = rows.fitted(width)
        yield written(fitted.head)
        yield from (written(line) for line in fitted.lines)


def _facts(shown: Picture) -> dict[str, Any]:
    return {
        "at": at(shown.at),
        "ok_per_second": round(shown.rates.good, 3),
        "failed_per_second": round(shown.rates.bad, 3),
        "counts": {status.value: shown.counts[status] for status in Status},
        "exact": shown.exact,
        "oldest_ms": ms(shown.oldest),
        "wait_p95_ms": ms(shown.wait),
        "run_p95_ms": ms(shown.run),
        "queues": [_queue(one) for one in shown.queues],
        "workers": [worker_facts(one) for one in shown.workers],
        "running": [_running(one) for one in shown.running],
    }


def _queue(one: QueueSeen) -> dict[str, Any]:
    return {
        **queue_facts(one.info),
        "slots": one.slots,
        "per_second": round(one.rates.all, 3),
        "wait_p95_ms": ms(one.wait),
        "run_p95_ms": ms(one.run),
        "drain_ms": ms(one.drain),
    }


def _running(one: RunningSeen) -> dict[str, Any]:
    return {**job_facts(one.job), "running_ms": ms(one.since), "share": one.share, "eta_ms": ms(one.eta)}
