"""`queues`: list, pause and resume."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.facts import queue_facts
from windlass.cli.output import NOT_FOUND, USAGE, Stop
from windlass.cli.words import count, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import QueueInfo


class Deed(StrEnum):
    """What to do with queues."""

    LIST = "list"
    PAUSE = "pause"
    RESUME = "resume"


def queues(
    ctx: typer.Context,
    deed: Annotated[Deed, typer.Argument(metavar="[list | pause | resume]", help="What to do.")] = Deed.LIST,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME …", help="Which queues.")] = None,
) -> None:
    """List the queues, or pause and resume some: what runs goes on, nothing more is claimed.

    For instance:

      windlass queues

      windlass queues pause mail
    """
    if deed is not Deed.LIST and not names:
        raise Stop(USAGE, f"which queues? For instance: windlass queues {deed} mail")

    async def work(desk: Desk) -> None:
        before = {} if deed is Deed.LIST else {one.name: one for one in await desk.app.queues.list()}
        if deed is Deed.PAUSE:
            await desk.app.queues.pause(*(names or ()))
        elif deed is Deed.RESUME:
            await desk.app.queues.resume(*(names or ()))
        for name in dict.fromkeys(names or ()) if deed is not Deed.LIST else ():
            was = name in before and before[name].paused_at is not None
            told = {"before": {"paused": was}, "after": {"paused": deed is Deed.PAUSE}}
            await desk.record(f"queue.{deed}", f"queue:{name}", **told)
        found = await desk.app.queues.list()
        _show(desk, [one for one in found if not names or one.name in names])
        missing = set(names or ()) - {one.name for one in found}
        if missing:
            raise Stop(NOT_FOUND, f"no queue is called {', '.join(sorted(missing))}")

    at_desk(ctx, work)


def _show(desk: Desk, found: Sequence[QueueInfo]) -> None:
    if desk.screen.as_json:
        for one in found:
            desk.screen.fact(queue_facts(one))
    elif not found:
        desk.screen.say("no queues yet: the first job makes its own")
    else:
        heads = ("queue", "waiting", "running", "oldest", "state", "largest depth")
        desk.screen.table(heads, [_row(one) for one in found])


def _row(one: QueueInfo) -> tuple[object, ...]:
    state = "paused" if one.paused_at is not None else "open"
    limit = "–" if one.max_depth is None else f"{one.max_depth:,}"
    return one.name, count(one.depth), count(one.processing), span(one.oldest), state, limit
