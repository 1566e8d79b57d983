"""`demo`: a worker and real jobs on a store of their own; each step shows the code and what came of it."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.demo_sheet import FILE, can_import, install, start
from windlass.cli.desk import globals_of, run_async
from windlass.cli.output import FAILURE, Screen, Stop
from windlass.cli.words import span
from windlass.core.history import Happened
from windlass.core.schedule import cron
from windlass.core.status import Status
from windlass.stores.contract import Schedule

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from windlass.app import Windlass
    from windlass.client.handle import Handle
    from windlass.core.job import Job

NAMESPACE = "windlass_demo"
_FAN = 200
_PATIENCE = 15.0
_ROWS = 3_000
_TICK = "demo-report"


@dataclass(slots=True)
class Show:
    """The running demo: where it speaks, and what it has shown."""

    screen: Screen
    app: Windlass
    directory: Path
    """where files of its own may lie"""
    done: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def step(self, title: str, code: str, act: Callable[[], Awaitable[str]]) -> None:
        """Show the code, do it, and tell what came of it."""
        self.screen.say()
        self.screen.say(f"{len(self.done) + 1}. {title}", "bold")
        self.screen.say(f"   >>> {code}", "cyan")
        began = time.perf_counter()
        async with asyncio.timeout(_PATIENCE):
            told = await act()
        took = time.perf_counter() - began
        self.screen.say(f"   {told}  ({span(took)})")
        self.done.append({"step": title, "told": told, "duration_ms": round(took * 1000)})


def demo(
    ctx: typer.Context,
    serve: Annotated[
        bool, typer.Option("--serve", help="A shop's jobs with the dashboard on it, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="With --serve: where; else 8000, or any where that is taken.")
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0, max=168, help="With --serve, on a new SQLite file: how much past it has.")
    ] = 6,
) -> None:
    """Show windlass at work: a worker and real jobs on an SQLite file in a temporary directory, or on --store URL.

    Example: windlass demo --serve
    """
    given = globals_of(ctx)
    with tempfile.TemporaryDirectory(prefix="windlass-demo-") as directory:
        url = given.store or f"sqlite:///{Path(directory) / 'demo.db'}"
        namespace = given.namespace or NAMESPACE
        if serve:
            _serve(given.screen, url, namespace, port, hours, Path(directory))
            return
        from windlass.cli.demo_jobs import app

        app.move(url, namespace)
        show = Show(given.screen, app, Path(directory))
        run_async(_run(show))
        if given.store is not None:
            show.screen.say(f"The jobs are still there: windlass jobs --namespace {app.namespace} --store …")


def _serve(screen: Screen, url: str, namespace: str, port: int | None, hours: float, directory: Path) -> None:
    from windlass.cli.demo_shop.serving import Shown, check_extras, serve_shop

    check_extras()
    shown = Shown(screen=screen, url=url, namespace=namespace, port=port, hours=hours, directory=directory)
    run_async(serve_shop(shown))


async def _run(show: Show) -> None:
    began = time.perf_counter()
    show.screen.say(f"windlass demo on {show.app.address}", "bold")
    steps = [*_steps(show), *_importing(show)]
    await _schedule(show.app)
    worker = show.app.worker(poll=timedelta(seconds=1), grace=timedelta(seconds=2))
    try:
        async with worker:
            for title, code, act in steps:
                await show.step(title, code, act)
            await _summary(show, time.perf_counter() - began)
    except TimeoutError:
        raise Stop(FAILURE, f"the step after {len(show.done)} did not end within {_PATIENCE:g} s") from None


def _steps(show: Show) -> Sequence[tuple[str, str, Callable[[], Awaitable[str]]]]:
    return (
        ("Many small jobs", f"await app.enqueue_many(greet.bind(str(i)) for i in range({_FAN}))", _fan),
        (
            "A job that fails twice is tried again",
            "@app.job(retry=Retry(5, base=0.2))  …  await flaky.enqueue()",
            _flaky,
        ),
        (
            "Unique: enqueued three times, run once",
            '@app.job(unique="recount:{facility}")  …  recount.enqueue("north")',
            _unique,
        ),
        (
            "Limit: one at a time for each account",
            '@app.job(limit=Limit("account:{account}", 1))  …  charge.enqueue("acme", 5)',
            _limited,
        ),
        ("In a process of its own", "@app.job(process=True)  …  await heavy.enqueue(200_000)", _process),
        ("Progress", "ctx.progress(row, rows)  …  async for one in handle.events(): …", lambda: _progress(show)),
        ("A job that cannot succeed waits in `failed`", 'raise Reject("order 7 has no address")', _hopeless),
        ("Cancelled while it runs", "await handle.cancel()", _cancelled),
        (
            "A schedule's missed tick is made up for",
            'app.schedules.put("demo-report", report.bind(), cron("* * * * *"))',
            lambda: _tick(show),
        ),
    )


async def _fan() -> str:
    from windlass.cli.demo_jobs import app, greet

    began = time.perf_counter()
    handles = await app.enqueue_many(greet.bind(str(i)) for i in range(_FAN))
    stored = time.perf_counter()
    results = await asyncio.gather(*(handle.result() for handle in handles))
    _expect(len(set(results)) == _FAN, "every job to give its own result")
    return f"{_FAN} jobs stored in {span(stored - began)}, all done in {span(time.perf_counter() - began)}"


async def _flaky() -> str:
    from windlass.cli.demo_jobs import flaky

    handle = await flaky.enqueue()
    result = await handle.result()
    failures = [one.note for one in await handle.history() if one.happened is Happened.RETRYING]
    _expect(len(failures) == 2, "two failures before it worked")
    return f"{failures[0]}; {failures[1]}; then: {result}"


async def _unique() -> str:
    from windlass.cli.demo_jobs import recount

    handles = [await recount.enqueue("north") for _ in range(3)]
    await handles[0].result()
    _expect(len({one.id for one in handles}) == 1, "one job for the three")
    return f"created: {', '.join(str(one.created) for one in handles)}; all three are job …{handles[0].id[-8:]}"


async def _limited() -> str:
    from windlass.cli.demo_jobs import charge

    first, second = [await charge.enqueue("acme", cents) for cents in (5, 7)]
    await asyncio.gather(first.result(), second.result())
    one, two = await first.job(), await second.job()
    early, late = sorted((one, two), key=lambda job: job.finished_at or job.created_at)
    _expect(_after(early, late), "the second to start after the first had ended")
    return f"the second stood as blocked and started {_gap(early, late)} after the first had ended"


async def _process() -> str:
    from windlass.cli.demo_jobs import heavy

    result = await (await heavy.enqueue(200_000)).result()
    _expect(result["pid"] != os.getpid(), "another process")
    return f"computed in process {result['pid']}; this one is {os.getpid()}"


async def _progress(show: Show) -> str:
    from windlass.cli.demo_jobs import bulk

    handle = await bulk.enqueue(100)
    seen = await _watch(show, handle, "bulk")
    return f"{await handle.result()} rows, {seen} looks at its progress on the way"


def _importing(show: Show) -> Sequence[tuple[str, str, Callable[[], Awaitable[str]]]]:
    """The import of a spreadsheet, where what reads it is installed."""
    if not can_import():
        show.screen.say('with "windlass[imports]" the demo imports a spreadsheet, too')
        return ()
    imports = install(show.app, show.directory)

    async def import_sheet() -> str:
        handle = await start(imports, _ROWS)
        await _watch(show, handle, FILE)
        made = await handle.result()
        _expect(made.inserted + made.failed == _ROWS and made.failed > 0, "all rows, some of them refused")
        error = made.errors[0]
        return (
            f"{made.inserted:,} rows inserted, {made.failed} refused, such as row {error.row}: {error.reason}"
            f" ({error.value})"
        )

    return [("A spreadsheet: rows are checked and upserted", f"windlass import {FILE} --as customers", import_sheet)]


async def _watch(show: Show, handle: Handle[Any], label: str) -> int:
    """Draw the progress of a job until it ends; gives how often it was told."""
    seen = 0
    with show.screen.bar(f"   {label}") as bar:
        async for happened in handle.events():
            done = getattr(happened, "done", None)
            if done is not None:
                seen += 1
                bar(done, getattr(happened, "of", None), getattr(happened, "note", None))
    return seen


async def _hopeless() -> str:
    from windlass.cli.demo_jobs import hopeless

    handle = await hopeless.enqueue(7)
    job = await handle.wait()
    _expect(job.status is Status.FAILED, "it to fail")
    return f"{job.error.message if job.error else ''}; on your store: windlass retry {job.id}"


async def _cancelled() -> str:
    from windlass.cli.demo_jobs import endless

    handle = await endless.enqueue()
    async for happened in handle.events():
        if getattr(happened, "happened", None) is Happened.CLAIMED:
            await handle.cancel("the demo has seen enough")
    job = await handle.job()
    _expect(job.status is Status.CANCELLED, "it to be cancelled")
    return f"it ran {job.duration_ms} ms and was stopped by its worker"


async def _schedule(app: Windlass) -> None:
    """Store a schedule as a stopped system would have left it: its next tick has passed while no worker ran."""
    from windlass.cli.demo_jobs import report

    async with app:
        rule = cron("* * * * *", missed="latest")
        await app.schedules.remove(_TICK)
        left_at = rule.after(await app.store.now() - timedelta(minutes=3))
        bound = report.bind()
        missed = Schedule(
            name=_TICK,
            cron=rule,
            type=bound.type,
            payload_json=bound.payload_json,
            queue=bound.options.queue,
            next_tick=left_at,
        )
        await app.store.schedules.put([missed])


async def _tick(show: Show) -> str:
    fired = [one for one in await show.app.schedules.ticks(_TICK) if one.job_id is not None]
    _expect(bool(fired), "a tick that made a job")
    job = await show.app.jobs.get(fired[-1].job_id or "")
    _expect(job.status is Status.SUCCEEDED, "its job to have run")
    await show.app.schedules.remove(_TICK)
    return (
        f"left as after three minutes without a worker: the tick of {fired[-1].tick:%H:%M} made one job, the older none"
    )


async def _summary(show: Show, took: float) -> None:
    counts: dict[str, Counter[Status]] = {}
    for one in await _all_jobs(show.app):
        counts.setdefault(one.type, Counter())[one.status] += 1
    ends = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)
    if show.screen.as_json:
        jobs = {name: {one.value: tally[one] for one in ends} for name, tally in counts.items()}
        show.screen.fact({"steps": show.done, "jobs": jobs, "duration_ms": round(took * 1000)})
        return
    show.screen.say()
    rows = [(name, *(tally[one] for one in ends), tally.total()) for name, tally in sorted(counts.items())]
    rows.append(
        (
            "total",
            *(sum(tally[one] for tally in counts.values()) for one in ends),
            sum(t.total() for t in counts.values()),
        )
    )
    show.screen.table(("type", *(one.value for one in ends), "jobs"), rows)
    show.screen.say()
    show.screen.say(f"{len(show.done)} steps as promised, in {span(took)}", "green")


async def _all_jobs(app: Windlass) -> list[Job]:
    found: list[Job] = []
    after: str | None = None
    while True:
        page = await app.jobs.find(limit=1000, after=after)
        found += page.jobs
        after = page.next
        if after is None:
            return found


def _after(early: Job, late: Job) -> bool:
    return early.finished_at is not None and late.started_at is not None and early.finished_at <= late.started_at


def _gap(early: Job, late: Job) -> str:
    if early.finished_at is None or late.started_at is None:
        return "–"
    return span(late.started_at - early.finished_at)


def _expect(true: bool, what: str) -> None:
    if not true:
        raise Stop(FAILURE, f"the demo expected {what}, and saw otherwise")
