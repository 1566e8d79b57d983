"""Routes: send a resume, see how it stands, generate tailored ones of it, count, forget."""

from __future__ import annotations

import base64
import time
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile

from windlass import JobNotFound, Status
from windlass.apps.resumes.extraction.refused import DocumentRefused
from windlass.apps.resumes.files import FileGone
from windlass.apps.resumes.generating import generate
from windlass.apps.resumes.resumes import TYPE, Busy, Resumes, Seen, Sent
from windlass.apps.resumes.shapes import (
    UUID,
    BatchShape,
    ForgottenShape,
    GeneratedShape,
    GenerateResume,
    HeadShape,
    ListShape,
    LiveCountsShape,
    QueueStatsShape,
    ResumeShape,
    StatusShape,
    UploadedShape,
    forgotten_shape,
    head_of,
    resume_shape,
    text_of,
    uploaded_shape,
)
from windlass.apps.resumes.standing import ENDED, Standing, standing_of_job
from windlass.apps.uploads.names import Accepted
from windlass.apps.uploads.receiving import AROUND, FILE_REFUSED, name_of, pieces
from windlass.web import (
    NOT_FOUND,
    TOO_LARGE,
    App,
    Caller,
    Enqueuer,
    Kind,
    Operator,
    Reader,
    Refused,
    Route,
    Routes,
    Upload,
    Uploading,
)

BASE = "/api/v1/resumes"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
# What a document is, is for who reads it to say: in a child, by its content, and with a reason.
DOCUMENTS = Accepted(
    begins={".pdf": (), ".docx": (), ".txt": ()},
    media=frozenset({"application/pdf", DOCX, "text/plain", "application/octet-stream", "application/x-pdf"}),
    what="a PDF, DOCX or TXT file",
)
NOT_COMPLETED = Kind(400, "not-completed", "The resume is not processed yet")
BUSY = Kind(503, "busy", "As many resumes are being processed as may", retry_after=5)
MOST_AT_ONCE = 20
"""files of one request"""
_BATCH = 5
"""times the largest file: the bytes of all of them"""
_DAY = timedelta(hours=24)
_COUNTS_AGE = 2.0
_LOOKED_AT = 200
"""running jobs whose time so far is averaged"""
_DONE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The same file was sent before", "model": UploadedShape},
    201: {"description": "It was processed at once", "model": UploadedShape},
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The tailored resume; with `download` the file itself", "model": GeneratedShape}
}
_RAW: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file", "content": {"application/octet-stream": {"schema": {"type": "string"}}}}
}
Id = Annotated[str, Query()]


def routes(resumes: Resumes) -> Routes:
    """All of them."""
    router = APIRouter(route_class=Route, tags=["resumes"])
    files = APIRouter(route_class=Uploading, tags=["resumes"])
    _send(files, resumes)
    _generate(router, resumes)
    _count(router, resumes)
    _forget(router, resumes)
    _see(router, resumes)
    router.include_router(files)
    one = Upload(largest=resumes.settings.largest + AROUND)
    many = Upload(largest=_BATCH * resumes.settings.largest + AROUND)
    told = "Resumes that are read and structured once, and tailored resumes with a score that is explained."
    uploads = {f"{BASE}/upload": one, f"{BASE}/upload-resume": one, f"{BASE}/batch": many}
    return Routes(router=router, uploads=uploads, tags={"resumes": told})


def _send(router: APIRouter, resumes: Resumes) -> None:
    @router.post(f"{BASE}/upload-resume", status_code=202, responses=_DONE, summary="The same under another name")
    @router.post(f"{BASE}/upload", status_code=202, responses=_DONE, summary="Send a resume")
    async def upload_resume(
        request: Request,
        response: Response,
        caller: Enqueuer,
        file: Annotated[UploadFile, File()],
        user_id: Annotated[str | None, Form(alias="userId", min_length=1, max_length=500)] = None,
    ) -> UploadedShape:
        """Send a PDF, DOCX or TXT file. For premium callers it is processed in the background (202); for others at
        once, and the answer has the result (201). A file that was sent before is answered with the resume there (200).
        """
        caller.check_job(TYPE, resumes.settings.queue)
        user = _user(caller, user_id)
        sent = await _taken(resumes, file)
        if resumes.settings.is_premium(caller.attributes):
            [seen] = await resumes.submit(user, sent, priority="high")
        else:
            seen = await _at_once(resumes, user, sent)
        response.headers["Location"] = f"{_base(request)}{BASE}/{seen.record.id}"
        if seen.standing in ENDED:
            response.status_code = 201 if seen.created else 200
        return uploaded_shape(seen, _base(request))

    @router.post(f"{BASE}/batch", status_code=202, summary="Send several resumes")
    async def upload_resumes(
        request: Request,
        caller: Enqueuer,
        file: Annotated[list[UploadFile], File(min_length=1, max_length=MOST_AT_ONCE)],
        user_id: Annotated[str | None, Form(alias="userId", min_length=1, max_length=500)] = None,
    ) -> BatchShape:
        """Send up to 20 files that are processed in the background; one job tracks all of them."""
        caller.check_job(TYPE, resumes.settings.queue)
        user = _user(caller, user_id)
        sent = [await _taken(resumes, one) for one in file]
        seen = await resumes.submit(user, *sent)
        return BatchShape(items=[uploaded_shape(one, _base(request)) for one in seen])


