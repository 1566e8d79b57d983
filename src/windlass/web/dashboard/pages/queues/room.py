"""Queues: how much waits in each, for how long, how fast it goes, and whether it is held back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from windlass.core.status import Status
from windlass.core.wording import span
from windlass.web.dashboard.pages.overview.drawing import finished, of_queue, runs, standing_of, waits
from windlass.web.dashboard.pages.overview.window import window_of
from windlass.web.dashboard.pages.queues.reading import paused_by, rows_of
from windlass.web.dashboard.room import Needs, Page, Rail, Room
from windlass.web.problems import NOT_FOUND, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.declared import Declared
    from windlass.web.dashboard.visit import Visit


class Bound(NamedTuple):
    """What holds jobs of a type back, as declared by its handler it."""

    type: str
    told: Sequence[str]


async def show(visit: Visit) -> dict[str, Any]:
    """Every queue, with its last hour."""
    rows = await rows_of(visit)
    paused = {row.queue.name: await paused_by(visit, row.queue) for row in rows if row.queue.paused_at is not None}
    return {"rows": rows, "paused": paused}


async def show_queue(visit: Visit) -> dict[str, Any]:
    """One queue, with its own charts."""
    name = unquote(visit.part("name"))  # it is quoted twice: no server takes a slash in it for one of the path
    found = await rows_of(visit, name)
    if not found:
        raise Refused(NOT_FOUND, "there is no such queue: it is there from the first job that names it")
    [row] = found
    window = window_of(visit)
    charts, narrowed = await window.charts(visit, name), of_queue(name)
    return {
        "title": name,
        "row": row,
        "queue": row.queue,
        "who": await paused_by(visit, row.queue),
        "window": window,
        "segments": window.segments(visit),
        "total": charts.total,
        "drawn": [
            ("finished", finished(visit, charts, narrowed)),
            ("standing", standing_of(visit, charts, name)),
            ("wait", waits(visit, charts, narrowed)),
            ("run", runs(visit, charts, narrowed)),
        ],
        "bounds": [_bound(one) for one in await visit.app.types.known() if _is_bound(one, name)],
        "waiting": [status.value for status in (Status.QUEUED, Status.SCHEDULED, Status.RETRYING, Status.BLOCKED)],
    }


def _is_bound(declared: Declared, queue: str) -> bool:
    return declared.enqueued_with.queue == queue and bool(_told(declared))


def _bound(declared: Declared) -> Bound:
    return Bound(declared.type, _told(declared))


def _told(declared: Declared) -> list[str]:
    options = declared.enqueued_with
    told: list[str] = []
    if options.limit is not None:
        told.append(f"at most {options.limit.n} at once of {options.limit.key}")
    if options.rate is not None:
        each = "" if options.rate.key is None else f" of {options.rate.key}"
        told.append(f"at most {options.rate.n} starts in {span(options.rate.per)}{each}")
    return told


ROOM = Room(
    name="queues",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/queues",
            title="Queues",
            template="queues.html",
            show=show,
            needs=Needs.OVERSEE,
            rail=Rail(word="Queues", icon="M3 4h14v4.5H3zM3 11.5h14V16H3zM6 6.2h.1M6 13.7h.1", order=30, key="q"),
        ),
        Page(
            path="/queues/{name:path}",
            title="Queue",
            template="queue.html",
            show=show_queue,
            needs=Needs.OVERSEE,
            under="/queues",
        ),
    ),
)
