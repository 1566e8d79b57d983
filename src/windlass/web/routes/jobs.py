"""Jobs: looking at them, and operating on single ones."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor

from windlass.core.draft import check_id
from windlass.core.errors import DuplicateJob, JobNotFound, SettingsError
from windlass.core.job import Job
from windlass.core.kept import read_kept
from windlass.core.sealing import masked_text
from windlass.stores.contract import Scope
from windlass.web.asking import App, Operator, Reader
from windlass.web.auditing import Audit
from windlass.web.belonging import met
from windlass.web.callers import Caller
from windlass.web.filtering import WhichInQuery
from windlass.web.given import Asked, Name, Why
from windlass.web.routing import Repeatable
from windlass.web.shapes import (
    ExplanationShape,
    HistoryShape,
    JobShape,
    PageShape,
    history_shape,
    job_shape,
    page_shape,
)

router = APIRouter(route_class=Repeatable, tags=["jobs"])


class _JobId(StringConvertor):
    """What stands for a job in a path: anything but the names of routes, so that these can be tried after it."""

    regex = r"(?!(?:enqueue|bulk|dead-letter|stats|export)(?:/|$))[^/]+"


register_url_convertor("windlass_job", _JobId())
ONE = "/queue/{job_id:windlass_job}"


class Wanted(WhichInQuery):
    """Which jobs, and which page of them."""

    limit: Annotated[int, Query(ge=1, le=1000)] = 50
    cursor: str | None = None
    oldest_first: bool = False


@router.get("/queue", summary="List jobs")
async def find(wanted: Annotated[Wanted, Query()], app: App, caller: Reader) -> PageShape:
    """Jobs that match, newest first, by pages that stay good while jobs come and go."""
    room = caller.jobs(app)
    page = await room.find(limit=wanted.limit, after=wanted.cursor, oldest_first=wanted.oldest_first, **wanted.search())
    return page_shape(page, inside=caller.sees_all)


@router.get(ONE, name="get_job", summary="One job", responses={304: {"description": "Nothing has changed"}})
async def get(job_id: str, request: Request, response: Response, app: App, caller: Reader) -> JobShape | None:
    """The job. With `If-None-Match` and the `ETag` of an earlier answer it is 304 while nothing has changed."""
    job = await _job(caller, app, job_id)
    tag = etag(job)
    response.headers["ETag"] = tag
    if _is_known(tag, request.headers.getlist("if-none-match")):
        response.status_code = 304
        return None
    return job_shape(job, inside=caller.sees_all)


@router.get(f"{ONE}/history", summary="What happened to a job")
async def history(job_id: str, app: App, caller: Reader) -> HistoryShape:
    """Every move of the job, oldest first."""
    return history_shape(await caller.jobs(app).look(_id(job_id)), inside=caller.sees_all)


@router.get(f"{ONE}/explain", summary="Why a job is where it is")
async def explain(job_id: str, app: App, caller: Reader) -> ExplanationShape:
    """One true sentence on why the job is not running, or where it runs."""
    told = await caller.jobs(app).explain(_id(job_id))
    return ExplanationShape(
        job_id=told.job_id,
        status=told.status.value,
        why=told.why.value,
        text=told.text,
        since=told.since,
        until=told.until,
    )


Part = Literal["payload", "result", "metadata", "kept"]


@router.get(
    f"{ONE}/parts/{{part}}",
    summary="A part of a job, as a file",
    response_class=Response,
    responses={200: {"description": "It, as JSON", "content": {"application/json": {"schema": {}}}}},
)
async def part(job_id: str, part: Part, app: App, caller: Reader) -> Response:
    """What a job was given, returned or keeps, digit by digit as it is stored, and `***` in place of secrets."""
    job = await _job(caller, app, job_id)
    headers = {"Content-Disposition": f'attachment; filename="job-{job.id}-{part}.json"'}
    return Response(_text(job, part, caller), media_type="application/json", headers=headers)


def _text(job: Job, part: Part, caller: Caller) -> str:
    if part == "kept":
        # What its steps keep is its handler's own, and not told to users elsewhere either.
        members = read_kept(job.kept_json) if caller.sees_all else {}
        return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members.items()) + "}"
    found = {"payload": job.payload_json, "result": job.result_json, "metadata": job.metadata_json}[part]
    return "null" if found is None else masked_text(found)


class Reason(Asked):
    """Why an operator does it; the job's history tells."""

    reason: Why | None = None


class Signal(Asked):
    """A value for a job that waits for it, or will."""

    name: Name
    value: Any = None


@router.post(f"{ONE}/retry", summary="Queue a job again")
async def retry(job_id: str, app: App, caller: Operator, audit: Audit, body: Reason | None = None) -> JobShape:
    """Queue a finished, scheduled or retrying job now; a finished one with fresh attempts."""
    before = await _meant(caller, app, job_id)
    await caller.jobs(app).retry(before.id, actor=caller.name, reason=_reason(body))
    return await _operated("retry", before, app, caller, audit, body)


