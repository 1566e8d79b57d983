"""Files: writes are enqueued, each with its place in the order of its file; versions are read and restored."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from windlass import Ctx, Job, Limit, Retry, Status, WindlassError, every
from windlass.apps.blobs.places import blobs_at
from windlass.apps.files.disk import Disk
from windlass.apps.files.names import Name, Space
from windlass.apps.files.order import Order, Result, held
from windlass.apps.files.records.places import records_at
from windlass.apps.files.settings import FilesSettings
from windlass.apps.files.state import State, Version, check, issue, withdraw
from windlass.apps.files.sweeping import sweep
from windlass.apps.files.writing import Writing

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Sequence

    from windlass import Handle, Windlass
    from windlass.apps.blobs.blobs import Blobs
    from windlass.apps.files.records.records import Records
    from windlass.web import Room, Routes

TYPE = "files.write"
"""of the jobs that write"""
PROJECT = "project"
"""jobs of files are about their project"""
_SWEPT = timedelta(minutes=5)
_NEAR = 0.9
_SHORTEST_LEASE = 1.0
_LOG = logging.getLogger("windlass.files")
COUNTED: dict[str, tuple[Status, ...]] = {
    "waiting": (Status.QUEUED, Status.BLOCKED),
    "active": (Status.PROCESSING,),
    "completed": (Status.SUCCEEDED,),
    "failed": (Status.FAILED, Status.CANCELLED),
    "delayed": (Status.SCHEDULED, Status.RETRYING),
}
"""windlass's statuses under the names that files tell them by"""


class NoSuchFile(WindlassError):
    """There is no such file, or no such version of it."""


class QuotaExceeded(WindlassError):
    """A project holds as much as it may."""


