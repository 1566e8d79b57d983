"""Many: jobs that are enqueued together, each judged by itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast

from fastapi import APIRouter, Request
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from windlass.client.client import BULK
from windlass.client.many import ByName
from windlass.core.errors import DuplicateJob, WindlassError
from windlass.web.asking import App, Enqueuer, limiter_of
from windlass.web.belonging import met
from windlass.web.given import Asked
from windlass.web.mistakes import place_of_mistake
from windlass.web.problems import INVALID, Refused, problem_of
from windlass.web.routes.enqueueing import Enqueue, asked_of, place_of
from windlass.web.routing import Repeatable, attempt_of
from windlass.web.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.handle import Handle

router = APIRouter(route_class=Repeatable, tags=["jobs"])
MOST_AT_ONCE = BULK
_MOST_TOLD = 5  # mistakes in one item that are told


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
            asked = await asked_of(item, app, caller, queues)
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
        place = place_of(request, found.existing)
        return VerdictShape(index=index, verdict="duplicate", id=found.existing, location=place)
    if isinstance(found, Exception):
        return _refused(index, found)
    place = place_of(request, found.id)
    return VerdictShape(index=index, verdict="created" if found.created else "existing", id=found.id, location=place)


def _refused(index: int, error: Exception) -> VerdictShape:
    _, members, _ = problem_of(error, "")
    del members["requestId"]  # that of the whole
    return VerdictShape(index=index, verdict="refused", problem=members)


def _mistakes(error: ValidationError) -> str:
    """Where and what, without what was sent: that may be a secret."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    places = [place_of_mistake(one["loc"]) for one in found[:_MOST_TOLD]]
    return "; ".join(f"{at or 'the item'}: {one['msg'][:300]}" for at, one in zip(places, found, strict=False))
