"""`worker` and `dev`: run jobs until a signal comes."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from windlass.apps.installed import SHIPPED, shipped
from windlass.cli.banner import show_banner
from windlass.cli.desk import Globals, globals_of, run_async, the_app
from windlass.cli.lines import FormatOption, LevelOption, LogLevel, format_of, level_of, teller, to_stdout
from windlass.cli.metering import count_into, metrics_served
from windlass.cli.output import OK, USAGE, Stop
from windlass.cli.words import duration, maybe_duration, queues, weights
from windlass.settings import load

if TYPE_CHECKING:
    from windlass.app import Windlass
    from windlass.worker.worker import Worker

RECYCLED = 75
"""the exit code of a supervised worker that ended to make room for a fresh process"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line asks of a worker."""

    spec: str
    queue: list[str]
    weight: list[str]
    concurrency: int | None
    exclude: list[str]
    lease: str | None
    heartbeat: str | None
    poll: str | None
    grace: str | None
    drain: bool
    max_jobs: int | None
    max_memory: int | None
    max_stuck: int | None
    log_format: Literal["text", "json"]
    log_level: str
    metrics_port: int | None
    metrics_host: str
    child: int | None
    tally: int | None

    @property
    def recycles(self) -> bool:
        """Whether it may end only to be started afresh, which somebody has to do."""
        return any(most is not None for most in (self.max_jobs, self.max_memory, self.max_stuck))


AppArgument = Annotated[str | None, typer.Argument(metavar="MODULE:APP", help="The application; else WINDLASS_APP.")]
QueueOption = Annotated[
    list[str] | None, typer.Option("--queue", "-q", metavar="NAME[:SLOTS]", help="Only these queues, with their slots.")
]
ConcurrencyOption = Annotated[int | None, typer.Option("--concurrency", "-c", help="How many jobs at once.")]
ExcludeOption = Annotated[list[str] | None, typer.Option("--exclude", metavar="TYPE", help="Leave these types alone.")]
GraceOption = Annotated[str | None, typer.Option(metavar="DURATION", help="How long running jobs may take to end.")]


