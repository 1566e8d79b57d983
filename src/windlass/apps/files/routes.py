"""Routes: write a file, see how the write goes, read versions and restore them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Path, Query, Request, Response, UploadFile
from fastapi.responses import StreamingResponse

from windlass import Job, JobNotFound
from windlass.apps.files import shapes
from windlass.apps.files.files import TYPE, Files
from windlass.apps.files.names import LONGEST, LONGEST_PROJECT, PATTERN, Name
from windlass.apps.files.receiving import (
    MULTIPART,
    Sending,
    conditions,
    content_of,
    file_of,
    pieces,
    project_of,
    tags,
    told,
)
from windlass.apps.files.state import ANYTHING, State, Version
from windlass.apps.files.telling import milliseconds, progress_of, reason_of, state_of
from windlass.web import App, Enqueuer, Reader, Repeatable, Routes, Upload

if TYPE_CHECKING:
    from windlass import Handle

FILE = "/projects/{projectId}/files/{fileId}"
_AROUND = 64 * 1024
"""bytes of a body beside its content"""
_FORM: dict[str, Any] = {
    "requestBody": {
        "content": {
            MULTIPART: {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "diskPath": {"type": "string"},
                    },
                }
            }
        }
    }
}
Project = Annotated[str, Path(alias="projectId", min_length=1, max_length=LONGEST_PROJECT, pattern=PATTERN)]
FileId = Annotated[str, Path(alias="fileId", min_length=1, max_length=LONGEST, pattern=PATTERN)]
Owner = Annotated[str | None, Query(max_length=200, description="Whose, for a key that sees the jobs of all.")]
Seq = Annotated[int, Path(ge=1, lt=2**53)]


def routes(files: Files) -> Routes:
    """All of them."""
    router = APIRouter(route_class=Repeatable, tags=["files"])
    forms = APIRouter(route_class=Sending, tags=["files"])
    _send(forms, files)
    router.include_router(forms)
    _write(router, files)
    _see(router, files)
    _read(router, files)
    # A byte of text may be written with six characters of JSON.
    upload = Upload(largest=2 * files.settings.largest + _AROUND)
    said = "Files of projects: written by one at a time, in order, with their versions."
    return Routes(router=router, uploads={FILE: upload}, tags={"files": said})


def _send(router: APIRouter, files: Files) -> None:
    @router.post(FILE, status_code=202, include_in_schema=False)
    async def send_file(
        projectId: Project,  # noqa: N803  # as the path has it
        fileId: FileId,  # noqa: N803  # the same
        request: Request,
        response: Response,
        caller: Enqueuer,
        file: Annotated[UploadFile, File()],
        diskPath: Annotated[str | None, Form(max_length=2000)] = None,  # noqa: N803  # as the form has it
        owner: Owner = None,
    ) -> shapes.QueuedShape:
        """The same with the content as a form's file."""
        name = file_of(caller, projectId, fileId, owner)
        caller.check_job(TYPE, files.settings.queue)
        with told():
            handle = await files.write(
                name, pieces(file), path=diskPath, user=name.space.owner or None, **conditions(request)
            )
        return _queued(name, handle, request, response)


def _write(router: APIRouter, files: Files) -> None:
    @router.post(FILE, status_code=202, summary="Write a file", openapi_extra=_FORM)
    async def write_file(
        projectId: Project,  # noqa: N803  # as the path has it
        fileId: FileId,  # noqa: N803  # the same
        body: shapes.WriteFile,
        request: Request,
        response: Response,
        caller: Enqueuer,
        owner: Owner = None,
    ) -> shapes.QueuedShape:
        """Enqueue a write: it is made behind those of the same file that were enqueued before.

        With `If-Match: "hash"` it is made only over that version, with `If-None-Match: *` only if there is none: 412
        now, or the write fails with that reason when its turn has come.
        """
        name = file_of(caller, projectId, fileId, owner)
        caller.check_job(TYPE, files.settings.queue)
        with told():
            handle = await files.write(
                name, content_of(body), path=body.disk_path, user=name.space.owner or None, **conditions(request)
            )
        return _queued(name, handle, request, response)

    @router.post(FILE + "/history/{version}/restore", status_code=202, summary="Restore a version of a file")
    async def restore_file_version(
        projectId: Project,  # noqa: N803  # as the path has it
        fileId: FileId,  # noqa: N803  # the same
        version: Seq,
        request: Request,
        response: Response,
        caller: Enqueuer,
        owner: Owner = None,
    ) -> shapes.QueuedShape:
        """Enqueue a write of what that version holds; it becomes the newest."""
        name = file_of(caller, projectId, fileId, owner)
        caller.check_job(TYPE, files.settings.queue)
        based = conditions(request)["if_match"]
        with told():
            handle = await files.restore(name, version, if_match=based, user=name.space.owner or None)
        return _queued(name, handle, request, response)


