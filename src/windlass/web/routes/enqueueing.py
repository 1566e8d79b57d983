"""Enqueue: one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field

from windlass.client.many import ByName
from windlass.client.options import Asked as Options
from windlass.core.errors import DuplicateJob, WindlassError
from windlass.web.asking import App, Enqueuer, limiter_of
from windlass.web.belonging import check_conflict, met, own_key
from windlass.web.callers import Caller
from windlass.web.given import (
    HALF_AN_ENTITY,
    INTEGRAL,
    Asked,
    Key,
    Moment,
    Name,
    Priority,
    Span,
    Wait,
    both,
    never,
)
from windlass.web.routing import Repeatable, id_of
from windlass.web.shapes import JobShape, job_shape

if TYPE_CHECKING:
    from windlass.client.handle import Handle

router = APIRouter(route_class=Repeatable, tags=["jobs"])


class Enqueue(Asked):
    """A job to be enqueued: its type, its arguments and what else is asked of it."""

    model_config = ConfigDict(json_schema_extra=never(both("delay", "runAt"), *HALF_AN_ENTITY))

    type: Annotated[Name, Field(examples=["mail.send"])]
    payload: Annotated[dict[str, Any] | None, Field(examples=[{"to": "ada@example.org"}])] = None
    queue: Name | None = None
    priority: Priority | None = None
    delay: Wait | None = None
    """seconds"""
    run_at: Moment | None = None
    expires: Span | None = None
    """seconds"""
    timeout: Span | None = None
    """seconds"""
    max_attempts: Annotated[int, Field(ge=1, le=1000), INTEGRAL] | None = None
    unique_key: Key | None = None
    on_conflict: Literal["existing", "raise", "replace"] | None = None
    user_id: Key | None = None
    """only administrators may name another than themselves"""
    entity_name: Key | None = None
    entity_id: Key | None = None
    correlation_id: Key | None = None
    tags: Annotated[list[Name] | None, Field(max_length=32)] = None
    metadata: dict[str, Any] | None = None

    def options(self, caller: Caller) -> dict[str, Any]:
        """What is asked for, in the words of an enqueue."""
        words = {"unique_key": "unique", "run_at": "at"}
        left_out = {"type", "payload", "user_id"}
        asked = {words.get(name, name): getattr(self, name) for name in self.model_fields_set - left_out}
        asked = {name: value for name, value in asked.items() if value is not None}
        if not caller.sees_all and "unique" in asked:
            asked["unique"] = own_key(caller, asked["unique"])
        user = caller.user_of(self.user_id)
        return asked | ({} if user is None else {"user": user})


@router.post("/queue/enqueue", status_code=201, summary="Enqueue a job")
async def enqueue(body: Enqueue, request: Request, response: Response, app: App, caller: Enqueuer) -> JobShape:
    """Create a job. A duplicate is refused with 409 and the id of the job that is there."""
    asked = await asked_of(body, app, caller, {})
    await limiter_of(request).check_quota(app, caller)
    found = await met(caller, app, await _enqueued(body, app, asked, id_of(request)))
    if isinstance(found, Exception):
        raise found
    response.headers["Location"] = place_of(request, found.id)
    return job_shape(await found.job(), inside=caller.sees_all)


async def _enqueued(body: Enqueue, app: App, asked: Options, job_id: str | None) -> Handle[Any] | WindlassError:
    if job_id is not None:
        [made] = await app.enqueue_each([ByName(body.type, body.payload or {}, asked, job_id)])
        return made
    try:
        return await app.enqueue(body.type, body.payload or {}, **asked)
    except DuplicateJob as error:
        return error


async def asked_of(body: Enqueue, app: App, caller: Caller, queues: dict[str, str]) -> Options:
    """The options of a job that the caller may enqueue, and whose payload is as the document says.

    Of each type it is asked once where its jobs go.
    """
    queue = body.queue or queues.get(body.type)
    if queue is None:
        queue = queues[body.type] = await app.types.queue_of(body.type)
    caller.check_job(body.type, queue)
    app.types.check_payload(body.type, body.payload or {})
    options = body.options(caller)
    check_conflict(caller, options)
    return cast("Options", {"on_conflict": "raise", **options})


def place_of(request: Request, job_id: str) -> str:
    """Where a job that was enqueued is found."""
    # Beside the path that was asked: to look for it among all routes costs as much as half an enqueue.
    return request.url.path.removesuffix("/many").removesuffix("enqueue") + job_id
