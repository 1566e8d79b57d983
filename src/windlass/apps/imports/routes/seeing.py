"""Routes that show: imports and types, a file that was sent, what was refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from windlass import Job, JobNotFound
from windlass.apps.imports import sheet
from windlass.apps.imports.files import XLSX
from windlass.apps.imports.imports import PREFIX, Imports
from windlass.apps.imports.routes.shapes import (
    ImportShape,
    ImportsShape,
    TypeShape,
    UploadShape,
    import_shape,
    type_shape,
)
from windlass.apps.imports.routes.starting import BASE, looked
from windlass.apps.uploads.receiving import sent_by
from windlass.web import (
    App,
    Caller,
    Enqueuer,
    Reader,
)


def see(router: APIRouter, imports: Imports) -> None:
    @router.get(BASE, summary="List imports")
    async def list_imports(
        app: App,
        caller: Reader,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        cursor: Annotated[str | None, Query(max_length=500)] = None,
    ) -> ImportsShape:
        """Imports, the newest first."""
        page = await caller.jobs(app).find(tags=["import"], type=PREFIX + "*", limit=limit, after=cursor)
        return ImportsShape(items=[import_shape(job) for job in page.jobs], next_cursor=page.next)

    @router.get(f"{BASE}/types", summary="List the types of imports")
    async def list_import_types(_: Reader) -> list[TypeShape]:
        """What can be imported: fields, which of them are needed, and the key."""
        return [type_shape(imports, name) for name in imports.handlers]

    @router.get(f"{BASE}/files/{{upload}}", summary="Look into a file that was sent")
    async def get_import_file(
        upload: str,
        caller: Enqueuer,
        sheet_name: Annotated[str | None, Query(alias="sheetName", max_length=100)] = None,
    ) -> UploadShape:
        """The same as when it was sent; with another sheet, if one is named."""
        sent = sent_by(imports.uploads, upload, caller)
        return UploadShape(upload=upload, size=sent.size, look=await looked(imports, sent, sheet_name))

    @router.get(f"{BASE}/{{job_id}}", summary="Get an import")
    async def get_import(job_id: str, app: App, caller: Reader) -> ImportShape:
        """How an import goes, or what became of it."""
        return import_shape(await job_of(app, caller, job_id))

    @router.get(f"{BASE}/{{job_id}}/errors", summary="Download all errors", response_class=StreamingResponse)
    async def download_import_errors(
        job_id: str,
        app: App,
        caller: Reader,
        format: Annotated[str, Query(pattern="^(csv|jsonl)$")] = "csv",  # its name in the query
    ) -> StreamingResponse:
        """Every bad cell, as CSV or as JSON, a line each."""
        job = await job_of(app, caller, job_id)
        lines: AsyncIterator[bytes] = (
            sheet.csv_lines(imports.target, job.origin or job.id)
            if format == "csv"
            else sheet.json_lines(imports.target, job.origin or job.id)
        )
        media = "text/csv; charset=utf-8" if format == "csv" else "application/x-ndjson"
        return StreamingResponse(lines, media_type=media, headers=_attached(f"errors-{job.id[:8]}.{format}"))

    @router.get(f"{BASE}/{{job_id}}/corrections", summary="Download the refused rows", response_class=Response)
    async def download_import_corrections(job_id: str, app: App, caller: Reader) -> Response:
        """The refused rows as a workbook with the reasons beside them: correct it and send it again by itself."""
        job = await job_of(app, caller, job_id)
        header = import_shape(job).result
        made = await sheet.workbook(imports.target, job.origin or job.id, header.header if header else [])
        return Response(made, media_type=XLSX, headers=_attached(f"corrections-{job.id[:8]}.xlsx"))


async def job_of(app: App, caller: Caller, job_id: str) -> Job:
    """A job that is an import, and the caller's to see."""
    job = await caller.jobs(app).get(job_id)
    if not job.type.startswith(PREFIX):
        raise JobNotFound(job_id)
    return job


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
