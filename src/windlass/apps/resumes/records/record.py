"""The record of one resume, and what a database does with records. Jobs know its id alone."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "extracted_resume_contents"
"""of the table or the collection, and of what jobs of resumes are about"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One resume of one user."""

    id: str
    user_id: str
    job_id: str | None = None
    """the job that tracks it; several records may have the same. Without one it is processed at once"""
    original_file_name: str
    file_size: int
    file_hash: str
    """SHA-256 of the file, by which it is found"""
    media_type: str
    extracted_text: str | None = None
    structured_content: dict[str, Any] | None = None
    """JSON Resume"""
    usage_count: int = 0
    last_used_at: dt.datetime | None = None
    business_metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """facts of the document, who structured it, what it cost"""
    error: str | None = None
    """why it cannot be processed, in words for its owner"""
    draft: dict[str, Any] | None = None
    """what the steps so far have found; gone once the record is complete"""
    completed_at: dt.datetime | None = None
    created_at: dt.datetime
    updated_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes a record: an attempt of a job by its fencing token, or without a job who processes it at once."""

    job: str | None = None
    token: int = 0


class Overtaken(Exception):
    """The record is gone, or a newer attempt or another job has it by now."""


class Records(Protocol):
    """What a database does. Instants are those of the process that writes."""

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        ...

    async def prepare(self) -> None:
        """Bring the table and its indexes to this version."""
        ...

    async def add(self, record: Record) -> Record:
        """Keep a new record; where its user has one of the same file already, that one is given instead."""
        ...

    async def get(self, record_id: str, user: str | None = None) -> Record | None:
        """A whole record; with a user only if it is theirs."""
        ...

    async def find(self, user: str | None, most: int, after: str | None = None) -> list[Record]:
        """Records without their contents, the newest first; of one user, or of all."""
        ...

    async def of_job(self, job_id: str) -> list[Record]:
        """All that a job tracks, without their contents."""
        ...

    async def release(self, record_ids: Sequence[str]) -> None:
        """Have no job track those of these that are not complete: what one writes of them from now on is refused."""
        ...

    async def attach(self, record_ids: Sequence[str], job_id: str) -> None:
        """Have a job track those of these that none tracks."""
        ...

    async def hand_over(self, record_ids: Sequence[str], before: str, job_id: str) -> None:
        """Have a job track those of these that another has not completed."""
        ...

    async def begin(self, record_id: str, holder: Holder) -> Record:
        """The record for an attempt, which from now on alone may write it; Overtaken where another job tracks it."""
        ...

    async def write(self, record_id: str, holder: Holder, **changed: Any) -> None:
        """Change fields of a record; Overtaken unless the holder is who began last."""
        ...

    async def used(self, record_id: str) -> None:
        """Count one use."""
        ...

    async def remove(self, record_ids: Sequence[str]) -> int:
        """Remove these; how many there were."""
        ...

    async def left(self, before: dt.datetime, most: int) -> list[Record]:
        """Records that nobody processes: without a job, not complete and unchanged since then; without contents."""
        ...

    async def wipe(self) -> None:
        """Have what was removed overwritten, as far as the database can."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


def now() -> dt.datetime:
    """The present instant, as exactly as every database keeps it."""
    at = dt.datetime.now(dt.UTC)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)
