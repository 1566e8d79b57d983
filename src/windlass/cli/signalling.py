"""`signal`: send a job the signal that it waits for."""

from __future__ import annotations

from typing import Annotated

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.ids import whole_id
from windlass.cli.words import value as read_value


def signal(
    ctx: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its beginning.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The signal's name.")],
    value: Annotated[
        str | None, typer.Argument(metavar="[VALUE]", help="Its value: JSON, or text if it is not JSON.")
    ] = None,
) -> None:
    """Send a job the signal that it waits for, or will: of one name the first counts.

    Example: windlass signal 0190a3c4 approved '{"by": "eve"}'
    """

    async def work(desk: Desk) -> None:
        job_id = await whole_id(desk, id)
        freed = await desk.app.jobs.signal(job_id, name, None if value is None else read_value(value), actor=desk.actor)
        await desk.record("job.signal", f"job:{job_id}", signal=name)
        if desk.screen.as_json:
            desk.screen.fact({"id": job_id, "signal": name, "freed": freed})
        else:
            then = "it waited for it and is queued" if freed else "kept until it asks for it"
            desk.screen.say(f"{job_id}  {name}: {then}")

    at_desk(ctx, work)
