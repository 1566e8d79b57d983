"""`import`: a spreadsheet's rows into a table, here and now, with a bar and the first errors."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.apps.installed import SHIPPED, shipped
from windlass.cli.desk import at_desk, globals_of
from windlass.cli.output import JOB_FAILED, REFUSED, USAGE, Stop
from windlass.core.errors import DuplicateJob
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from windlass.apps.imports.imports import Imports
    from windlass.apps.imports.order import Order, Summary, Told
    from windlass.cli.desk import Desk
    from windlass.client.handle import Handle

_SHOWN = 10
_LEASE = 4.0
"""seconds"""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_PIECE = 1024 * 1024


def import_(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="An .xlsx, .ods or .csv file.", exists=True, dir_okay=False)],
    as_: Annotated[
        str | None, typer.Option("--as", metavar="TYPE", help="What its rows are; else the manifest says.")
    ] = None,
    into: Annotated[
        str | None, typer.Option(metavar="URL", help="The database that rows go to; else the store's.")
    ] = None,
    sheet: Annotated[str | None, typer.Option(help="The sheet; else the first.")] = None,
    column: Annotated[
        list[str] | None, typer.Option("--map", metavar="FIELD=HEADER", help="A column under a name of its own.")
    ] = None,
    dates: Annotated[str, typer.Option(help="How 3/4/2026 is meant: dmy or mdy.")] = "unsaid",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check only, write nothing.")] = False,
    atomic: Annotated[bool, typer.Option("--atomic", help="All rows or none.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also what was imported before.")] = False,
    corrections: Annotated[
        Path | None, typer.Option(metavar="OUT.xlsx", help="Put the refused rows there, with the reasons.")
    ] = None,
) -> None:
    """Import a spreadsheet: rows are checked and upserted, and every bad cell is named.

    Example: windlass import customers.xlsx --as customers --dry-run
    """
    if "imports" not in shipped():
        raise Stop(USAGE, 'imports need the extra "imports": pip install "windlass[imports]"')
    given = globals_of(ctx)
    from dataclasses import replace

    from windlass.apps.imports.cells import DateOrder

    if dates not in list(DateOrder):
        raise Stop(USAGE, f"--dates {dates!r}: expected dmy or mdy")
    ctx.find_root().obj = replace(given, app=given.app or SHIPPED)
    asked: dict[str, Any] = {"sheet_name": sheet, "mapping": _mapping(column or []), "dates": dates}
    asked |= {"dry_run": dry_run, "atomic": atomic}
    work = _Work(file, as_, into, asked, force=force, corrections=corrections)
    at_desk(ctx, work.carry_out, makes=True)


def _mapping(columns: list[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in columns]
    for field, equals, _ in pairs:
        if not field or not equals:
            raise Stop(USAGE, f"--map {field!r}: expected FIELD=HEADER, such as --map email='E-mail of the customer'")
    return {field: header for field, _, header in pairs}


class _Work:
    """One import from the command line."""

    def __init__(
        self,
        file: Path,
        type_: str | None,
        into: str | None,
        asked: dict[str, Any],
        *,
        force: bool,
        corrections: Path | None,
    ) -> None:
        self._file, self._type, self._into, self._asked = file, type_, into, asked
        self._force, self._corrections = force, corrections

    async def carry_out(self, desk: Desk) -> None:
        imports = self._imports(desk)
        type_ = self._type_of(imports)
        order = await self._order(imports, desk.actor)
        # A queue of this folder's: no other worker takes what it could not read, and what was broken off goes on here.
        queue = _queue_of(imports)
        try:
            handle = await self._started(desk, imports, type_, order, queue)
        except BaseException:
            imports.uploads.remove(order.upload or "")
            raise
        # A short lease: what was broken off by force goes on within seconds.
        async with desk.app.worker(queues={queue: 1}, lease=_LEASE, heartbeat=_LEASE / 4, rescue=_LEASE / 4):
            await self._follow(desk, handle)
        job = await handle.job()
        for tag in job.tags:  # a dry run leaves its file for its import, and a failed one for another try: not here
            imports.uploads.remove(tag.removeprefix("upload:"))
        if job.status is not Status.SUCCEEDED:
            raise Stop(
                JOB_FAILED, f"{self._file.name} was not imported: {job.error.message if job.error else job.status}"
            )
        await self._tell(desk, imports, handle)

    async def _started(self, desk: Desk, imports: Imports, type_: str, order: Order, queue: str) -> Handle[Summary]:
        try:
            handle = await imports.start(type_, order, owner=None, force=self._force, queue=queue)
        except DuplicateJob as error:
            raise Stop(
                REFUSED, f"this was imported before, by job {error.existing}: --force imports it again"
            ) from None
        if not handle.created:
            imports.uploads.remove(order.upload or "")
            if (await handle.job()).queue != queue:
                raise Stop(REFUSED, f"this is being imported by job {handle.id}: windlass wait {handle.id}")
            desk.screen.remark(f"goes on with job {handle.id}, which was broken off")
        return handle

    def _imports(self, desk: Desk) -> Imports:
        from windlass.apps.imports.imports import imports_of

        imports = imports_of(desk.app)
        if imports is None:
            raise Stop(USAGE, "this application has no imports: install them with windlass.apps.imports.install(app)")
        if self._into is not None:
            imports.address = self._into
        return imports

    def _type_of(self, imports: Imports) -> str:
        if self._type is not None:
            return imports.handler(self._type).import_type
        entry = imports.looked_up(self._file.name)
        if entry is None:
            known = ", ".join(sorted(imports.handlers))
            raise Stop(USAGE, f"the manifest says nothing of {self._file.name!r}: give --as, one of {known}")
        return entry.type

    async def _order(self, imports: Imports, actor: str) -> Order:
        from windlass.apps.imports.order import Order

        seen = hashlib.sha256()

        async def parts() -> AsyncIterator[bytes]:
            with self._file.open("rb") as file:  # nothing else runs here yet
                while part := file.read(_PIECE):
                    seen.update(part)
                    yield part

        # What lies on this machine is the caller's own: only what is sent over the net is bounded.
        sent = await imports.uploads.take(parts(), owner=actor, filename=self._file.name, largest=2**40)
        return Order(filename=self._file.name, sha256=seen.hexdigest(), upload=sent.token, **self._asked)

    async def _follow(self, desk: Desk, handle: Handle[Summary]) -> None:
        from windlass.core.job import Progress

        with desk.screen.bar(self._file.name) as bar:
            async for happened in handle.events():
                if isinstance(happened, Progress):
                    bar(happened.done, happened.of, happened.note)

    async def _tell(self, desk: Desk, imports: Imports, handle: Handle[Summary]) -> None:
        from windlass.apps.imports.sheet import workbook

        summary, job, screen = await handle.result(), await handle.job(), desk.screen
        if self._corrections is not None and summary.failed:
            made = await workbook(imports.target, job.origin or job.id, summary.header)
            self._corrections.write_bytes(made)  # nothing else runs here any more
        if screen.as_json:
            screen.fact({"job": job.id, **summary.model_dump(mode="json", by_alias=True)})
            return
        would = "would be " if summary.dry_run else ""
        screen.say(
            f"{summary.total_rows:,} rows  {would}inserted {summary.inserted:,}  {would}updated {summary.updated:,}"
            f" ({summary.unchanged:,} alike)  failed {summary.failed:,}   {(job.duration_ms or 0) / 1000:.1f} s"
            f"   job {job.id}"
        )
        if not summary.applied and not summary.dry_run:
            screen.say("nothing was written: all rows or none were asked for")
        screen.say(_read_as(summary))
        if summary.errors:
            screen.say()
            rows = [(f"{one.row:,}", one.column, one.value, _bare(one)) for one in summary.errors[:_SHOWN]]
            screen.table(("Row", "Column", "Value", "What is wrong"), [[cell or "" for cell in row] for row in rows])
        if summary.errors_total > _SHOWN:
            more = f"and {summary.errors_total - _SHOWN:,} more"
            screen.say(f"{more}: --corrections OUT.xlsx has all of them" if self._corrections is None else more)
        if self._corrections is not None and summary.failed:
            screen.say(f"the refused rows are in {self._corrections}: correct them, and import that file")


def _queue_of(imports: Imports) -> str:
    """The queue of what is imported from this folder of this machine."""
    place = f"{platform.node()}:{imports.settings.uploads.absolute()}"
    return f"{imports.settings.queue}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


def _read_as(summary: Summary) -> str:
    """How the file was understood: what is read wrongly is seen here first."""
    read = summary.read_as
    found = [f"sheet {read['sheetName']}"] if read.get("sheetName") else []
    if read.get("encoding"):
        found += [str(read["encoding"]), f"cells between {_SEPARATORS.get(read['separator'], read['separator'])}"]
    taken = sorted(summary.columns.items(), key=lambda one: summary.header.index(one[1]))
    columns = ", ".join(
        name if name.casefold() == header.casefold() else f"{name} from {header}" for name, header in taken
    )
    unused = f"; not used: {', '.join(summary.unused)}" if summary.unused else ""
    return f"read as {', '.join([str(read.get('kind')), *found])}: {columns}{unused}"


def _bare(error: Told) -> str:
    """What is wrong, without the field, where the column says it."""
    return error.reason.removeprefix(f"{error.field}: ") if error.column else error.reason
