"""Dead letters: failed jobs by fingerprint, and running them again."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query

from windlass.client.searching import DeadSearch
from windlass.core.errors import SettingsError
from windlass.web.asking import App, Operator, Reader
from windlass.web.auditing import Audit
from windlass.web.shapes import Asked, BulkShape, DeadLettersShape, dead_letters_shape

router = APIRouter(tags=["dead letters"])


class Replay(Asked):
    """Which failed jobs are to run again, and how fast."""

    type: str | None = None
    queue: str | None = None
    fingerprint: str | None = None
    rate: Annotated[float | None, Query(gt=0)] = None
    """jobs a second"""
    limit: Annotated[int | None, Query(ge=1, le=1000)] = None
    dry_run: bool = False


@router.get("/queue/dead-letter", summary="Failed jobs by fingerprint")
async def dead_letters(app: App, caller: Reader, type: str | None = None, queue: str | None = None) -> DeadLettersShape:
    """What went wrong, grouped by what is alike in it."""
    words = {name: value for name, value in (("type", type), ("queue", queue)) if value is not None}
    return dead_letters_shape(await caller.dead_letters(app).groups(**cast("DeadSearch", words)))


@router.post("/queue/dead-letter/replay", summary="Run failed jobs again")
async def replay(body: Replay, app: App, caller: Operator, audit: Audit) -> BulkShape:
    """Enqueue the work of failed jobs again as new jobs, at most a thousand at once; `dryRun` only counts."""
    given = {"type": body.type, "queue": body.queue, "fingerprint": body.fingerprint}
    words = {name: value for name, value in given.items() if value is not None}
    if not words:
        raise SettingsError("no filter was given: say which by type, queue or fingerprint")
    room = caller.dead_letters(app)
    done = await room.replay_all(
        rate=body.rate,
        dry_run=body.dry_run,
        limit=body.limit or 1000,
        actor=caller.name,
        **cast("DeadSearch", words),
    )
    if not body.dry_run:
        await audit.record("bulk.replay", "operation:at-once", filter=words, done=done.replayed)
    left = done.matched - done.replayed
    return BulkShape(matched=done.matched, done=done.replayed, left=left, dry_run=done.dry_run, ids=list(done.ids))
