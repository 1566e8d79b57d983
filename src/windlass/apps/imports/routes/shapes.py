"""What requests and answers of imports look like."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from windlass import Job, Status
from windlass.apps.imports.cells import DateOrder
from windlass.apps.imports.imports import PREFIX, Imports
from windlass.apps.imports.looking import Look
from windlass.apps.imports.order import Order, Summary
from windlass.web import (
    Asked,
    Instant,
    Shape,
)


class StartImport(Asked):
    """An import of a file that is there: in the folder, by its name, or sent before, by its upload."""

    filename: Annotated[str, Field(min_length=1, max_length=200, examples=["Accounts-Payable.xlsx"])] | None = None
    upload: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None
    type: Annotated[str, Field(max_length=41)] | None = None
    """by default what the manifest says of the file"""
    sheet_name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    mapping: Annotated[dict[str, str], Field(max_length=500)] = Field(default_factory=dict[str, str])
    """field by header, where names and aliases do not say it; an empty header leaves a field out"""
    dates: Annotated[DateOrder, Field(strict=False)] = DateOrder.UNSAID
    """how 3/4/2026 is meant"""
    dry_run: bool = False
    atomic: bool = False
    force: bool = False


class StartedShape(Shape):
    """An import that was enqueued."""

    job_id: str
    type: str
    filename: str
    status: Status
    status_url: str


class ImportShape(Shape):
    """One import."""

    id: str
    type: str
    filename: str
    status: Status
    user_id: str | None
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    done: float | None
    of: float | None
    note: str | None
    dry_run: bool
    atomic: bool
    result: Summary | None
    error: str | None


class ImportsShape(Shape):
    """A page of imports, the newest first."""

    items: list[ImportShape]
    next_cursor: str | None


class TypeShape(Shape):
    """A type of import."""

    type: str
    table: str
    key: list[str]
    fields: list[dict[str, Any]]


class UploadShape(Shape):
    """A file that was sent and looked into."""

    upload: str
    size: int
    look: Look


def import_shape(job: Job) -> ImportShape:
    """An import over the wire."""
    order = Order.model_validate(json.loads(job.payload_json)["order"])
    result = Summary.model_validate_json(job.result_json) if job.result_json else None
    progress = job.progress
    return ImportShape(
        id=job.id,
        type=job.type.removeprefix(PREFIX),
        filename=order.filename,
        status=job.status,
        user_id=job.user_id,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        done=progress.done if progress else None,
        of=progress.of if progress else None,
        note=progress.note if progress else None,
        dry_run=order.dry_run,
        atomic=order.atomic,
        result=result,
        error=job.error.message if job.error else None,
    )


def type_shape(imports: Imports, name: str) -> TypeShape:
    """A type over the wire."""
    handler = imports.handlers[name]
    fields = [
        {
            "name": field.label,
            "kind": field.kind.value,
            "required": field.required,
            "aliases": list(handler.aliases.get(field.name, ())),
        }
        for field in handler.fields
    ]
    return TypeShape(type=name, table=handler.table, key=list(handler.key_labels), fields=fields)
