"""Shapes: what comes in and goes out over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from windlass.apps.files.order import Result
from windlass.web import Asked, Shape


class WriteFile(Asked):
    """A write. Text as it is, anything else in base64, or the whole body as multipart/form-data."""

    content: str
    encoding: Literal["utf-8", "base64"] = "utf-8"
    disk_path: Annotated[str, Field(max_length=2000)] | None = None
    """where the file is to be on disk, too, from now on: below the project's folder"""


class Queued(Shape):
    """Where to ask after a write."""

    job_id: str
    path: str


class QueuedShape(Shape):
    """A write was enqueued."""

    success: bool
    message: str
    data: Queued


class Write(Shape):
    """One write; instants are milliseconds since 1970."""

    id: str
    state: Literal["waiting", "active", "completed", "failed", "delayed", "paused", "stalled"]
    result: Result | None
    reason: str | None
    progress: int
    timestamp: int
    processed_on: int | None
    finished_on: int | None


class StatusShape(Shape):
    """How a write goes."""

    success: bool
    data: Write


class VersionShape(Shape):
    """A version of a file that is kept."""

    version: int
    hash: str
    size: int
    last_modified: int
    who: str | None
    job_id: str
    current: bool


class History(Shape):
    """The versions of a file, the newest first."""

    project_id: str
    file_id: str
    disk_path: str | None
    waiting: int
    versions: list[VersionShape]


class HistoryShape(Shape):
    """The history of a file."""

    success: bool
    data: History


class FileShape(Shape):
    """A file in a list; without a version if its first write still waits."""

    file_id: str
    version: int | None
    hash: str | None
    size: int | None
    last_modified: int | None
    disk_path: str | None
    versions: int
    waiting: int


class FilesShape(Shape):
    """A page of files, by name."""

    items: list[FileShape]
    next_cursor: str | None


class StatsShape(Shape):
    """How many writes are in each state, and what the project holds."""

    waiting: int
    active: int
    completed: int
    failed: int
    delayed: int
    files: int
    bytes: int
