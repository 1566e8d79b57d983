"""Enqueue: one job, or many."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast

from fastapi import APIRouter, Request, Response
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from windlass.client.client import BULK
from windlass.client.many import ByName
from windlass.client.options import Asked as Options
from windlass.core.errors import DuplicateJob, SettingsError, WindlassError
from windlass.web.asking import App, Enqueuer, limiter_of
from windlass.web.belonging import check_conflict, met, own_key
from windlass.web.callers import Caller
from windlass.web.given import INTEGRAL, Asked, Key, Moment, Name, Priority, Span, Wait
from windlass.web.problems import INVALID, Refused, problem_of
from windlass.web.routing import Repeatable, attempt_of, id_of
from windlass.web.shapes import JobShape, Shape, job_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.handle import Handle

router = APIRouter(route_class=Repeatable, tags=["jobs"])
MOST_AT_ONCE = BULK
_MOST_TOLD = 5  # mistakes in one item that are told


class Enqueue(Asked):
    """A job to be enqueued: its type, its arguments and what else is asked of it."""

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
        user = self._user(caller)
        return asked | ({} if user is None else {"user": user})

    def _user(self, caller: Caller) -> str | None:
        if caller.sees_all:
            return self.user_id
        if self.user_id not in (None, caller.owner):
            raise SettingsError("userId names another user: leave it out, the job is yours")
        return caller.owner


@router.post("/queue/enqueue", status_code=201, summary="Enqueue a job")
async def enqueue(body: Enqueue, request: Request, response: Response, app: App, caller: Enqueuer) -> JobShape:
    """Create a job. A duplicate is refused with 409 and the id of the job that is there."""
    asked = await _asked(body, app, caller, {})
    await limiter_of(request).check_quota(app, caller)
    found = await met(caller, app, await _enqueued(body, app, asked, id_of(request)))
    if isinstance(found, Exception):
        raise found
    response.headers["Location"] = _place(request, found.id)
    return job_shape(await found.job(), inside=caller.sees_all)


async def _enqueued(body: Enqueue, app: App, asked: Options, job_id: str | None) -> Handle[Any] | WindlassError:
    if job_id is not None:
        [made] = await app.enqueue_each([ByName(body.type, body.payload or {}, asked, job_id)])
        return made
    try:
        return await app.enqueue(body.type, body.payload or {}, **asked)
    except DuplicateJob as error:
        return error


async def _asked(body: Enqueue, app: App, caller: Caller, queues: dict[str, str]) -> Options:
    """The options of a job that the caller may enqueue. Of each type it is asked once where its jobs go."""
    queue = body.queue or queues.get(body.type)
    if queue is None:
        queue = queues[body.type] = await app.types.queue_of(body.type)
    caller.check_job(body.type, queue)
    options = body.options(caller)
    check_conflict(caller, options)
    return cast("Options", {"on_conflict": "raise", **options})


def _place(request: Request, job_id: str) -> str:
    # Beside the path that was asked: to look for it among all routes costs as much as half an enqueue.
    return request.url.path.removesuffix("/many").removesuffix("enqueue") + job_id


class Mistaken(NamedTuple):
    """An item that is no job to be enqueued, and why."""

    error: ValidationError


def _or_mistaken(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError as error:
        return Mistaken(error)


Item = Annotated[Enqueue, WrapValidator(_or_mistaken)]


class EnqueueMany(Asked):
    """Jobs to be enqueued, each with everything that one may ask for."""

    jobs: Annotated[list[Item], Field(min_length=1, max_length=MOST_AT_ONCE)]


class VerdictShape(Shape):
    """What became of one item."""

    index: int
    """its place in the request, from 0"""
    verdict: Literal["created", "existing", "duplicate", "refused"]
    """`existing` where `onConflict` has asked for the job that is there, or for that to be replaced"""
    id: str | None = None
    """of the job; of one that was not created that of the job that is there"""
    location: str | None = None
    problem: dict[str, Any] | None = None
    """why it was refused, as a request of its own would be told"""


class ManyShape(Shape):
    """What became of each, in the order of the request."""

    items: list[VerdictShape]
    created: int
    existing: int
    duplicates: int
    refused: int


@router.post("/queue/enqueue/many", summary="Enqueue many jobs")
async def enqueue_many(body: EnqueueMany, request: Request, app: App, caller: Enqueuer) -> ManyShape:
    """Create up to a thousand jobs, each by itself: one that cannot be created keeps no other from it.

    All that can be are written in one step. Every item is checked as a request of its own would be: its type and queue
    against the key, its owner, its payload.
    """
    attempt = attempt_of(request)
    ids: Sequence[str | None] = [None] * len(body.jobs) if attempt is None else attempt.ids(len(body.jobs))
    wanted: dict[int, ByName] = {}
    told: dict[int, VerdictShape] = {}
    queues: dict[str, str] = {}
    for index, (item, job_id) in enumerate(zip(cast("list[Enqueue | Mistaken]", body.jobs), ids, strict=True)):
        try:
            if isinstance(item, Mistaken):
                raise Refused(INVALID, _mistakes(item.error))
            asked = await _asked(item, app, caller, queues)
        except (Refused, WindlassError) as error:
            told[index] = _refused(index, error)
        else:
            wanted[index] = ByName(item.type, item.payload or {}, asked, job_id)
    await limiter_of(request).check_quota(app, caller, len(wanted))
    found = await app.enqueue_each(wanted.values()) if wanted else []
    for index, one in zip(wanted, found, strict=True):
        told[index] = _verdict(request, index, await met(caller, app, one))
    items = [told[index] for index in sorted(told)]
    counts = Counter(item.verdict for item in items)
    return ManyShape(
        items=items,
        created=counts["created"],
        existing=counts["existing"],
        duplicates=counts["duplicate"],
        refused=counts["refused"],
    )


def _verdict(request: Request, index: int, found: Handle[Any] | Exception) -> VerdictShape:
    if isinstance(found, DuplicateJob):
        place = _place(request, found.existing)
        return VerdictShape(index=index, verdict="duplicate", id=found.existing, location=place)
    if isinstance(found, Exception):
        return _refused(index, found)
    place = _place(request, found.id)
    return VerdictShape(index=index, verdict="created" if found.created else "existing", id=found.id, location=place)


def _refused(index: int, error: Exception) -> VerdictShape:
    _, members, _ = problem_of(error, "")
    del members["requestId"]  # that of the whole
    return VerdictShape(index=index, verdict="refused", problem=members)


def _mistakes(error: ValidationError) -> str:
    """Where and what, without what was sent: that may be a secret."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    places = [".".join(str(part) for part in one["loc"])[:200] for one in found[:_MOST_TOLD]]
    return "; ".join(f"{at or 'the item'}: {one['msg'][:300]}" for at, one in zip(places, found, strict=False))
