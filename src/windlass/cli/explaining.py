"""`explain`: one true sentence on why a job is not running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.facts import at
from windlass.cli.ids import whole_id

if TYPE_CHECKING:
    from windlass.client.explaining import Explanation


def explain(
    ctx: typer.Context, id: Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its beginning.")]
) -> None:
    """Say why a job is not running, in one sentence."""

    async def work(desk: Desk) -> None:
        found = await desk.app.jobs.explain(await whole_id(desk, id))
        if desk.screen.as_json:
            desk.screen.fact(_facts(found))
        else:
            desk.screen.line(found.text)

    at_desk(ctx, work)


def _facts(found: Explanation) -> dict[str, Any]:
    return {
        "id": found.job_id,
        "status": found.status.value,
        "why": found.why.value,
        "sentence": found.text,
        "since": at(found.since),
        "until": at(found.until),
        "worker": found.worker,
        "holders": [one.id for one in found.holders],
        "ahead": found.ahead,
        "exact": found.exact,
    }
