"""`jobs`, `job` and `workers`: look, without changing anything."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from windlass.cli import filters
from windlass.cli.desk import Desk, at_desk
from windlass.cli.facts import entry_facts, job_facts, worker_facts
from windlass.cli.ids import whole_id
from windlass.cli.timeline import show_job
from windlass.cli.words import clock, count, milliseconds, plural, span
from windlass.client.searching import Search
from windlass.client.workers import Presence
from windlass.core.draft import check_id
from windlass.core.errors import SettingsError
from windlass.core.status import Status
from windlass.observability.plain import short
from windlass.stores.contract import MOST_LOOKED_AT, cursor_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.cli.output import Screen
    from windlass.client.workers import WorkerState
    from windlass.core.job import Job
    from windlass.stores.contract import Page


@filters.searching()
def jobs(
    ctx: typer.Context,
    wanted: Search,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.", min=1, max=1000)] = 50,
    after: Annotated[str | None, typer.Option(metavar="ID|CURSOR", help="Go on after this job.")] = None,
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="Begin with the oldest.")] = False,
) -> None:
    """List jobs, newest first.

    For instance:

      windlass jobs --status failed --type send_receipt

      windlass jobs --entity order:42 --json
    """

    async def work(desk: Desk) -> None:
        page = await desk.app.jobs.find(
            limit=limit, after=_cursor(after, oldest_first=oldest_first), oldest_first=oldest_first, **wanted
        )
        if desk.screen.as_json:
            for one in page.jobs:
                desk.screen.fact(job_facts(one))
        else:
            _show_page(desk, page, count(await desk.app.jobs.count(**wanted)))

    at_desk(ctx, work)


def job(
    ctx: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its beginning.")],
    traceback: Annotated[bool, typer.Option("--traceback", help="Also where its last error was raised.")] = False,
    payload: Annotated[bool, typer.Option("--payload", help="Payload, result and what it keeps in full.")] = False,
) -> None:
    """Show everything about one job, with its timeline."""

    async def work(desk: Desk) -> None:
        job_id = await whole_id(desk, id)
        found, history = await desk.app.jobs.look(job_id)
        if desk.screen.as_json:
            desk.screen.fact({**job_facts(found, contents=True), "history": [entry_facts(one) for one in history]})
        else:
            show_job(desk.screen, found, history, traceback=traceback, payload=payload)

    at_desk(ctx, work)


def workers(
    ctx: typer.Context,
    forget: Annotated[bool, typer.Option("--forget", help="First forget those that went silent.")] = False,
) -> None:
    """List the workers that have not been forgotten, and how each is."""

    async def work(desk: Desk) -> None:
        if forget:
            gone = await desk.app.workers.forget()
            desk.screen.say(f"{plural(len(gone), 'silent worker')} forgotten")
        found = await desk.app.workers.list()
        if desk.screen.as_json:
            for one in found:
                desk.screen.fact(worker_facts(one))
        elif not found:
            desk.screen.line("no workers: start one with: windlass worker MODULE:APP")
        else:
            heads = ("id", "state", "slots", "queues", "types", "memory", "lag", "beat", "since", "version")
            desk.screen.table(heads, [_worker_row(one) for one in found])

    at_desk(ctx, work)


_STATES = {Presence.ALIVE: "working", Presence.STOPPING: "stopping", Presence.SILENT: "dead?"}


def _worker_row(one: WorkerState) -> tuple[object, ...]:
    return (
        one.id,
        _STATES[one.presence],
        f"{one.running}/{one.slots}" + (f" ({one.stuck} stuck)" if one.stuck else ""),
        ", ".join(one.queues) or "all",
        short(", ".join(one.types), 60) or "none",
        "–" if one.memory_mb is None else f"{one.memory_mb:.0f} MB",
        milliseconds(one.loop_lag_ms),
        span(one.beat_age),
        clock(one.started_at),
        one.version,
    )


def _show_page(desk: Desk, page: Page, total: str) -> None:
    screen = desk.screen
    if page.jobs:
        show_jobs(screen, page.jobs)
    elif page.complete:
        screen.say("no jobs match")
        return
    stopped = "" if page.complete else f"; {MOST_LOOKED_AT:,} were looked at, and there may be more"
    onward = f"; more with --after {page.jobs[-1].id if page.complete else page.next}" if page.next else ""
    screen.say(f"{plural(len(page.jobs), 'job')} of {total}{stopped}{onward}")


def _cursor(after: str | None, *, oldest_first: bool) -> str | None:
    """A cursor, or that behind a job."""
    if after is None:
        return None
    with suppress(SettingsError):
        return cursor_after(check_id(after), oldest_first=oldest_first)
    return after


def show_jobs(screen: Screen, found: Sequence[Job]) -> None:
    """A table of jobs."""
    screen.table(("id", "type", "status", "queue", "tries", "created", "ran", "about"), [_row(one) for one in found])


def _row(one: Job) -> tuple[object, ...]:
    return (
        one.id,
        one.type,
        one.status.value,
        one.queue,
        f"{one.attempts}/{one.max_attempts}",
        clock(one.created_at),
        milliseconds(one.duration_ms),
        short(about(one), 60),
    )


def about(one: Job) -> str:
    """What there is to say of a job on its line: what went wrong, how far it is, or what it is about."""
    if one.error is not None and one.status not in (Status.SUCCEEDED, Status.CANCELLED):
        return f"{one.error.type}: {one.error.message}"
    if one.progress is not None and one.status is Status.PROCESSING:
        share = f"/{one.progress.of:g}" if one.progress.of is not None else ""
        return f"{one.progress.done:g}{share} {one.progress.note or ''}"
    if one.blocked_by is not None:
        return f"waits for {one.blocked_by}"
    return f"{one.entity_name}:{one.entity_id}" if one.entity_name is not None else ""