def _generate(router: APIRouter, resumes: Resumes) -> None:
    @router.post(
        f"{BASE}/generate-fast-resume", response_model=GeneratedShape, responses=_FILE, summary="Under another name"
    )
    @router.post(
        f"{BASE}/generate", response_model=GeneratedShape, responses=_FILE, summary="Generate a tailored resume"
    )
    async def generate_resume(
        body: GenerateResume, caller: Reader, download: Annotated[bool, Query()] = False
    ) -> GeneratedShape | Response:
        """A resume in the order that suits a job description, with its score. What is not in the stored resume is in
        none: nothing is invented. 400 with the status where the processing is not completed.
        """
        seen = await _found(resumes, body.processing_id, caller)
        if seen.standing is not Standing.COMPLETED:
            detail = f"Resume processing not completed. Status: {seen.standing}"
            raise Refused(NOT_COMPLETED, detail, None, status_of_processing=seen.standing)
        began = time.perf_counter()
        made = await generate(seen.record, body.job_description, body.company_name, body.as_format)
        took = (time.perf_counter() - began) * 1000
        await (await resumes.records()).used(seen.record.id)
        if download:
            headers = {"X-ATS-Score": f"{made.score.total:.1f}", **_attached(made.file_name)}
            return Response(made.content, media_type=made.media_type, headers=headers | _timed(took))
        text = text_of(made)
        return GeneratedShape(
            processing_id=seen.record.id,
            company_name=body.company_name,
            format=body.as_format,
            file_name=made.file_name,
            media_type=made.media_type,
            content=text,
            content_base64=None if text is not None else base64.b64encode(made.content).decode(),
            ats_score=made.score.as_json(),
            ats_score_before=made.before.as_json(),
            resume=made.resume.as_json(),
        )


def _count(router: APIRouter, resumes: Resumes) -> None:
    @router.get(f"{BASE}/queue-stats", summary="Count the queue")
    async def resume_queue_stats(app: App, caller: Reader) -> QueueStatsShape:
        """How many of the caller's jobs stand where, and how long those took that ended in the last 24 hours."""
        jobs = caller.jobs(app)
        counts = {one: (await jobs.count(type=TYPE, status=one, max_age=_COUNTS_AGE)).n for one in Status}
        runs = (await caller.stats(app).read(_DAY, max_age=_COUNTS_AGE)).kinds()
        running = await jobs.find(type=TYPE, status=Status.PROCESSING, limit=_LOOKED_AT, max_age=_COUNTS_AGE)
        so_far = [(time.time() - job.started_at.timestamp()) * 1000 for job in running.jobs if job.started_at]
        told: dict[Standing, StatusShape] = {}
        for standing in Standing:
            some = [one for one in Status if standing_of_job(one) is standing]
            spread = [found.run for kind, found in runs.items() if kind.type == TYPE and kind.status in some]
            n = sum(one.n for one in spread)
            average = sum((one.average_ms or 0) * one.n for one in spread) / n if n else None
            if standing is Standing.PROCESSING:
                average = max(0.0, sum(so_far) / len(so_far)) if so_far else None
            told[standing] = StatusShape(count=sum(counts[one] for one in some), avg_duration_ms=average)
        return QueueStatsShape(
            bull=LiveCountsShape(
                waiting=counts[Status.QUEUED] + counts[Status.BLOCKED],
                active=counts[Status.PROCESSING],
                completed=counts[Status.SUCCEEDED],
                failed=counts[Status.FAILED],
                delayed=counts[Status.SCHEDULED] + counts[Status.RETRYING],
            ),
            database={resumes.settings.queue: told},
        )