def worker(
    ctx: typer.Context,
    app: AppArgument = None,
    queue: QueueOption = None,
    weight: Annotated[
        list[str] | None, typer.Option(metavar="NAME=N", help="How many jobs a queue gives in its turn; else 1.")
    ] = None,
    concurrency: ConcurrencyOption = None,
    exclude: ExcludeOption = None,
    lease: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long a claim holds unless renewed.")
    ] = None,
    heartbeat: Annotated[str | None, typer.Option(metavar="DURATION", help="How often leases are renewed.")] = None,
    poll: Annotated[str | None, typer.Option(metavar="DURATION", help="How often to look without a notice.")] = None,
    grace: GraceOption = None,
    processes: Annotated[int, typer.Option(help="How many processes, each with its own slots.", min=1, max=1000)] = 1,
    drain: Annotated[bool, typer.Option("--drain", help="Stop when nothing is due.")] = False,
    max_jobs: Annotated[int | None, typer.Option(help="A fresh process after so many jobs.", min=1)] = None,
    max_memory: Annotated[
        int | None, typer.Option(metavar="MB", help="A fresh process beyond this size.", min=1)
    ] = None,
    max_stuck: Annotated[
        int | None, typer.Option(help="A fresh process once so many threads are stuck; else all slots.", min=1)
    ] = None,
    log_format: FormatOption = None,
    log_level: LevelOption = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve /metrics to Prometheus here; 0 takes a free one.", min=0, max=65535)
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="Where; beyond this machine it needs a token.")] = "127.0.0.1",
    child: Annotated[int | None, typer.Option(hidden=True)] = None,
    tally: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C; a second signal hands back what still runs.

    For instance:

      windlass worker shop.jobs:app

      windlass worker shop.jobs:app -q mail:10 -q default:20 --processes 2

      windlass worker shop.jobs:app --drain --log-format json
    """
    given = globals_of(ctx)
    wanted = Wanted(
        spec=_spec(app, given),
        queue=queue or [],
        weight=weight or [],
        concurrency=concurrency,
        exclude=exclude or [],
        lease=lease,
        heartbeat=heartbeat,
        poll=poll,
        grace=grace,
        drain=drain,
        max_jobs=max_jobs,
        max_memory=max_memory,
        max_stuck=max_stuck,
        log_format=format_of(given, log_format),
        log_level=level_of(given, log_level),
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        child=child,
        tally=tally,
    )
    if child is None and (processes > 1 or wanted.recycles):
        _supervise(given, wanted, processes)
    else:
        _work(given, wanted)


def dev(
    ctx: typer.Context,
    app: AppArgument = None,
    queue: QueueOption = None,
    concurrency: ConcurrencyOption = None,
    exclude: ExcludeOption = None,
    grace: Annotated[str, typer.Option(metavar="DURATION", help="How long running jobs may take to end.")] = "2s",
    log_format: FormatOption = None,
    log_level: LevelOption = LogLevel.DEBUG,
) -> None:
    """Run a worker that starts again whenever a .py file below the current directory changes.

    Example: windlass dev shop.jobs:app
    """
    from windlass.worker.reloading import Reloader

    given = globals_of(ctx)
    arguments = ["--grace", grace, "--log-format", format_of(given, log_format)]
    arguments += ["--log-level", level_of(given, log_level)]
    arguments += [word for one in queue or [] for word in ("--queue", one)]
    arguments += [word for one in exclude or [] for word in ("--exclude", one)]
    arguments += [] if concurrency is None else ["--concurrency", str(concurrency)]
    spec = _spec(app, given)
    duration(grace, "--grace")
    command = _command(given, [spec, *arguments])
    tell = teller(given, format_of(given, log_format))
    code = run_async(Reloader(command, os.getcwd(), tell).run())  # noqa: PTH109  # watched as text
    raise Stop(code)


def _spec(app: str | None, given: Globals) -> str:
    spec = app or given.app or load().app
    if spec is None and not shipped():
        raise Stop(
            USAGE,
            "which application? Name it, as in: windlass worker shop.jobs:app, or set WINDLASS_APP. Without one the"
            ' applications run that ship, and none of them is installed: pip install "windlass[imports]"',
        )
    return spec or SHIPPED


def _work(given: Globals, wanted: Wanted) -> None:
    """Run one worker in this process."""
    app = the_app(given, wanted.spec)
    made = _worker(app, wanted)
    app.listen(to_stdout(given, wanted.log_format, wanted.log_level, process=wanted.child is not None))
    if wanted.tally is not None:
        count_into(app, wanted.tally)

    async def run() -> int:
        from windlass.worker.shutdown import stopped_by_signals

        async with app:
            if wanted.log_format == "text" and not given.quiet and wanted.child is None:
                show_banner(given.screen, app, made)
            with stopped_by_signals(made):
                _watch(wanted.child, made)
                await made.run()
        if made.abandoned:
            # A handler ignores its cancellation, and the end of the loop would wait for it for ever. Its job has been
            # handed back, so nothing is lost by leaving now.
            sys.stdout.flush()
            os._exit(_code(made, wanted))
        return _code(made, wanted)

    with metrics_served(app, wanted.metrics_host, wanted.metrics_port):
        code = run_async(run())
    raise Stop(code)


def _code(made: Worker, wanted: Wanted) -> int:
    """The exit code, so that a supervisor starts a fresh process if one is needed."""
    return RECYCLED if made.recycled and (wanted.child is not None or made.gave_way_to_stuck) else OK


def _worker(app: Windlass, wanted: Wanted) -> Worker:
    slots = wanted.concurrency or app.settings.concurrency
    return app.worker(
        queues=queues(wanted.queue, slots),
        weights=weights(wanted.weight),
        concurrency=wanted.concurrency,
        exclude=wanted.exclude,
        lease=maybe_duration(wanted.lease, "--lease"),
        heartbeat=maybe_duration(wanted.heartbeat, "--heartbeat"),
        poll=maybe_duration(wanted.poll, "--poll"),
        grace=maybe_duration(wanted.grace, "--grace"),
        drain=wanted.drain,
        max_jobs=wanted.max_jobs,
        max_memory_mb=wanted.max_memory,
        max_stuck=wanted.max_stuck,
    )


def _watch(pipe: int | None, made: Worker) -> None:
    """A supervised worker stops when the other end of its pipe closes: then its supervisor is gone."""
    if pipe is not None:
        loop = asyncio.get_running_loop()

        def gone() -> None:
            loop.remove_reader(pipe)
            made.stop()

        loop.add_reader(pipe, gone)


def _supervise(given: Globals, wanted: Wanted, processes: int) -> None:
    """Check here what can be checked once, then let children work."""
    from windlass.worker.supervising import Supervisor

    app = the_app(given, wanted.spec)
    made = _worker(app, wanted)

    async def banner() -> None:
        async with app:
            show_banner(given.screen, app, made, processes)

    if wanted.log_format == "text" and not given.quiet:
        run_async(banner())
    command = _command(given, [wanted.spec, *_arguments(wanted)])
    tell = teller(given, wanted.log_format)
    with metrics_served(app, wanted.metrics_host, wanted.metrics_port, shared=True) as lend:
        code = run_async(Supervisor(command, processes, tell, recycled=RECYCLED, lend=lend).run())
    raise Stop(code)


def _command(given: Globals, arguments: list[str]) -> list[str]:
    shared = [
        word for name in ("store", "namespace") if (value := getattr(given, name)) for word in (f"--{name}", value)
    ]
    shared += ["--quiet"] * given.quiet + ["--no-color"] * (not given.color) + ["--debug"] * given.debug
    return [sys.executable, "-m", "windlass", *shared, "worker", *arguments]


def _arguments(wanted: Wanted) -> list[str]:
    words = ["--log-format", wanted.log_format, "--log-level", wanted.log_level]
    for name in ("concurrency", "lease", "heartbeat", "poll", "grace", "max_jobs", "max_memory", "max_stuck"):
        value = getattr(wanted, name)
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += [word for one in wanted.queue for word in ("--queue", one)]
    words += [word for weight in wanted.weight for word in ("--weight", weight)]
    words += [word for one in wanted.exclude for word in ("--exclude", one)]
    return words + ["--drain"] * wanted.drain
