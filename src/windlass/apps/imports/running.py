"""Running an import: read, check, write, one batch after another; what is written already is not written again."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from pydantic_core import to_json

from windlass import LeaseLost, Reject, SettingsError
from windlass.apps.imports.batching import Batching
from windlass.apps.imports.cells import Reading
from windlass.apps.imports.checking import Checker
from windlass.apps.imports.child import Child
from windlass.apps.imports.mapping import guess
from windlass.apps.imports.order import Summary, Told
from windlass.apps.imports.targets.target import Overtaken, Run, Unwritable
from windlass.apps.limited.refused import FileRefused
from windlass.apps.uploads.kept import NotThere

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from typing import BinaryIO

    from windlass import Ctx
    from windlass.apps.imports.checking import Checked
    from windlass.apps.imports.child import Opened
    from windlass.apps.imports.handler import ImportHandler
    from windlass.apps.imports.mapping import Mapped
    from windlass.apps.imports.order import Order
    from windlass.apps.imports.settings import ImportsSettings
    from windlass.apps.imports.targets.target import Counts, Target

NOT_ATOMIC = "all or nothing is not possible here: this database cannot write a whole file in one step"
_AT_LEAST = 500
"""rows that are checked at one go: a thread for each small batch would take longer than its rows"""
_SAVED_EVERY = 0.2
"""seconds: the database itself keeps how far the import is; this is for screens, and a safe point to stop at"""
_ROOM = 64 * 1024
"""bytes of a result for its errors, and as many for its preview: a result has a bound"""
_UNUSED = 50
"""headers that are listed as not used"""
T = TypeVar("T")


class Importing:
    """One attempt at one import."""

    def __init__(
        self, ctx: Ctx, handler: ImportHandler, order: Order, settings: ImportsSettings, target: Target
    ) -> None:
        self._ctx, self._handler, self._order, self._settings, self._target = ctx, handler, order, settings, target
        self._run = Run(job=ctx.origin, token=ctx.token, handler=handler, dry=order.dry_run, atomic=order.atomic)
        self._batching = Batching(self._run, target)
        self._saved_at = 0.0

    async def carry_out(self, file: BinaryIO) -> Summary:
        """Import the file; Reject says why it never can be."""
        try:
            return await self._carry_out(file)
        except (FileRefused, NotThere, SettingsError) as error:
            raise Reject(str(error)) from None
        except Unwritable as error:
            raise Reject(f"nothing was written: the database refuses a row: {error.reason}") from None
        except Overtaken:
            raise LeaseLost("a newer attempt has gone on with this import") from None

    async def _carry_out(self, file: BinaryIO) -> Summary:
        order = self._order
        if order.atomic and not self._target.atomic:
            raise SettingsError(NOT_ATOMIC)
        await self._target.prepare(self._handler)
        counts = await self._target.begin(self._run)
        # A dry run is begun anew: its preview is kept nowhere.
        after = 0 if order.dry_run else counts.last_row
        child = Child(file, order.filename, sheet=order.sheet_name, limits=self._settings.limits, after=after)
        async with child:
            opened = await child.opened()
            mapped = guess(self._handler, opened.header, order.mapping)
            if mapped.missing:
                raise SettingsError(_missing(mapped, opened))
            checker = Checker(self._handler, mapped, Reading(opened.epoch_1904, order.dates, self._target.exact))
            counts = await self._all(child, checker, counts, opened)
        counts = await self._target.finish(self._run, counts)
        return await self._summary(counts, mapped, opened)

    async def _all(self, child: Child, checker: Checker, counts: Counts, opened: Opened) -> Counts:
        """Every batch; the next one is checked while one is written."""
        behind = counts.last_row
        self._report(counts, opened)
        checked = self._checked(child, checker)
        ahead = asyncio.ensure_future(anext(checked, None))
        try:
            while (batch := await ahead) is not None:
                ahead = asyncio.ensure_future(anext(checked, None))
                ready = self._batching.batch(batch)
                if batch.last > behind:
                    given = {row[0]: row for row in batch.given}
                    counts = await self._batching.write(ready, given, counts)
                self._report(counts, opened)
                await self._save(counts)
        finally:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)
            await checked.aclose()
        return counts

    async def _checked(self, child: Child, checker: Checker) -> AsyncGenerator[Checked, None]:
        size = self._settings.batch
        async for rows in child.batches(max(size, _AT_LEAST // size * size)):
            parts = [rows[start : start + size] for start in range(0, len(rows), size)]
            for checked in await asyncio.to_thread(checker.check_all, parts):
                yield checked

    def _report(self, counts: Counts, opened: Opened) -> None:
        done = counts.total
        # The file's last row is known; blank rows among them are not, so that the end may come a little early.
        of = None if opened.rows is None else max(opened.rows - opened.header_row, done)
        good = counts.inserted + counts.updated if not self._order.atomic else done - counts.failed
        self._ctx.progress(done, of, f"{good:,} good, {counts.failed:,} refused")

    async def _save(self, counts: Counts) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._saved_at >= _SAVED_EVERY:
            self._saved_at = now
            await self._ctx.save(asdict(counts))

    async def _summary(self, counts: Counts, mapped: Mapped, opened: Opened) -> Summary:
        most = self._settings.errors
        rows = await self._target.refused(self._run.job, 0, most) if counts.failed and most else []
        errors = [Told.model_validate(error) for row in rows for error in row["errors"]]
        staged = self._order.atomic and not self._order.dry_run
        return Summary(
            total_rows=counts.total,
            inserted=counts.inserted,
            updated=counts.updated,
            unchanged=counts.unchanged,
            failed=counts.failed,
            errors=_fitting(errors[:most]),
            errors_total=counts.errors,
            dry_run=self._order.dry_run,
            atomic=self._order.atomic,
            applied=not self._order.dry_run and not (staged and counts.failed > 0),
            header=opened.header,
            columns=mapped.as_given(),
            unused=[name[:100] for name in mapped.unused[:_UNUSED]],
            preview=_fitting(self._batching.preview),
            read_as={
                "kind": opened.kind,
                "sheetName": opened.sheet,
                "encoding": opened.encoding,
                "separator": opened.separator,
            },
        )


def _fitting(given: Sequence[T]) -> list[T]:
    """As many of the first as there is room for."""
    left, kept = _ROOM, list[T]()
    for one in given:
        left -= len(to_json(one))
        if left < 0:
            break
        kept.append(one)
    return kept


def _missing(mapped: Mapped, opened: Opened) -> str:
    lacking = ", ".join(field.label for field in mapped.missing)
    headers = ", ".join(repr(name[:40]) for name in opened.header[:20] if name)
    found = f"its header (row {opened.header_row}) has {headers}"
    return f"the sheet has no column for {lacking}: {found}; name the columns in the mapping"