def _forget(router: APIRouter, resumes: Resumes) -> None:
    @router.delete(BASE, summary="Forget a user")
    async def forget_user(
        caller: Enqueuer, user_id: Annotated[str | None, Query(alias="userId", min_length=1, max_length=500)] = None
    ) -> ForgottenShape:
        """Delete all records, files and jobs of the caller, or for an administrator of another user."""
        told = await (await resumes.forgetting()).user(_user(caller, user_id), caller.name)
        return forgotten_shape(told)

    @router.delete(f"{BASE}/jobs/{{job_id}}", summary="Delete a job of resumes")
    async def delete_resume_job(
        job_id: str, app: App, caller: Operator, cascade: Annotated[bool, Query()] = False
    ) -> ForgottenShape:
        """Delete a job that is not running; with `cascade` also the resumes that it tracks, which else stay."""
        job = await caller.jobs(app).get(job_id)
        if job.type != TYPE:
            raise JobNotFound(job_id)
        caller.check_limits(job.type, job.queue)
        told = await (await resumes.forgetting()).job(job.id, caller.name, cascade=cascade)
        return forgotten_shape(told)

    @router.delete(f"{BASE}/{{processing_id}}", summary="Delete a resume")
    async def delete_resume(processing_id: str, caller: Enqueuer) -> ForgottenShape:
        """Delete a record and its file, and its job if that tracks nothing else."""
        seen = await _found(resumes, processing_id, caller)
        told = await (await resumes.forgetting()).resume(seen.record, caller.name)
        return forgotten_shape(told)


def _see(router: APIRouter, resumes: Resumes) -> None:
    @router.get(BASE, summary="List resumes")
    async def list_resumes(
        request: Request,
        caller: Reader,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        cursor: Annotated[str | None, Query(pattern=UUID)] = None,
    ) -> ListShape:
        """The caller's resumes, the newest first."""
        found = await resumes.find(_seen_by(caller), limit + 1, cursor)
        items = [HeadShape(**head_of(one, _base(request))) for one in found[:limit]]
        return ListShape(items=items, next_cursor=items[-1].processing_id if len(found) > limit else None)

    @router.get(f"{BASE}/{{processing_id}}", summary="Get a resume")
    async def get_resume(processing_id: str, request: Request, caller: Reader) -> ResumeShape:
        """How a resume stands now, and once it is processed what was found in it."""
        return resume_shape(await _found(resumes, processing_id, caller), _base(request))

    @router.get(f"{BASE}/{{processing_id}}/file", summary="Download a resume", response_class=Response, responses=_RAW)
    async def download_resume(processing_id: str, caller: Reader) -> Response:
        """The file as it was sent."""
        seen = await _found(resumes, processing_id, caller)
        try:
            data = await resumes.files.read(seen.record.user_id, seen.record.file_hash)
        except FileGone as error:
            raise Refused(NOT_FOUND, str(error)) from None
        suffix = DOCUMENTS.suffix(seen.record.original_file_name) or ""
        headers = _attached(f"resume-{seen.record.id[:8]}{suffix}")
        return Response(data, media_type="application/octet-stream", headers=headers)


async def found_for(resumes: Resumes, processing_id: str, caller: Caller) -> Seen:
    """A resume that is the caller's to see; another one's is not there."""
    return await _found(resumes, processing_id, caller)


async def _found(resumes: Resumes, processing_id: str, caller: Caller) -> Seen:
    seen = await resumes.look(processing_id[:100], _seen_by(caller))
    if seen is None:
        raise Refused(NOT_FOUND, "there is no such resume")
    return seen


def _seen_by(caller: Caller) -> str | None:
    return None if caller.sees_all else caller.owner


def _user(caller: Caller, named: str | None) -> str:
    """Whose resume it is: the caller's own, or of whom an administrator serves."""
    return caller.user_of(named) or caller.owner


async def _at_once(resumes: Resumes, user: str, sent: Sent) -> Seen:
    try:
        return await resumes.at_once(user, sent)
    except Busy as error:
        raise Refused(BUSY, str(error)) from None
    except DocumentRefused as error:
        raise Refused(FILE_REFUSED, f"the document cannot be processed: {error}") from None


async def _taken(resumes: Resumes, file: UploadFile) -> Sent:
    """The file of a form: its name checked, its bytes counted."""
    name, largest, parts = name_of(file, DOCUMENTS), resumes.settings.largest, bytearray()
    async for piece in pieces(file, name, DOCUMENTS):
        parts += piece
        if len(parts) > largest:
            raise Refused(TOO_LARGE, f"a file may have {largest:,} bytes")
    kind = (file.content_type or "application/octet-stream").partition(";")[0].strip().lower()
    return Sent(name=name, media_type=kind, data=bytes(parts))


def _base(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _timed(took: float) -> dict[str, str]:
    return {"Server-Timing": f"generate;dur={took:.1f}"}