@router.post(
    f"{ONE}/cancel",
    summary="Cancel a job",
    responses={202: {"model": JobShape, "description": "Its worker was asked to stop it"}},
)
async def cancel(
    job_id: str, response: Response, app: App, caller: Operator, audit: Audit, body: Reason | None = None
) -> JobShape:
    """Cancel a waiting job now; ask the worker of a running one to stop it (202)."""
    before = await _meant(caller, app, job_id)
    done = await caller.jobs(app).cancel(before.id, actor=caller.name, reason=_reason(body))
    response.status_code = 200 if done else 202
    return await _operated("cancel", before, app, caller, audit, body)


@router.post(f"{ONE}/signal", summary="Send a job a signal")
async def signal(job_id: str, body: Signal, app: App, caller: Operator, audit: Audit) -> JobShape:
    """Give a job the value that it waits for, or keep it until the job asks. The first of a name counts."""
    before = await _meant(caller, app, job_id)
    await caller.jobs(app).signal(before.id, body.name, body.value, actor=caller.name)
    return await _operated("signal", before, app, caller, audit, signal=body.name)


class Again(Asked):
    """With what a job's work is done again."""

    payload: dict[str, Any] | None = None
    """in place of its own, for administrators alone; `***` stands for the secret that was there before"""


@router.post(
    f"{ONE}/replay",
    name="replay_job",
    status_code=201,
    summary="Do a finished job's work again as a new job",
    responses={200: {"model": JobShape, "description": "It was done already: the job that does it"}},
)
async def replay(
    job_id: str,
    request: Request,
    response: Response,
    app: App,
    caller: Operator,
    audit: Audit,
    body: Again | None = None,
) -> JobShape:
    """Enqueue it under the same keys and limit, with its own payload or another. Twice for one ending is once."""
    before = await _job(caller, app, job_id)
    caller.check_job(before.type, before.queue)
    payload = None if body is None else body.payload
    if payload is not None:
        caller.check(Scope.ADMIN)
    handle = await met(caller, app, await caller.jobs(app).replay(before.id, payload, actor=caller.name))
    if isinstance(handle, Exception):
        raise handle
    made = await handle.job()
    if made.replay_of != before.id:
        raise DuplicateJob(made.id, "unique key of the job")
    response.headers["Location"] = str(request.url_for("get_job", job_id=made.id).path)
    if handle.created:
        another = {} if payload is None else {"payload": "another"}  # what it holds is nobody else's
        await audit.record("job.replay", f"job:{before.id}", job=made.id, **another)
    else:
        response.status_code = 200
    return job_shape(made, inside=caller.sees_all)


@router.delete(ONE, status_code=204, summary="Delete a job")
async def delete(job_id: str, app: App, caller: Operator, audit: Audit) -> None:
    """Remove a job that is not running, with its history."""
    before = await _meant(caller, app, job_id)
    await caller.jobs(app).delete(before.id, actor=caller.name)
    await audit.record("job.delete", f"job:{before.id}", before=_audited(before))


async def _operated(
    deed: str, before: Job, app: App, caller: Caller, audit: Audit, body: Reason | None = None, **more: str
) -> JobShape:
    """The job as it is now, once what was done to it is in the audit trail."""
    after = await _job(caller, app, before.id)
    reason = _reason(body)
    told = {"reason": reason} if reason else {}
    await audit.record(
        f"job.{deed}", f"job:{before.id}", before=_audited(before), after=_audited(after), **told, **more
    )
    return job_shape(after, inside=caller.sees_all)


def _audited(job: Job) -> dict[str, str]:
    return {"status": job.status.value, "type": job.type, "queue": job.queue}


def etag(job: Job) -> str:
    """Changes with everything of a job that is shown."""
    progress = None if job.progress is None else job.progress.text()
    shown = (job.id, job.status, job.updated_at, job.lease_token, job.attempts, progress, job.cancel_requested_at)
    return f'"{hashlib.sha256(repr(shown).encode()).hexdigest()[:32]}"'


def _is_known(tag: str, given: list[str]) -> bool:
    """Whether a client has it: one of those it names, on their way perhaps made weak, or any at all."""
    known = [one.strip().removeprefix("W/") for line in given for one in line.split(",")]
    return tag in known or known == ["*"]


def _id(job_id: str) -> str:
    try:
        return check_id(job_id)
    except SettingsError:
        raise JobNotFound(job_id[:80]) from None  # what is no id names no job


async def _job(caller: Caller, app: App, job_id: str) -> Job:
    return await caller.jobs(app).get(_id(job_id))


async def _meant(caller: Caller, app: App, job_id: str) -> Job:
    """The job that an order is for, if the key is good for that."""
    job = await _job(caller, app, job_id)
    caller.check_limits(job.type, job.queue)
    return job


def _reason(body: Reason | None) -> str | None:
    return None if body is None else body.reason
