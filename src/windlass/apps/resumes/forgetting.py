"""Forgetting: a job with or without its records, one resume, or all that is known of a user."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass import JobNotFound, MoveRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windlass import Windlass
    from windlass.apps.resumes.files import Files
    from windlass.apps.resumes.records.record import Record, Records

_A_PAGE = 500
_PATIENCE, _LOOK = 10.0, 0.1
"""seconds for which a job is waited for that runs, and between two looks at it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was deleted."""

    records: int = 0
    files: int = 0
    missing: int = 0
    """files that records named and that were not there: elsewhere, if this process is told of another place"""
    jobs: int = 0
    """with their payloads, results and histories"""
    running: tuple[str, ...] = ()
    """jobs that would not stop in time and are still there. They hold nothing of a resume, and find none any more"""


class Forgetting:
    """Deletes. Of a user records come first: what still runs then finds nothing to read or to write to."""

    def __init__(self, app: Windlass, records: Records, files: Files, job_type: str) -> None:
        self._app, self._records, self._files, self._type = app, records, files, job_type

    async def user(self, user: str, actor: str) -> Forgotten:
        """All of a user: records, files, and jobs with their payloads and results."""
        records, jobs, named = 0, set[str](), 0
        while found := await self._records.find(user, _A_PAGE):
            records += await self._records.remove([one.id for one in found])
            named += len(found)
            jobs |= {one.job_id for one in found if one.job_id is not None}
        files = await self._files.remove_of(user)
        jobs |= await self._jobs_of(user)
        gone, running = await self._delete_jobs(jobs, actor)
        await self._records.wipe()
        return Forgotten(records=records, files=files, missing=max(0, named - files), jobs=gone, running=running)

    async def job(self, job_id: str, actor: str, *, cascade: bool) -> Forgotten:
        """A job; with `cascade` the records that it tracks and their files, too. MoveRefused while it runs."""
        tracked = await self._records.of_job(job_id) if cascade else []
        await self._app.jobs.delete(job_id, actor=actor)
        return await self._remove(tracked, jobs=1)

    async def resume(self, record: Record, actor: str) -> Forgotten:
        """A record with its file, and its job unless that tracks others."""
        told = await self._remove([record])
        if record.job_id is None or await self._records.of_job(record.job_id):
            return told
        gone, running = await self._delete_jobs([record.job_id], actor)
        return Forgotten(records=told.records, files=told.files, jobs=gone, running=running)

    async def _remove(self, records: Sequence[Record], jobs: int = 0) -> Forgotten:
        if not records:
            return Forgotten(jobs=jobs)
        files = [await self._files.remove(one.user_id, one.file_hash) for one in records]
        removed = await self._records.remove([one.id for one in records])
        await self._records.wipe()
        return Forgotten(records=removed, files=sum(files), jobs=jobs)

    async def _jobs_of(self, user: str) -> set[str]:
        found, after = set[str](), None
        while True:
            page = await self._app.jobs.find(user=user, type=self._type, limit=_A_PAGE, after=after)
            found |= {job.id for job in page.jobs}
            after = page.next
            if after is None:
                return found

    async def _delete_jobs(self, ids: Iterable[str], actor: str) -> tuple[int, tuple[str, ...]]:
        gone, running = 0, list[str]()
        for job_id in sorted(ids):
            try:
                gone += await self._delete_job(job_id, actor)
            except MoveRefused:
                running.append(job_id)
        return gone, tuple(running)

    async def _delete_job(self, job_id: str, actor: str) -> bool:
        """Delete a job; one that runs is asked to stop, and waited for."""
        loop = asyncio.get_running_loop()
        until, asked = loop.time() + _PATIENCE, False
        while True:
            try:
                await self._app.jobs.delete(job_id, actor=actor, reason="its user is forgotten")
            except JobNotFound:
                return False
            except MoveRefused:
                if loop.time() > until:
                    raise
                if not asked:
                    asked = await self._cancelled(job_id, actor)
                await asyncio.sleep(_LOOK)
            else:
                return True

    async def _cancelled(self, job_id: str, actor: str) -> bool:
        try:
            await self._app.jobs.cancel(job_id, actor=actor)
        except (JobNotFound, MoveRefused):
            return False
        return True
