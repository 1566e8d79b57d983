"""The filter options that looking and operating share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.words import entity
from windlass.core.errors import SettingsError
from windlass.core.status import Status

if TYPE_CHECKING:
    from windlass.client.searching import Search

StatusOption = Annotated[str | None, typer.Option("--status", "-s", help=f"One of {', '.join(Status)}.")]
TypeOption = Annotated[str | None, typer.Option("--type", "-t", help="The handler's name.")]
QueueOption = Annotated[str | None, typer.Option("--queue", "-q", help="The queue.")]
UserOption = Annotated[str | None, typer.Option("--user", help="Whose jobs.")]
EntityOption = Annotated[str | None, typer.Option("--entity", metavar="NAME:ID", help="What they are about.")]
CorrelationOption = Annotated[str | None, typer.Option("--correlation", metavar="ID", help="What they belong to.")]


def search(
    *,
    status: str | None = None,
    type: str | None = None,
    queue: str | None = None,
    user: str | None = None,
    about: str | None = None,
    correlation: str | None = None,
) -> Search:
    """What was given, checked."""
    if status is not None and status not in Status.__members__.values():
        raise SettingsError(f"--status is {status!r}: expected one of {', '.join(Status)}")
    given: dict[str, Any] = {
        "status": status,
        "type": type,
        "queue": queue,
        "user": user,
        "entity": entity(about),
        "correlation": correlation,
    }
    found: Search = {}
    # The names are those of the parameters, which a checker cannot follow into the dictionary.
    found.update({name: one for name, one in given.items() if one is not None})  # type: ignore[typeddict-item]  # by name
    return found