def _see(router: APIRouter, files: Files) -> None:
    @router.get(FILE + "/status/{jobId}", summary="See how a write goes")
    async def get_file_status(
        projectId: Project,  # noqa: N803  # as the path has it
        fileId: FileId,  # noqa: N803  # the same
        jobId: str,  # noqa: N803  # the same
        app: App,
        caller: Reader,
        owner: Owner = None,
    ) -> shapes.StatusShape:
        """The state of one write, and its result."""
        name = file_of(caller, projectId, fileId, owner)
        looked = await caller.jobs(app).look(jobId)
        job = looked.job
        if job.type != TYPE or (job.payload["space"], job.payload["file"]) != (name.space.text, name.file):
            raise JobNotFound(jobId)
        queues = await app.queues.list(max_age=1)
        paused = any(one.name == job.queue and one.paused_at is not None for one in queues)
        return shapes.StatusShape(success=True, data=_told(job, state_of(job, looked.history, paused=paused)))

    @router.get("/projects/{projectId}/stats", summary="Count the writes of a project")
    async def get_project_stats(
        projectId: Project,  # noqa: N803  # as the path has it
        caller: Reader,
        owner: Owner = None,
    ) -> shapes.StatsShape:
        """How many writes wait, run and have ended, and what the project holds."""
        space = project_of(caller, projectId, owner)
        counted, usage = await asyncio.gather(files.stats(space), (await files.records()).usage(space))
        return shapes.StatsShape(**counted, files=usage.files, bytes=usage.bytes)

    @router.get("/projects/{projectId}/files", summary="List the files of a project")
    async def list_files(
        projectId: Project,  # noqa: N803  # as the path has it
        caller: Reader,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        cursor: Annotated[str, Query(max_length=LONGEST)] = "",
        owner: Owner = None,
    ) -> shapes.FilesShape:
        """Files by their names."""
        space = project_of(caller, projectId, owner)
        found = await (await files.records()).files(space, cursor, limit)
        items = [file_shape(one.name, one.state) for one in found if one.state.is_there]
        return shapes.FilesShape(items=items, next_cursor=found[-1].name.file if len(found) == limit else None)

    @router.get(FILE + "/history", summary="List the versions of a file")
    async def get_file_history(
        projectId: Project,  # noqa: N803  # as the path has it
        fileId: FileId,  # noqa: N803  # the same
        caller: Reader,
        owner: Owner = None,
    ) -> shapes.HistoryShape:
        """The versions that are kept, the newest first."""
        name = file_of(caller, projectId, fileId, owner)
        with told():
            state = await files.state(name)
        versions = [version_shape(one, state) for one in reversed(state.versions)]
        data = shapes.History(
            project_id=projectId, file_id=fileId, disk_path=state.disk, waiting=len(state.waiting), versions=versions
        )
        return shapes.HistoryShape(success=True, data=data)


def _read(router: APIRouter, files: Files) -> None:
    octets: dict[int | str, dict[str, Any]] = {
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
        304: {"description": "It is at the version that If-None-Match names"},
    }

    @router.get(FILE, summary="Read a file", response_class=Response, responses=octets)
    async def read_file(
        projectId: Project,  # noqa: N803  # as the path has it
        fileId: FileId,  # noqa: N803  # the same
        request: Request,
        caller: Reader,
        owner: Owner = None,
    ) -> Response:
        """The current version. Its ETag is its hash."""
        name = file_of(caller, projectId, fileId, owner)
        with told():
            return await _content(files, name, await files.current(name), request)

    @router.get(
        FILE + "/history/{version}", summary="Read a version of a file", response_class=Response, responses=octets
    )
    async def read_file_version(
        projectId: Project,  # noqa: N803  # as the path has it
        fileId: FileId,  # noqa: N803  # the same
        version: Seq,
        request: Request,
        caller: Reader,
        owner: Owner = None,
    ) -> Response:
        """One of the versions that are kept."""
        name = file_of(caller, projectId, fileId, owner)
        with told():
            return await _content(files, name, await files.version(name, version), request)


async def _content(files: Files, name: Name, version: Version, request: Request) -> Response:
    headers = {"ETag": f'"{version.sha256}"', "X-Version": str(version.seq)}
    known = request.headers.getlist("if-none-match")
    if known and {version.sha256, ANYTHING} & set(tags(known, "If-None-Match")):
        return Response(status_code=304, headers=headers)
    size = await files.blobs.size(version.sha256)
    # Never shown in place, whatever it is: a browser saves it.
    headers |= {
        "Content-Length": str(size),
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name.file, safe='')}",
    }
    content: AsyncIterator[bytes] = files.blobs.open(version.sha256)
    return StreamingResponse(content, media_type="application/octet-stream", headers=headers)


def _queued(name: Name, handle: Handle[Any], request: Request, response: Response) -> shapes.QueuedShape:
    base = str(request.scope.get("root_path", "")).rstrip("/")
    project, file = (quote(one, safe="") for one in (name.space.project, name.file))
    response.headers["Location"] = f"{base}/projects/{project}/files/{file}/status/{handle.id}"
    data = shapes.Queued(job_id=handle.id, path=name.file)
    return shapes.QueuedShape(success=True, message=f"File {name.file} queued for processing", data=data)


def _told(job: Job, state: str) -> shapes.Write:
    return shapes.Write.model_validate(
        {
            "id": job.id,
            "state": state,
            "result": job.result,
            "reason": reason_of(job),
            "progress": progress_of(job),
            "timestamp": milliseconds(job.created_at),
            "processedOn": milliseconds(job.started_at),
            "finishedOn": milliseconds(job.finished_at),
        }
    )


def version_shape(version: Version, state: State) -> shapes.VersionShape:
    """A version over the wire."""
    return shapes.VersionShape(
        version=version.seq,
        hash=version.sha256,
        size=version.size,
        last_modified=version.at,
        who=version.who,
        job_id=version.job,
        current=version.seq == state.committed,
    )


def file_shape(name: Name, state: State) -> shapes.FileShape:
    """A file over the wire."""
    current = state.current
    return shapes.FileShape(
        file_id=name.file,
        version=current.seq if current else None,
        hash=current.sha256 if current else None,
        size=current.size if current else None,
        last_modified=current.at if current else None,
        disk_path=state.disk,
        versions=len(state.versions),
        waiting=len(state.waiting),
    )
