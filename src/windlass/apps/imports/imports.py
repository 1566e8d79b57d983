"""Imports: the types that are known, their jobs, and the order that starts one."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from windlass import Ctx, DuplicateJob, Job, Reject, Retry, SettingsError, Status, every
from windlass.apps.imports import manifest
from windlass.apps.imports.files import SPREADSHEETS, Folder
from windlass.apps.imports.handler import ImportHandler
from windlass.apps.imports.order import Order, Summary
from windlass.apps.imports.running import NOT_ATOMIC, Importing
from windlass.apps.imports.settings import ImportsSettings
from windlass.apps.imports.shipped import SHIPPED
from windlass.apps.imports.targets.places import beside, target_at
from windlass.apps.uploads.kept import NotThere, Uploads

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from windlass import Handle, JobFunction, Windlass
    from windlass.apps.imports.targets.target import Target
    from windlass.web import Room, Routes

PREFIX = "import.xlsx."
"""what the types of jobs begin with; behind it comes the type of import"""
ENTITY = "import"
"""jobs of imports are about it: the fingerprint of what is imported"""
_SWEPT = timedelta(minutes=5)
_ENDED = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)
_AT_ONCE = 500


class Imports:
    """The imports of one application."""

    def __init__(self, app: Windlass, settings: ImportsSettings) -> None:
        self.app, self.settings = app, settings
        self.handlers: dict[str, ImportHandler] = {}
        self.folder, self.uploads = Folder(settings.folder), Uploads(settings.uploads, SPREADSHEETS)
        self._address: str | None = None
        self._jobs: dict[str, JobFunction[[Order], Summary]] = {}
        self._targets: defaultdict[asyncio.AbstractEventLoop, dict[str, Target]] = defaultdict(dict)
        app.job(name="import.sweep", queue=settings.queue, schedule=every(_SWEPT), retry=1)(self.sweep)
        app.on_close(self._close)

    def add(self, handler: type[ImportHandler]) -> type[ImportHandler]:
        """Register a type of import; also as a decorator."""
        made = handler()
        if made.import_type in self.handlers:
            raise SettingsError(f"two handlers are of the import type {made.import_type!r}: give one another")
        self.handlers[made.import_type] = made

        async def carry_out(ctx: Ctx, order: Order) -> Summary:
            return await self._carry_out(ctx, made, order)

        declare = self.app.job(
            name=PREFIX + made.import_type,
            queue=self.settings.queue,
            timeout=self.settings.timeout,
            max_crashes=self.settings.crashes,
            retry=Retry(5, never=(SettingsError,)),
        )
        self._jobs[made.import_type] = declare(carry_out)
        return handler

    async def _carry_out(self, ctx: Ctx, handler: ImportHandler, order: Order) -> Summary:
        with self._opened(order) as file:
            summary = await Importing(ctx, handler, order, self.settings, self.target).carry_out(file)
        if order.upload is not None and summary.applied:
            self.uploads.remove(order.upload)
        return summary

    def _opened(self, order: Order) -> BinaryIO:
        try:
            return self.folder.open(order.filename) if order.upload is None else self.uploads.open(order.upload)
        except NotThere as error:
            raise Reject(str(error)) from None

    @property
    def target(self) -> Target:
        """Where rows go, for the event loop that asks."""
        loop = asyncio.get_running_loop()
        known = self._targets[loop]
        if self.address not in known:
            known[self.address] = target_at(self.address)
        return known[self.address]

    @property
    def address(self) -> str:
        """The URL of where rows go."""
        return self._address or self.settings.database or beside(self.app.url)

    @address.setter
    def address(self, url: str) -> None:
        self._address = url

    def handler(self, type_: str) -> ImportHandler:
        """The handler of a type; SettingsError names those that are known."""
        found = self.handlers.get(type_)
        if found is None:
            raise SettingsError(f"there is no import type {type_[:60]!r}: known are {', '.join(sorted(self.handlers))}")
        return found

    def looked_up(self, filename: str) -> manifest.Entry | None:
        """What the manifest says of a file."""
        return manifest.read(self.settings.manifest, self.handlers).entry(filename)

    async def start(
        self, type_: str, order: Order, *, owner: str | None, force: bool = False, queue: str | None = None
    ) -> Handle[Summary]:
        """Enqueue an import. DuplicateJob where the same was imported before and did not fail, unless with `force`.

        With a `queue` of one's own, one that waits or runs already is returned instead (`created` is false).
        """
        self.handler(type_)
        mark = order.fingerprint(type_, owner)
        if order.atomic and not self.target.atomic:
            raise SettingsError(NOT_ATOMIC)
        if not force and not order.dry_run:
            page = await self.app.jobs.find(entity=(ENTITY, mark), status=Status.SUCCEEDED, limit=1)
            if page.jobs and _was_written(page.jobs[0]):
                raise DuplicateJob(page.jobs[0].id, mark)
        tags = ["import", *([f"upload:{order.upload}"] if order.upload else [])]
        using = self._jobs[type_].using(
            unique=f"import:{mark}",
            on_conflict="raise" if queue is None else "existing",
            queue=queue or self.settings.queue,
            user=owner,
            entity=(ENTITY, mark),
            tags=tags,
        )
        return await using.enqueue(order)

    async def sweep(self) -> int:
        """Remove files that were sent and are needed no more, and what is kept of imports whose jobs are gone."""
        removed = 0
        for token in list(self.uploads.older_than(60)):
            page = await self.app.jobs.find(tags=[f"upload:{token}"], limit=50)
            if page.jobs and all(job.status in _ENDED for job in page.jobs) and not _to_be_used(page.jobs):
                self.uploads.remove(token)
                removed += 1
        for token in list(self.uploads.older_than(self.settings.keep)):
            page = await self.app.jobs.find(tags=[f"upload:{token}"], limit=50)
            if all(job.status in _ENDED for job in page.jobs):
                self.uploads.remove(token)
                removed += 1
        if self._targets or self.settings.database:
            removed += await self._forget()
        return removed

    async def _forget(self) -> int:
        known = await self.target.known(_AT_ONCE)
        jobs = await self.app.jobs.several(known)
        gone = [job for job, found in zip(known, jobs, strict=True) if found is None]
        if gone:
            await self.target.forget(gone, list(self.handlers.values()))
        return len(gone)

    async def _close(self) -> None:
        for target in self._targets.pop(asyncio.get_running_loop(), {}).values():
            await target.close()


def _was_written(job: Job) -> bool:
    """Whether an import that has succeeded has written anything: all or nothing may have been nothing."""
    return job.result_json is None or json.loads(job.result_json).get("applied", True)


def _to_be_used(jobs: Sequence[Job]) -> bool:
    """Whether the last that was done with a file was to try it: its import may come yet."""
    newest = jobs[0]
    return newest.status is Status.SUCCEEDED and json.loads(newest.payload_json)["order"].get("dryRun", False)


_INSTALLED: WeakKeyDictionary[Windlass, Imports] = WeakKeyDictionary()


def imports_of(app: Windlass) -> Imports | None:
    """The imports of an application, if it has any."""
    return _INSTALLED.get(app)


def install(app: Windlass, settings: ImportsSettings | None = None, *, shipped: bool = True) -> Imports:
    """Give an application imports: jobs and routes; with the types that ship, unless they are not wanted."""
    imports = Imports(app, settings or app.settings_of("imports", ImportsSettings))
    if shipped:
        for handler in SHIPPED:
            imports.add(handler)
    app.add_routes(lambda: _routes(imports))
    app.add_pages(lambda: _room(imports))
    _INSTALLED[app] = imports
    return imports


def _room(imports: Imports) -> Room:
    from windlass.apps.imports.pages.room import room  # only who serves loads it

    return room(imports)


def _routes(imports: Imports) -> Routes:
    from windlass.apps.imports.routes.routes import routes  # only who serves loads it

    return routes(imports)
