"""Dead letters: failed jobs by fingerprint, and running them again."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict

from windlass.client.searching import DeadSearch, Search
from windlass.core.status import Status
from windlass.web.asking import App, Operator, Reader
from windlass.web.given import Asked, Fingerprint, Key, Name, given_one_of
from windlass.web.routes.bulk import Limit, Operating, Rate, Reason
from windlass.web.routing import Repeatable
from windlass.web.shapes import (
    DeadLettersShape,
    OperationShape,
    RehearsalShape,
    dead_letters_shape,
    rehearsal_shape,
)

router = APIRouter(route_class=Repeatable, tags=["dead letters"])


REHEARSED: dict[int | str, dict[str, Any]] = {
    200: {"model": RehearsalShape, "description": "With `dryRun`: how many it would be, and which it would leave out"}
}


class Replay(Asked):
    """Which failed jobs are to run again, and how fast."""

    model_config = ConfigDict(json_schema_extra=given_one_of("type", "queue", "fingerprint"))

    type: Name | None = None
    queue: Key | None = None
    fingerprint: Fingerprint | None = None
    rate: Rate = None
    """jobs a second"""
    limit: Limit = None
    reason: Reason = None
    dry_run: bool = False


@router.get("/queue/dead-letter", summary="Failed jobs by fingerprint")
async def dead_letters(
    app: App,
    caller: Reader,
    type: Name | None = None,
    queue: Key | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> DeadLettersShape:
    """What went wrong, grouped by what is alike in it, and the newest failed jobs themselves."""
    words = {name: value for name, value in (("type", type), ("queue", queue)) if value is not None}
    groups = await caller.dead_letters(app).groups(**cast("DeadSearch", words))
    page = await caller.jobs(app).find(limit=limit, **cast("Search", {**words, "status": Status.FAILED}))
    return dead_letters_shape(groups, page, inside=caller.sees_all)


@router.post("/queue/dead-letter/replay", status_code=202, responses=REHEARSED, summary="Run failed jobs again")
async def replay(
    body: Replay, response: Response, app: App, caller: Operator, operating: Operating
) -> OperationShape | RehearsalShape:
    """Enqueue the work of failed jobs again as new jobs, as `POST /queue/bulk` does.

    `dryRun` only counts, and of the newest 200 says which would be left out and why.
    """
    given = {"type": body.type, "queue": body.queue, "fingerprint": body.fingerprint, "limit": body.limit}
    words = {name: value for name, value in given.items() if value is not None}
    if body.dry_run:
        told = await operating.count("replay", words, response)
        found = await caller.dead_letters(app).rehearse(**cast("Any", words))
        return rehearsal_shape(replace(found, matched=told.matched, exact=told.exact))
    return await operating.begin("replay", words, response, rate=body.rate, reason=body.reason)
