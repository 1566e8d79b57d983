"""Resumes: what is installed. A file is sent, becomes a record, and is processed by a job or at once."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from windlass import Ctx, Retry, SettingsError, Signal, every
from windlass.apps.resumes.extraction.pool import Pool
from windlass.apps.resumes.extraction.refused import DocumentRefused
from windlass.apps.resumes.files import Files
from windlass.apps.resumes.forgetting import Forgetting
from windlass.apps.resumes.processing import Processing, ProcessingFailed
from windlass.apps.resumes.records.places import beside, records_at
from windlass.apps.resumes.records.record import NAME, Overtaken, Record, now
from windlass.apps.resumes.settings import ResumesSettings
from windlass.apps.resumes.standing import Standing, standing_of
from windlass.apps.resumes.structuring.rules import Rules

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from windlass import Job, JobFunction, Windlass
    from windlass.apps.resumes.extraction.extracted import Extracted
    from windlass.apps.resumes.processing import Read
    from windlass.apps.resumes.records.record import Records
    from windlass.apps.resumes.structuring.structurer import Structurer
    from windlass.web import Room, Routes

TYPE = "extract-resume-content"
"""the type of the jobs that process resumes"""
_SWEPT, _LEFT = timedelta(minutes=5), timedelta(minutes=5)
"""how often is looked for what was left behind, and for how long nobody has written what was"""
_AT_ONCE = 500
MOST_OF_A_JOB = 50
"""resumes that one job may track: it remembers four steps of each"""


class Busy(Exception):
    """As many resumes are being processed at once, and wait for it, as may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A file that was sent."""

    name: str
    """what its sender calls it"""
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A record as somebody asks for it, with the job that tracks it."""

    record: Record
    job: Job | None
    created: bool = False

    @property
    def standing(self) -> Standing:
        """Where it is on its way."""
        return standing_of(self.record, self.job)


class Resumes:
    """The resumes of one application."""

    def __init__(self, app: Windlass, settings: ResumesSettings, structurer: Structurer | None = None) -> None:
        self.app, self.settings = app, settings
        self.files = Files(settings.files, settings.largest)
        self._structurer = structurer
        self.read: Read | None = None
        """how documents are read, where it is not in children with limits: those of tests are trusted"""
        self._address: str | None = None
        self._opened: dict[asyncio.AbstractEventLoop, _Opened] = {}
        self._waiting = 0
        declare = app.job(
            name=TYPE,
            queue=settings.queue,
            timeout=settings.timeout,
            max_crashes=settings.crashes,
            retry=Retry(settings.attempts, never=(SettingsError,)),
        )
        self._process: JobFunction[[list[str]], dict[str, list[str]]] = declare(self._carry_out)
        app.job(name="resumes.sweep", queue=settings.queue, schedule=every(_SWEPT), retry=1)(self.sweep)
        app.on_close(self._close)

    @property
    def address(self) -> str:
        """The URL of where records are."""
        return self._address or self.settings.database or beside(self.app.url)

    @address.setter
    def address(self, url: str) -> None:
        self._address = url

    async def records(self) -> Records:
        """The records, brought to this version, for the event loop that asks."""
        return await (await self._here()).ready()

    async def submit(self, user: str, *sent: Sent, priority: str = "normal") -> list[Seen]:
        """Keep files and have one job process them; of a file that its user has sent before, the record is given."""
        if not 1 <= len(sent) <= MOST_OF_A_JOB:
            raise SettingsError(f"{len(sent)} files were sent: one job takes 1 to {MOST_OF_A_JOB}")
        kept = [await self._kept(user, one) for one in sent]
        wanted = [record.id for record, standing in kept if standing in (None, Standing.FAILED)]
        if wanted:
            await self._enqueue(
                user, wanted, again=any(standing is not None for _, standing in kept), priority=priority
            )
        fresh = {record.id for record, standing in kept if standing is None}
        return [await self._seen(record.id, created=record.id in fresh) for record, _ in kept]

    async def at_once(self, user: str, sent: Sent) -> Seen:
        """Keep a file and process it here and now; DocumentRefused and Busy leave nothing behind.

        What goes wrong, and what is to be tried again later, is given to a job.
        """
        async with self._turn():
            record, standing = await self._kept(user, sent)
            if standing not in (None, Standing.FAILED):
                return await self._seen(record.id)
            if standing is Standing.FAILED:
                await (await self.records()).release([record.id])
            try:
                await (await self._processing()).at_once(record.id)
            except (Signal, ProcessingFailed):
                await self._enqueue(user, [record.id], again=False)
            except Overtaken:
                pass  # the same file came twice at the same moment: the other one goes on with it
            except DocumentRefused:
                await self.discard(record)
                raise
            return await self._seen(record.id, created=standing is None)

    async def look(self, record_id: str, user: str | None) -> Seen | None:
        """A whole record as it stands now; with a user only if it is theirs."""
        record = await (await self.records()).get(record_id, user)
        if record is None:
            return None
        [seen] = await self.with_jobs([record])
        return seen

    async def find(self, user: str | None, most: int, after: str | None = None) -> list[Seen]:
        """Records without their contents as they stand now, the newest first."""
        return await self.with_jobs(await (await self.records()).find(user, most, after))

    async def with_jobs(self, records: Sequence[Record]) -> list[Seen]:
        """Records, each with the job that tracks it."""
        asked = sorted({one.job_id for one in records if one.job_id is not None and one.completed_at is None})
        found = dict(zip(asked, await self.app.jobs.several(asked), strict=True)) if asked else {}
        return [Seen(record=one, job=found.get(one.job_id or "")) for one in records]

    async def forgetting(self) -> Forgetting:
        """What deletes."""
        return Forgetting(self.app, await self.records(), self.files, TYPE)

    async def discard(self, record: Record) -> None:
        """Remove a record and its file, before there is a job."""
        await self.files.remove(record.user_id, record.file_hash)
        await (await self.records()).remove([record.id])

    async def sweep(self) -> int:
        """Give to a job what a process that died has left behind."""
        left = await (await self.records()).left(dt.datetime.now(dt.UTC) - _LEFT, _AT_ONCE)
        for record in left:
            await self._enqueue(record.user_id, [record.id], again=True)
        return len(left)

    async def _kept(self, user: str, sent: Sent) -> tuple[Record, Standing | None]:
        """The record of a file, and how it stands if it was there before.

        The record comes first: a file that nothing names would never be found to be removed. A record whose file did
        not come to be kept is refused by the job that it is given to, and its user sends the file again.
        """
        at = now()
        made = Record(
            id=str(uuid.uuid4()),
            user_id=user,
            original_file_name=sent.name,
            file_size=len(sent.data),
            file_hash=sha256(sent.data).hexdigest(),
            media_type=sent.media_type,
            created_at=at,
            updated_at=at,
        )
        record = await (await self.records()).add(made)
        standing = None if record.id == made.id else (await self.with_jobs([record]))[0].standing
        if standing in (None, Standing.FAILED):
            await self.files.keep(user, sent.data)
        return record, standing

    async def _enqueue(self, user: str, ids: list[str], *, again: bool, priority: str = "normal") -> None:
        records = await self.records()
        if again:
            await records.release(ids)
        using = self._process.using(
            user=None if user == "*" else user, entity=(NAME, ids[0]), tags=["resume"], priority=priority
        )
        handle = await using.enqueue(ids)
        await records.attach(ids, handle.id)

    async def _seen(self, record_id: str, *, created: bool = False) -> Seen:
        record = await (await self.records()).get(record_id)
        if record is None:
            raise SettingsError("the resume was removed meanwhile: send it again")
        [seen] = await self.with_jobs([record])
        return Seen(record=seen.record, job=seen.job, created=created)

    async def _carry_out(self, ctx: Ctx, resumes: list[str]) -> dict[str, list[str]]:
        return await (await self._processing()).carry_out(ctx, resumes)

    async def _processing(self) -> Processing:
        here = await self._here()
        return Processing(await here.ready(), self.files, self.read or here.read, here.structurer)

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None, None]:
        here = await self._here()
        if here.turns.locked() and self._waiting >= self.settings.waiting:
            raise Busy("as many resumes are being processed as may: try again in a moment")
        self._waiting += 1
        try:
            await here.turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            here.turns.release()

    async def _here(self) -> _Opened:
        loop = asyncio.get_running_loop()
        if loop not in self._opened:
            self._opened[loop] = _Opened(self.address, self.settings, self._structurer)
        return self._opened[loop]

    async def _close(self) -> None:
        opened = self._opened.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.close()


