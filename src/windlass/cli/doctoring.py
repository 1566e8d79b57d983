"""`doctor`: the checks of `app.health`, shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from windlass.cli.desk import globals_of, refuse_missing, run_async, the_app
from windlass.cli.output import FAILURE, STYLES, Screen, Stop
from windlass.client.checking import Check, Level
from windlass.client.health import UNREACHABLE

if TYPE_CHECKING:
    from windlass.app import Windlass


def doctor(ctx: typer.Context) -> None:
    """Check the store, its schema, the workers and the jobs; exit 1 if something fails."""
    given = globals_of(ctx)
    levels = run_async(_examine(the_app(given), given.screen))
    if Level.FAIL in levels:
        raise Stop(FAILURE)


async def _examine(app: Windlass, screen: Screen) -> set[Level]:
    try:
        refuse_missing(app)
    except Stop as error:
        _show(screen, Check(Level.FAIL, "store reachable", str(error), UNREACHABLE))
        return {Level.FAIL}
    levels: set[Level] = set()
    try:
        async for check in app.health.checks():
            _show(screen, check)
            levels.add(check.level)
    finally:
        await app.client.close()
    return levels


def _show(screen: Screen, check: Check) -> None:
    if screen.as_json:
        screen.fact({"check": check.name, "level": check.level, "found": check.found, "fix": check.fix})
        return
    screen.line(f"{check.level} {check.name:<22} {check.found}", STYLES[check.level])
    if check.fix is not None:
        screen.line(f"{'':<27} fix: {check.fix}")
