"""`top`: the command."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from windlass.cli.desk import Desk, at_desk, globals_of
from windlass.cli.output import OK, USAGE, Stop
from windlass.cli.words import duration
from windlass.core.errors import SettingsError

SHORTEST, LONGEST = 0.2, 3600.0
"""seconds between two looks"""


def top(
    ctx: typer.Context,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="How often to look.")] = "1s",
    once: Annotated[bool, typer.Option("--once", help="Print one screen and end; so does --json.")] = False,
) -> None:
    """Watch queues, workers, running jobs and failures live, and operate them by keys; ? shows which.

    For instance:

      windlass top --interval 2s

      windlass top --once | head
    """
    every = duration(interval, "--interval").total_seconds()
    if not SHORTEST <= every <= LONGEST:
        raise SettingsError(f"--interval is {interval!r}: expected 200ms to 1h")
    if once or globals_of(ctx).as_json:
        from windlass.cli.top.once import print_once

        at_desk(ctx, print_once)
        return
    if find_spec("textual") is None:
        raise Stop(USAGE, 'the live view needs the extra "top": pip install "windlass[top]"; --once works without it')
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise Stop(USAGE, "the live view needs a terminal: elsewhere, --once prints one screen")

    async def work(desk: Desk) -> int:
        from windlass.cli.top.live import watch

        return await watch(desk, every)

    code = at_desk(ctx, work)
    if code != OK:
        raise Stop(code)
