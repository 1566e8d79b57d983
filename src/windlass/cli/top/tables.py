"""Tables: what each list shows of its rows, in which columns and orders."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.cli.looking import about
from windlass.cli.top.columns import Cell, Column, Table, Tone
from windlass.cli.top.drawing import bar, thin_bar
from windlass.cli.top.reading import View
from windlass.cli.words import count, milliseconds, span
from windlass.client.workers import Presence
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windlass.cli.top.picture import Picture, QueueSeen, RunningSeen
    from windlass.client.dead_letters import DeadGroup
    from windlass.client.workers import WorkerState
    from windlass.core.job import Job

NOTHING = "–"
LATE_LAG_MS = 250
"""a loop that answers later than this is blocked by something"""
LATE_BEAT = 20
"""seconds: two heartbeats in their usual distance"""
TONES: Mapping[Status, Tone] = {
    Status.SUCCEEDED: Tone.GOOD,
    Status.FAILED: Tone.BAD,
    Status.RETRYING: Tone.WARN,
    Status.PROCESSING: Tone.ACCENT,
    Status.BLOCKED: Tone.WARN,
    Status.CANCELLED: Tone.MUTED,
}
_STATES = {Presence.ALIVE: "working", Presence.STOPPING: "stopping", Presence.SILENT: "dead?"}
_STATE_TONES = {Presence.ALIVE: Tone.GOOD, Presence.STOPPING: Tone.WARN, Presence.SILENT: Tone.BAD}


@dataclass(frozen=True, slots=True)
class Order:
    """A way to sort: the column that is marked, and by what."""

    head: str
    key: Callable[[Any], Any]
    down: bool = True


ORDERS: Mapping[View, Sequence[Order]] = {
    View.QUEUES: (
        Order("QUEUE", lambda one: one.info.name, down=False),
        Order("WAITING", lambda one: one.info.depth.n),
        Order("OLDEST", lambda one: _seconds(one.info.oldest)),
        Order("/s", lambda one: one.rates.all),
    ),
    View.WORKERS: (
        Order("WORKER", lambda one: one.id, down=False),
        Order("SLOTS", lambda one: one.running / max(one.slots, 1)),
        Order("MEMORY", lambda one: one.memory_mb or 0),
        Order("BEAT", lambda one: _seconds(one.beat_age)),
    ),
    View.RUNNING: (
        Order("FOR", lambda one: _seconds(one.since)),
        Order("TYPE", lambda one: one.job.type, down=False),
        Order("PROGRESS", lambda one: -1 if one.share is None else one.share),
        Order("WORKER", lambda one: one.job.worker_id or "", down=False),
    ),
    View.FAILURES: (
        Order("JOBS", lambda one: one.count),
        Order("LAST", lambda one: 0 if one.last_seen is None else one.last_seen.timestamp()),
        Order("TYPE", lambda one: one.type, down=False),
    ),
    View.JOBS: (
        Order("AGE", lambda one: one.created_at),
        Order("RAN", lambda one: one.duration_ms or 0),
        Order("STATUS", lambda one: one.status.value, down=False),
        Order("TYPE", lambda one: one.type, down=False),
    ),
}


def table(view: View, shown: Picture, order: int = 0) -> Table:
    """The list of a view, in the order of that number."""
    orders = ORDERS[view]
    chosen = orders[order % len(orders)]
    match view:
        case View.QUEUES:
            return _queues(shown, chosen)
        case View.WORKERS:
            return _workers(shown, chosen)
        case View.RUNNING:
            return _running(shown, chosen)
        case View.FAILURES:
            return _failures(shown, chosen)
        case View.JOBS:
            return _jobs(shown, chosen)


def _queues(shown: Picture, order: Order) -> Table:
    most = max((one.info.depth.n for one in shown.queues), default=0)
    rows = _sorted(shown.queues, order)
    return Table(
        columns=(
            Column(head="QUEUE", grows=True, least=10),
            Column(head="WAITING", right=True, least=9),
            Column(head="", least=10, most=10, rank=7),
            Column(head="RUN/SLOTS", right=True),
            Column(head="OLDEST", right=True, least=9, rank=2),
            Column(head="/s", right=True, least=7, rank=3),
            Column(head="p95 WAIT", right=True, least=8, rank=6),
            Column(head="p95 RUN", right=True, least=8, rank=5),
            Column(head="DRAINS IN", right=True, rank=4),
            Column(head="STATE", least=7, rank=1),
        ),
        keys=[one.info.name for one in rows],
        rows=[_queue(one, most) for one in rows],
        sorted_by=order.head,
        empty="no queues yet: the first job makes its own",
    )


def _queue(one: QueueSeen, most: int) -> list[Cell]:
    info = one.info
    paused = info.paused_at is not None
    share = info.depth.n / most if most else 0.0
    return [
        Cell.of(info.name, Tone.MUTED if paused else Tone.PLAIN),
        Cell(count(info.depth)),
        Cell(thin_bar(share, 10), Tone.ACCENT),
        Cell(f"{info.processing.n:,}/{one.slots:,}", Tone.WARN if info.depth.n and not one.slots else Tone.PLAIN),
        Cell(span(info.oldest)),
        Cell(per_second(one.rates.all) if one.rates.all else NOTHING),
        Cell(span(one.wait)),
        Cell(span(one.run)),
        Cell(span(one.drain)),
        Cell("paused", Tone.WARN) if paused else Cell("open", Tone.MUTED),
    ]


def _workers(shown: Picture, order: Order) -> Table:
    busy: defaultdict[str | None, list[str]] = defaultdict(list)
    for one in shown.running:
        busy[one.job.worker_id].append(f"{one.job.type} {span(one.since)}")
    rows = _sorted(shown.workers, order)
    return Table(
        columns=(
            Column(head="WORKER", least=10, most=30),
            Column(head="STATE", least=8, rank=1),
            Column(head="SLOTS", least=16, most=20, rank=2),
            Column(head="MEMORY", right=True, least=8, rank=3),
            Column(head="LAG", right=True, least=7, rank=4),
            Column(head="BEAT", right=True, least=7, rank=2),
            Column(head="VERSION", rank=6),
            Column(head="RUNS", grows=True, least=10, rank=5),
        ),
        keys=[one.id for one in rows],
        rows=[_worker(one, busy[one.id]) for one in rows],
        sorted_by=order.head,
        empty="no workers: start one with: windlass worker MODULE:APP",
    )


def _worker(one: WorkerState, busy: Sequence[str]) -> list[Cell]:
    late = _seconds(one.beat_age) > LATE_BEAT
    slow = (one.loop_lag_ms or 0) > LATE_LAG_MS
    stuck = f" {one.stuck} stuck" if one.stuck else ""
    return [
        Cell.of(one.id, Tone.PLAIN if one.alive else Tone.BAD),
        Cell(_STATES[one.presence], _STATE_TONES[one.presence]),
        Cell(f"{bar(one.running / max(one.slots, 1), 8)} {one.running}/{one.slots}{stuck}", _slots_tone(one)),
        Cell(NOTHING if one.memory_mb is None else f"{one.memory_mb:,.0f} MB"),
        Cell(milliseconds(one.loop_lag_ms), Tone.WARN if slow else Tone.PLAIN),
        Cell(span(one.beat_age), Tone.BAD if late else Tone.PLAIN),
        Cell.of(one.version),
        Cell.of(", ".join(busy), Tone.MUTED),
    ]


def _slots_tone(one: WorkerState) -> Tone:
    return Tone.WARN if one.stuck else Tone.ACCENT


def _running(shown: Picture, order: Order) -> Table:
    rows = _sorted(shown.running, order)
    noted = any(one.job.progress is not None and one.job.progress.note for one in rows)
    return Table(
        columns=(
            Column(head="TYPE", grows=not noted, least=12, most=40),
            Column(head="FOR", right=True, least=9),
            Column(head="PROGRESS", least=15, most=20, rank=1),
            Column(head="RATE", right=True, least=9, rank=4),
            Column(head="ETA", right=True, least=8, rank=2),
            Column(head="QUEUE", most=20, rank=5),
            Column(head="TRY", right=True, rank=3),
            Column(head="WORKER", most=26, rank=7),
            Column(head="NOTE", grows=noted, least=10, rank=6),
            Column(head="ID", least=36, rank=8),
        ),
        keys=[one.job.id for one in rows],
        rows=[_run(one) for one in rows],
        sorted_by=order.head,
        empty="nothing runs",
    )


def _run(one: RunningSeen) -> list[Cell]:
    job = one.job
    asked = job.cancel_requested_at is not None
    note = None if job.progress is None else job.progress.note
    return [
        Cell.of(job.type),
        Cell(span(one.since)),
        Cell("asked to stop", Tone.WARN) if asked else _progress(one),
        Cell(NOTHING if one.rate is None else f"{per_second(one.rate)}/s"),
        Cell(span(one.eta)),
        Cell.of(job.queue),
        Cell(f"{job.attempts}/{job.max_attempts}", Tone.WARN if job.attempts > 1 else Tone.PLAIN),
        Cell.of(job.worker_id or NOTHING),
        Cell.of(note or "", Tone.MUTED),
        Cell(job.id, Tone.MUTED),
    ]


def _progress(one: RunningSeen) -> Cell:
    if one.share is not None:
        return Cell(f"{bar(one.share, 10)} {one.share:>4.0%}", Tone.ACCENT)
    return Cell(NOTHING if one.job.progress is None else f"{one.job.progress.done:,g}")


def _failures(shown: Picture, order: Order) -> Table:
    groups = () if shown.failures is None else shown.failures.groups
    rows = _sorted(groups, order)
    return Table(
        columns=(
            Column(head="JOBS", right=True, least=7),
            Column(head="TYPE", least=10, most=30, rank=1),
            Column(head="ERROR", grows=True, least=40),
            Column(head="LAST", right=True, least=10, rank=2),
            Column(head="FIRST", right=True, least=10, rank=3),
            Column(head="FINGERPRINT", least=12, rank=4),
        ),
        keys=[one.fingerprint for one in rows],
        rows=[_failure(one, shown) for one in rows],
        sorted_by=order.head,
        empty="looking through the failed jobs …" if shown.failures is None else "no failed jobs",
    )


def _failure(one: DeadGroup, shown: Picture) -> list[Cell]:
    first, last = (span(None if at is None else max(shown.at - at, at - at)) for at in (one.first_seen, one.last_seen))
    return [
        Cell(f"{one.count:,}", Tone.BAD),
        Cell.of(one.type),
        Cell.of(f"{one.error}: {one.message}"),
        Cell(f"{last} ago"),
        Cell(f"{first} ago"),
        Cell(one.fingerprint, Tone.MUTED),
    ]


def _jobs(shown: Picture, order: Order) -> Table:
    rows = _sorted(() if shown.jobs is None else shown.jobs.jobs, order)
    return Table(
        columns=(
            Column(head="STATUS", least=10),
            Column(head="TYPE", least=10, most=30),
            Column(head="QUEUE", least=7, most=20, rank=3),
            Column(head="TRY", right=True, rank=2),
            Column(head="AGE", right=True, least=9, rank=1),
            Column(head="RAN", right=True, least=8, rank=4),
            Column(head="ABOUT", grows=True, least=16, rank=5),
            Column(head="ID", least=36, rank=6),
        ),
        keys=[one.id for one in rows],
        rows=[_job(one, shown) for one in rows],
        sorted_by=order.head,
        empty="looking …" if shown.jobs is None else "no jobs match",
    )


def _job(one: Job, shown: Picture) -> list[Cell]:
    return [
        Cell(one.status.value, TONES.get(one.status, Tone.PLAIN)),
        Cell.of(one.type),
        Cell.of(one.queue),
        Cell(f"{one.attempts}/{one.max_attempts}"),
        Cell(span(max(shown.at - one.created_at, one.created_at - one.created_at))),
        Cell(milliseconds(one.duration_ms)),
        Cell.of(about(one), Tone.MUTED),
        Cell(one.id, Tone.MUTED),
    ]


def per_second(n: float) -> str:
    """A rate for people."""
    if n >= 100:
        return f"{n:,.0f}"
    return f"{n:.1f}" if n >= 0.1 or n == 0 else f"{n:.2f}"


def _sorted(rows: Sequence[Any], order: Order) -> list[Any]:
    return sorted(rows, key=order.key, reverse=order.down)


def _seconds(of: Any) -> float:
    return -1.0 if of is None else of.total_seconds()
