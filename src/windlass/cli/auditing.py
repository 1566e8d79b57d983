"""`audit`: who did what to what, on the command line and over HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.facts import at
from windlass.cli.filters import moment
from windlass.core.wording import clock
from windlass.observability.plain import short

if TYPE_CHECKING:
    from windlass.stores.contract import AuditEntry

_PAGE = 200
_WIDEST = 80
"""characters of details in a table"""


def audit(
    ctx: typer.Context,
    actor: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Only what this one did.")] = None,
    action: Annotated[str | None, typer.Option(metavar="NAME", help="Only this, such as queue.pause.")] = None,
    object_: Annotated[
        str | None, typer.Option("--object", metavar="NAME", help="Only what was done to it, such as queue:mail.")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="From then on; 2h is two hours ago.")] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Before then.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many, newest first.", min=1)] = 50,
) -> None:
    """Show what operators did, on the command line and over HTTP: when, who, what, to what and from where.

    With --json each entry has its details whole: what was before and after, by which request.

    For instance:

      windlass audit --since 2h

      windlass --json audit --by key:5f0c1e9ab2d4 --object queue:mail
    """
    first = None if since is None else moment(since, "--since")
    last = None if until is None else moment(until, "--until")

    async def work(desk: Desk) -> None:
        found: list[AuditEntry] = []
        after: str | None = None
        while len(found) < limit:
            page = await desk.app.audit.list(
                actor=actor,
                action=action,
                object_=object_,
                since=first,
                until=last,
                limit=min(_PAGE, limit - len(found)),
                after=after,
            )
            found += page.entries
            after = page.next
            if after is None:
                break
        _show(desk, found, more=after is not None)

    at_desk(ctx, work)


def _show(desk: Desk, found: list[AuditEntry], *, more: bool) -> None:
    if desk.screen.as_json:
        for entry in found:
            desk.screen.fact(_facts(entry))
    elif not found:
        desk.screen.say("no entries")
    else:
        desk.screen.table(("when", "who", "what", "to what", "from", "details"), [_row(entry) for entry in found])
        if more:
            desk.screen.say("there are more: see --limit, or --since and --until")


def _facts(entry: AuditEntry) -> dict[str, Any]:
    same = {name: getattr(entry, name) for name in ("id", "actor", "action", "object", "origin")}
    return {**same, "at": at(entry.at), "details": _details(entry)}


def _row(entry: AuditEntry) -> tuple[object, ...]:
    details = _details(entry)
    told = "–" if details is None else short(json.dumps(details, ensure_ascii=False), _WIDEST)
    when = "–" if entry.at is None else clock(entry.at)
    return when, entry.actor, entry.action, entry.object, entry.origin or "–", told


def _details(entry: AuditEntry) -> Any:
    return None if entry.details_json is None else json.loads(entry.details_json)
