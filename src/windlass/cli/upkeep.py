"""`migrate`, `prune` and `completion`."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from windlass.cli.desk import Desk, at_desk, globals_of, refuse_missing, run_async, the_app
from windlass.cli.output import Stop
from windlass.cli.words import milliseconds, plural
from windlass.core.errors import StoreUnavailable
from windlass.core.events import JobsPruned
from windlass.core.status import FINISHED

if TYPE_CHECKING:
    from windlass.app import Windlass

_AT_ONCE = 500
_PAGE = 1000
_MOST_LOOKED_AT = 100_000


def migrate(
    ctx: typer.Context,
    sql: Annotated[bool, typer.Option("--sql", help="Print the statements; run nothing.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")] = False,
) -> None:
    """Bring the store's schema to this version of windlass. Safe to run by many at once.

    Workers and clients do this by themselves when they open the store.
    """
    given = globals_of(ctx)
    app = the_app(given)
    screen = given.screen
    if sql:
        screen.block(app.store.schema.statements(run_async(_installed(app))))
        return
    if dry_run:
        try:
            refuse_missing(app)
        except Stop:
            screen.line(f"{app.address} is not there yet: it would be made and its schema installed")
            return

    async def work() -> tuple[int, list[str], float]:
        began = time.perf_counter()
        schema = app.store.schema
        await app.store.open(migrate=False)
        try:
            steps = await (schema.pending() if dry_run else schema.migrate())
            return await schema.version(), steps, (time.perf_counter() - began) * 1000
        finally:
            await app.store.close()

    version, steps, took = run_async(work())
    if screen.as_json:
        told = {"store": app.address, "version": version, "steps": steps, "dry_run": dry_run}
        screen.fact({**told, "duration_ms": round(took)})
        return
    for step in steps:
        screen.line(f"{'would run' if dry_run else 'ran'} {step}")
    screen.line(f"{app.address} is at schema version {version} ({milliseconds(took)})")


async def _installed(app: Windlass) -> int:
    """The version that is there; 0 also if nothing can be reached: then all of it is what is missing."""
    try:
        refuse_missing(app)
        await app.store.open(migrate=False)
    except (StoreUnavailable, Stop):
        return 0
    try:
        return await app.store.schema.version()
    finally:
        await app.store.close()


def prune(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
) -> None:
    """Delete finished jobs past their retention now. Workers do this by themselves, a little every minute."""

    async def work(desk: Desk) -> None:
        gone = await (_would_go(desk) if dry_run else _go(desk))
        if not dry_run:
            await desk.record("store.prune", "jobs", pruned=gone)
        if desk.screen.as_json:
            desk.screen.fact({"pruned": gone, "dry_run": dry_run})
        else:
            desk.screen.line(f"{plural(gone, 'job')} {'would be' if dry_run else 'were'} pruned")

    at_desk(ctx, work)


async def _go(desk: Desk) -> int:
    gone = 0
    with desk.screen.bar("prune") as bar:
        while True:
            some = await desk.app.store.jobs.prune(desk.app.retention, _AT_ONCE)
            gone += some
            bar(gone)
            if some:
                desk.app.hub.tell(JobsPruned(some))
            if not some.more:
                return gone


async def _would_go(desk: Desk) -> int:
    """The jobs past their retention, counted among the newest hundred thousand of each kind."""
    now, n = await desk.app.store.now(), 0
    for status in FINISHED:
        after: str | None = None
        for _ in range(_MOST_LOOKED_AT // _PAGE):
            page = await desk.app.jobs.find(status=status, limit=_PAGE, after=after)
            for one in page.jobs:
                kept = desk.app.retention.queues.get(one.queue, desk.app.retention).of(status)
                n += one.finished_at is not None and now - one.finished_at > kept
            after = page.next
            if after is None:
                break
    return n


class Shell(StrEnum):
    """The shells a script can be made for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    ctx: typer.Context,
    shell: Annotated[Shell, typer.Argument(metavar="bash | zsh | fish", help="Your shell.")],
) -> None:
    """Print a script that lets your shell complete commands and options.

    Example: windlass completion bash >> ~/.bashrc
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="windlass", complete_var="_WINDLASS_COMPLETE", shell=shell.value)
    screen = globals_of(ctx).screen
    if screen.as_json:
        screen.fact({"shell": shell.value, "script": script})
    else:
        screen.block(script)
