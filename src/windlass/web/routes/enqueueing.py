"""Enqueue: one job, or many."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, cast

from fastapi import APIRouter, Request, Response
from pydantic import Field

from windlass.client.options import Asked as Options
from windlass.core.errors import SettingsError
from windlass.web.asking import App, Enqueuer
from windlass.web.callers import Caller
from windlass.web.shapes import Asked, JobShape, job_shape

router = APIRouter(tags=["jobs"])
Seconds = Annotated[float, Field(ge=0, le=3_153_600_000)]


class Enqueue(Asked):
    """A job to be enqueued: its type, its arguments and what else is asked of it."""

    type: Annotated[str, Field(min_length=1, max_length=200, examples=["mail.send"])]
    payload: Annotated[dict[str, Any] | None, Field(examples=[{"to": "ada@example.org"}])] = None
    queue: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    priority: int | str | None = None
    delay: Seconds | None = None
    """seconds"""
    run_at: datetime | None = None
    expires: Seconds | None = None
    """seconds"""
    timeout: Seconds | None = None
    """seconds"""
    max_attempts: Annotated[int | None, Field(ge=1, le=1000)] = None
    unique_key: Annotated[str | None, Field(min_length=1, max_length=512)] = None
    on_conflict: str | None = None
    user_id: Annotated[str | None, Field(min_length=1, max_length=512)] = None
    """only administrators may name another than themselves"""
    entity_name: str | None = None
    entity_id: str | None = None
    correlation_id: str | None = None
    tags: Annotated[list[str] | None, Field(max_length=32)] = None
    metadata: dict[str, Any] | None = None

    def options(self, caller: Caller) -> dict[str, Any]:
        """What is asked for, in the words of an enqueue."""
        words = {"unique_key": "unique", "run_at": "at"}
        left_out = {"type", "payload", "user_id"}
        asked = {words.get(name, name): getattr(self, name) for name in self.model_fields_set - left_out}
        asked = {name: value for name, value in asked.items() if value is not None}
        if not caller.sees_all and "unique" in asked:
            asked["unique"] = own_key(caller, asked["unique"])
        user = self._user(caller)
        return asked | ({} if user is None else {"user": user})

    def _user(self, caller: Caller) -> str | None:
        if caller.sees_all:
            return self.user_id
        if self.user_id not in (None, caller.owner):
            raise SettingsError("userId names another user: leave it out, the job is yours")
        return caller.owner


def own_key(caller: Caller, key: str) -> str:
    """A unique key that a user gives is the user's own: what others hold can neither be met nor seen."""
    return f"{caller.owner}/{key}"


@router.post("/queue/enqueue", status_code=201, summary="Enqueue a job")
async def enqueue(body: Enqueue, request: Request, response: Response, app: App, caller: Enqueuer) -> JobShape:
    """Create a job. A duplicate is refused with 409 and the id of the job that is there."""
    asked = body.options(caller)
    caller.check_job(body.type, body.queue or await app.types.queue_of(body.type))
    handle = await app.enqueue(body.type, body.payload or {}, **cast("Options", {"on_conflict": "raise", **asked}))
    response.headers["Location"] = str(request.url_for("get_job", job_id=handle.id).path)
    return job_shape(await handle.job(), inside=caller.sees_all)
