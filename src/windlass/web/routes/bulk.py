"""Orders for many jobs by a filter: counted, then carried out by a job of their own that can be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.encoders import jsonable_encoder
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from windlass.client.operations import MOST_NAMED
from windlass.web.asking import App, Operator
from windlass.web.auditing import Audit
from windlass.web.filtering import NOT_ONLY_FAILED, JobId, Which
from windlass.web.given import GIVEN, INTEGRAL, NOT_GIVEN, Asked, Why, both, neither, never
from windlass.web.routing import Repeatable, id_of
from windlass.web.shapes import OperationShape

if TYPE_CHECKING:
    from collections.abc import Mapping

router = APIRouter(route_class=Repeatable, tags=["jobs"])
Rate = Annotated[float, Field(gt=0, le=1_000_000)] | None
Limit = Annotated[int, Field(ge=1, le=2**31 - 1), INTEGRAL] | None
Reason = Why | None


COUNTED: dict[int | str, dict[str, Any]] = {
    200: {"model": OperationShape, "description": "With `dryRun`: how many it would be"}
}


class Operates:
    """Counts and begins operations for who asks."""

    def __init__(self, request: Request, app: App, caller: Operator, audit: Audit) -> None:
        self._request, self._app, self._caller, self._audit = request, app, caller, audit
        self._room = caller.operations(app)

    async def count(self, deed: str, words: Mapping[str, Any], response: Response) -> OperationShape:
        """How many it would be."""
        told = await self._room.count(deed, grants=self._caller.grants, **words)
        response.status_code = 200
        return OperationShape(id=None, matched=told.of, exact=told.exact, dry_run=True)

    async def begin(
        self, deed: str, words: Mapping[str, Any], response: Response, *, rate: float | None, reason: str | None
    ) -> OperationShape:
        """Begin it, see to it that it runs, and write down who asked for what."""
        caller, audit = self._caller, self._audit
        begun = await self._room.begin(
            deed,
            actor=caller.name,
            grants=caller.grants,
            rate=rate,
            reason=reason,
            origin=audit.origin,
            request=audit.request_id,
            job_id=id_of(self._request),
            **words,
        )
        self._app.own.need()
        told = {name: jsonable_encoder(value) for name, value in words.items() if value is not None}
        id_, matched = begun.handle.id, begun.told.of
        await audit.record(f"bulk.{deed}", f"operation:{id_}", filter=told, matched=matched, rate=rate, reason=reason)
        response.headers["Location"] = str(self._request.url_for("get_job", job_id=id_).path)
        return OperationShape(id=id_, matched=matched, exact=begun.told.exact, dry_run=False)


Operating = Annotated[Operates, Depends(Operates)]


_NO_WORDS = neither(*(to_camel(name) for name in Which.model_fields))
_NO_FILTER = {"properties": {"everything": {"const": False}, "ids": NOT_GIVEN, "filter": _NO_WORDS}}
_NAMED = {"required": ["ids"], "properties": {"ids": GIVEN, "action": {"const": "replay"}}}
_TWICE = {"required": ["ids", "filter"], "properties": {"ids": GIVEN, "filter": {"not": _NO_WORDS}}}
_ALL = {"required": ["ids", "everything"], "properties": {"ids": GIVEN, "everything": {"const": True}}}
_BOUND = both("ids", "limit")
_RATE = {"required": ["rate"], "properties": {"rate": GIVEN, "action": {"not": {"const": "replay"}}}}
_REPLAY = {"required": ["filter"], "properties": {"action": {"const": "replay"}, "filter": NOT_ONLY_FAILED}}


class Order(Asked):
    """What is to be done to which jobs."""

    model_config = ConfigDict(json_schema_extra=never(_NO_FILTER, _NAMED, _TWICE, _ALL, _BOUND, _RATE, _REPLAY))

    action: Literal["retry", "cancel", "delete", "replay"]
    filter: Annotated[Which, Field(default_factory=Which)]
    """in the words by which jobs are listed"""
    ids: Annotated[list[JobId], Field(min_length=1, max_length=MOST_NAMED)] | None = None
    """these instead; not for a replay"""
    everything: bool = False
    """needed where no filter is given"""
    limit: Limit = None
    rate: Rate = None
    """replays by the second"""
    reason: Reason = None
    """goes into the jobs' history"""
    dry_run: bool = False


@router.post("/queue/bulk", status_code=202, responses=COUNTED, summary="Retry, cancel, delete or replay many jobs")
async def bulk(body: Order, response: Response, operating: Operating) -> OperationShape:
    """Count what matches and begin: a job at `Location` tells the progress, and in the end what became of each kind.

    Jobs that come later are left alone. At most five such orders of one owner are under way at a time.
    """
    named = {} if body.ids is None else {"ids": body.ids}
    words = {"limit": body.limit, "everything": body.everything, **named, **body.filter.search()}
    if body.dry_run:
        return await operating.count(body.action, words, response)
    return await operating.begin(body.action, words, response, rate=body.rate, reason=body.reason)
