"""`secrets`: the keys that seal the secrets of jobs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from windlass.cli.desk import Desk, at_desk, globals_of
from windlass.client.vault import new_key
from windlass.core.wording import plural

if TYPE_CHECKING:
    from windlass.client.secrets import SealedWith


class Deed(StrEnum):
    """What to do."""

    LIST = "list"
    NEW_KEY = "new-key"


def secrets(
    ctx: typer.Context,
    deed: Annotated[Deed, typer.Argument(metavar="[list | new-key]", help="What to do.")] = Deed.LIST,
) -> None:
    """List the keys that seal the secrets of jobs, and what is still sealed with which; or make a key.

    A key goes into WINDLASS_SECRET_KEYS, before those that are there already: the first one seals, all of them open.
    One that nothing is sealed with any more can be taken away.
    """
    screen = globals_of(ctx).screen
    if deed is Deed.NEW_KEY:
        made = new_key()
        if screen.as_json:
            screen.fact({"key": made})
        else:
            screen.line(made)
        return

    async def work(desk: Desk) -> None:
        _show(desk, desk.app.secrets.keys, await desk.app.secrets.in_use())

    at_desk(ctx, work)


def _show(desk: Desk, keys: tuple[str, ...], use: SealedWith) -> None:
    names = [*keys, *sorted((use.jobs.keys() | use.schedules.keys()) - set(keys))]
    told = [
        {
            "key": name,
            "state": "seals" if name in keys[:1] else "opens" if name in keys else "is not here",
            "jobs": use.jobs.get(name, 0),
            "schedules": use.schedules.get(name, 0),
        }
        for name in names
    ]
    if desk.screen.as_json:
        for fact in told:
            desk.screen.fact({**fact, "complete": use.complete})
    elif not told:
        desk.screen.say("no keys are set, and nothing is sealed: windlass secrets new-key makes one")
    else:
        desk.screen.table(("key", "state", "jobs", "schedules"), [tuple(fact.values()) for fact in told])
        if not use.complete:
            desk.screen.say(f"only {plural(use.looked_at, 'job')} were looked at: there may be more of each")