class Files:
    """The files of one application."""

    def __init__(self, app: Windlass, settings: FilesSettings) -> None:
        self.app, self.settings = app, settings
        self.disk = Disk(settings.root)
        self.blobs: Blobs = blobs_at(settings.blobs, "files")
        self.writing: type[Writing] = Writing
        """what carries out one attempt at a write"""
        self._records: dict[asyncio.AbstractEventLoop, Records] = {}
        self._preparing: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        declare = app.job(
            name=TYPE,
            queue=settings.queue,
            limit=Limit("lock:files" if settings.sequential else "lock:project:{space}:file:{file}", 1),
            retry=Retry(settings.retries + 1, base=settings.backoff, factor=2.0),
            timeout=settings.timeout,
        )
        self._job = declare(self._write)
        app.job(name="files.sweep", queue=settings.queue, schedule=every(_SWEPT), retry=1)(self.sweep)
        # The lock of a file is the lease of the job that holds it. Shorter ones would be lost on a busy machine.
        app.lease_at_most(max(_SHORTEST_LEASE, settings.lock_timeout))
        app.on_close(self._close)

    async def records(self) -> Records:
        """What is true of each file, for the event loop that asks."""
        loop = asyncio.get_running_loop()
        async with self._preparing.setdefault(loop, asyncio.Lock()):
            if (found := self._records.get(loop)) is None:
                found = records_at(self.settings.database or self.app.url, self.app.namespace)
                await found.prepare()
                self._records[loop] = found
        return found

    async def write(
        self,
        name: Name,
        content: bytes | AsyncIterable[bytes],
        *,
        path: str | None = None,
        if_match: Sequence[str] = (),
        if_none_match: bool = False,
        user: str | None = None,
    ) -> Handle[Result]:
        """Enqueue a write of a file. What is written is the content as it is now; it waits behind earlier writes.

        Raises PathRefused, QuotaExceeded, TooManyWait, PathTaken, BlobTooLarge; Unmet if nothing waits and the
        condition does not hold now. If something waits, the condition is looked at when its turn has come.
        """
        if path is not None:
            path = await asyncio.to_thread(self.disk.check, name.space, path)
        if isinstance(content, bytes) and len(content) <= min(self.settings.inline, self.settings.largest):
            text, base64 = held(content)
            sha256 = hashlib.sha256(content).hexdigest()
            order = Order(sha256=sha256, size=len(content), text=text, base64=base64)
        else:
            blob = await self.blobs.put(content, largest=self.settings.largest)
            order = Order(sha256=blob.sha256, size=blob.size)
        order = order.model_copy(update={"if_match": list(if_match), "if_none_match": if_none_match})
        return await self._enqueue(name, order, path, user)

    async def restore(
        self, name: Name, seq: int, *, if_match: Sequence[str] = (), user: str | None = None
    ) -> Handle[Result]:
        """Enqueue a write of what an earlier version holds, as a new version."""
        version = await self.version(name, seq)
        await self.blobs.touch(version.sha256)
        order = Order(sha256=version.sha256, size=version.size, if_match=list(if_match), restores=seq)
        return await self._enqueue(name, order, None, user)

    async def _enqueue(self, name: Name, order: Order, path: str | None, user: str | None) -> Handle[Result]:
        records, settings = await self.records(), self.settings
        now = time.time_ns() // 1_000_000

        def place(state: State) -> tuple[State, int]:
            if not state.waiting:
                check(state, order.if_match, if_none_match=order.if_none_match)
            return issue(state, size=order.size, sha256=order.sha256, at=now, disk=path, most=settings.waiting)

        near = await self._check_quota(records, name, order.size)
        seq = await records.change(name, place)
        try:
            if near:  # counted with what was placed, so that writes which arrive at the same moment exceed it neither
                await self._check_quota(records, name, 0)
            using = self._job.using(correlation=_key(name, seq), user=user, entity=(PROJECT, name.space.text))
            handle = await using.enqueue(name.space.text, name.file, order.model_copy(update={"seq": seq}))
        except BaseException:
            # If it was enqueued all the same, and only the answer was lost, its job takes this place again.
            await asyncio.shield(self._withdraw(records, name, seq))
            raise
        _LOG.info("write %s of file %s is enqueued, %s bytes: job %s", seq, name.text, order.size, handle.id)
        return handle

    async def _withdraw(self, records: Records, name: Name, seq: int) -> None:
        await records.change(name, lambda state: (withdraw(state, seq), None))

    async def _check_quota(self, records: Records, name: Name, more: int) -> bool:
        """Raise QuotaExceeded if the project would hold more than it may; whether it comes near to that."""
        usage, settings = await records.usage(name.space), self.settings
        holds = usage.bytes + more
        if holds > settings.project_bytes:
            raise QuotaExceeded(
                f"the project would hold {holds:,} bytes in its files, their versions and what waits; it may hold"
                f" {settings.project_bytes:,}"
            )
        full = usage.files >= settings.project_files
        if usage.files > settings.project_files or (full and not await self._is_there(records, name)):
            raise QuotaExceeded(f"the project holds {settings.project_files:,} files, which is the most that it may")
        return holds > _NEAR * settings.project_bytes or usage.files > _NEAR * settings.project_files

    async def _is_there(self, records: Records, name: Name) -> bool:
        found = await records.read(name)
        return found is not None and found.is_there

    async def state(self, name: Name) -> State:
        """What is true of a file now; NoSuchFile if nothing was ever written."""
        found = await (await self.records()).read(name)
        if found is None or not found.is_there:
            raise NoSuchFile("there is no such file")
        return found

    async def current(self, name: Name) -> Version:
        """The current version; NoSuchFile if none was written yet."""
        found = (await self.state(name)).current
        if found is None:
            raise NoSuchFile("nothing was written to this file yet")
        return found

    async def version(self, name: Name, seq: int) -> Version:
        """A version that is kept; NoSuchFile where there is none."""
        found = (await self.state(name)).version(seq)
        if found is None:
            raise NoSuchFile(f"version {seq} of this file is not kept")
        return found

    async def read(self, name: Name) -> bytes:
        """The content of the current version."""
        return await self.blobs.get((await self.current(name)).sha256)

    async def stats(self, space: Space | None = None) -> dict[str, int]:
        """How many writes are in each state: of a project, or of all. Ended jobs count as long as they are kept."""
        about: dict[str, Any] = {"type": TYPE} | ({} if space is None else {"entity": (PROJECT, space.text)})
        counts = await asyncio.gather(*(self.app.jobs.count(status=statuses, **about) for statuses in COUNTED.values()))
        return {word: found.n for word, found in zip(COUNTED, counts, strict=True)}

    async def sweep(self) -> int:
        """Collect content that nothing names, and let writes go whose jobs have ended without a word."""
        return await sweep(self)

    async def _write(self, ctx: Ctx, space: str, file: str, order: Order) -> Result:
        owner, _, project = space.rpartition("/")
        name = Name(Space(owner, project), file)
        return await self.writing(self, await self.records(), ctx, name, order).carry_out()

    async def job_of(self, name: Name, seq: int) -> Job | None:
        """The job of a write, whether it waits, runs or has ended; None if it has not come, or is kept no more."""
        page = await self.app.jobs.find(correlation=_key(name, seq), limit=1)
        return page.jobs[0] if page.jobs else None

    async def _close(self) -> None:
        records = self._records.pop(asyncio.get_running_loop(), None)
        self._preparing.pop(asyncio.get_running_loop(), None)
        if records is not None:
            await records.close()
        await self.blobs.close()


def _key(name: Name, seq: int) -> str:
    return f"file:{name.text}#{seq}"


_INSTALLED: WeakKeyDictionary[Windlass, Files] = WeakKeyDictionary()


def files_of(app: Windlass) -> Files | None:
    """The files of an application, if it has any."""
    return _INSTALLED.get(app)


def install(app: Windlass, settings: FilesSettings | None = None) -> Files:
    """Give an application files: the job that writes, routes and pages."""
    files = Files(app, settings or app.settings_of("files", FilesSettings))
    app.add_routes(lambda: _routes(files))
    app.add_pages(lambda: _room(files))
    _INSTALLED[app] = files
    return files


def _room(files: Files) -> Room:
    from windlass.apps.files.pages.room import room  # only who serves loads it

    return room(files)


def _routes(files: Files) -> Routes:
    from windlass.apps.files.routes import routes  # only who serves loads it

    return routes(files)