class _Opened:
    """What one event loop has open: the database, and the children that read documents."""

    def __init__(self, address: str, settings: ResumesSettings, structurer: Structurer | None) -> None:
        self.structurer = structurer or _structurer(settings)
        self._records, self._prepared = records_at(address), False
        self._preparing = asyncio.Lock()
        self._pool, self._entered = Pool(settings.children, settings.limits), False
        self.turns = asyncio.Semaphore(settings.at_once)

    async def ready(self) -> Records:
        """The records, once their table is there."""
        if not self._prepared:
            async with self._preparing:
                if not self._prepared:
                    await self._records.prepare()
                    self._prepared = True
        return self._records

    async def read(self, data: bytes, media_type: str) -> Extracted:
        """Read a document in a child."""
        if not self._entered:
            self._entered = True
            await self._pool.__aenter__()
        return await self._pool.extract(data, media_type)

    async def close(self) -> None:
        """Close both."""
        if self._entered:
            await self._pool.__aexit__(None, None, None)
        await self._records.close()


def _structurer(settings: ResumesSettings) -> Structurer:
    model = settings.structuring
    if model is None:
        return Rules()
    from windlass.apps.resumes.structuring.model import ModelStructurer  # only who has a model loads it

    return ModelStructurer(model)


_INSTALLED: WeakKeyDictionary[Windlass, Resumes] = WeakKeyDictionary()


def resumes_of(app: Windlass) -> Resumes | None:
    """The resumes of an application, if it has any."""
    return _INSTALLED.get(app)


def install(app: Windlass, settings: ResumesSettings | None = None, structurer: Structurer | None = None) -> Resumes:
    """Give an application resumes: jobs, routes and pages. Without a structurer it is what the settings say."""
    resumes = Resumes(app, settings or app.settings_of("resumes", ResumesSettings), structurer)
    app.add_routes(lambda: _routes(resumes))
    app.add_pages(lambda: _room(resumes))
    _INSTALLED[app] = resumes
    return resumes


def _room(resumes: Resumes) -> Room:
    from windlass.apps.resumes.pages.room import room  # only who serves loads it

    return room(resumes)


def _routes(resumes: Resumes) -> Routes:
    from windlass.apps.resumes.routes import routes  # only who serves loads it

    return routes(resumes)
