"""What every target does: it writes rows, their errors and how far it is, so that nothing is counted twice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windlass.apps.imports.handler import ImportHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How far an import is. Kept beside the rows: a new attempt goes on behind `last_row`."""

    last_row: int = 0
    total: int = 0
    inserted: int = 0
    updated: int = 0
    """what was there before, changed or not"""
    unchanged: int = 0
    """those of them that were alike"""
    failed: int = 0
    errors: int = 0

    def plus(self, **more: int) -> Counts:
        """With more of each; `last_row` is set."""
        moved = {name: getattr(self, name) + n for name, n in more.items() if name != "last_row"}
        return replace(self, **moved, last_row=more.get("last_row", self.last_row))


class Refused(TypedDict):
    """A row that was refused, as it is kept for the download."""

    row: int
    cells: list[Any]
    errors: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one step writes."""

    rows: Sequence[tuple[Any, ...]]
    """values in the order of the handler's fields, every key once"""
    numbers: Sequence[int]
    """the sheet's numbers of these rows"""
    repeats: Sequence[int]
    """the numbers of rows whose key another one of the batch has, too: they count as updates"""
    refused: Sequence[Refused]
    last_row: int

    @property
    def total(self) -> int:
        """Rows of the sheet."""
        return len(self.rows) + len(self.repeats) + len(self.refused)

    @property
    def errors(self) -> int:
        """Bad cells."""
        return sum(len(one["errors"]) for one in self.refused)

    def until(self, last: int) -> Batch:
        """The part of it up to this row."""
        return self._part(lambda number: number <= last, last)

    def after(self, row: int) -> Batch:
        """The part of it behind this row."""
        return self._part(lambda number: number > row, self.last_row)

    def refusing(self, refused: Sequence[Refused]) -> Batch:
        """The same without these rows, which are refused."""
        rows = {one["row"] for one in refused}
        part = self._part(lambda number: number not in rows, self.last_row)
        return replace(part, refused=sorted([*self.refused, *refused], key=lambda one: one["row"]))

    def _part(self, belongs: Callable[[int], bool], last_row: int) -> Batch:
        kept = [(row, number) for row, number in zip(self.rows, self.numbers, strict=True) if belongs(number)]
        return Batch(
            rows=[row for row, _ in kept],
            numbers=[number for _, number in kept],
            repeats=[number for number in self.repeats if belongs(number)],
            refused=[one for one in self.refused if belongs(one["row"])],
            last_row=last_row,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt at one import."""

    job: str
    token: int
    """of the attempt's lease: who has an older one writes nothing any more"""
    handler: ImportHandler
    dry: bool = False
    """rows are counted, and not written"""
    atomic: bool = False
    """rows are set aside, and written in one step at the end"""


class Overtaken(Exception):
    """A newer attempt has gone on with this import."""


class Unwritable(Exception):
    """The database refuses rows that were found good: a constraint of the table, something that it cannot keep."""

    def __init__(self, reason: str, rows: Mapping[int, str] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason.partition("\n")[0][:200]
        self.rows = rows
        """why, by the row's number, where the database says which"""


class Target(Protocol):
    """A database that rows go to."""

    atomic: bool
    """whether all rows of a file can be written in one step"""
    exact: bool
    """whether it keeps more digits of a number than a binary fraction has"""

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        ...

    async def prepare(self, handler: ImportHandler) -> None:
        """Make the tables that are missing; SettingsError where one that is there does not fit."""
        ...

    async def begin(self, run: Run) -> Counts:
        """How far the import is; from now on older attempts write nothing. Raises Overtaken."""
        ...

    async def write(self, run: Run, batch: Batch, before: Counts) -> Counts:
        """Write a batch, and how far the import is then. Raises Overtaken; Unwritable, and the ledger stands still."""
        ...

    async def finish(self, run: Run, counts: Counts) -> Counts:
        """Write what was set aside, if nothing was refused; forget it in any case."""
        ...

    async def refused(self, job: str, after: int, most: int) -> list[Refused]:
        """Rows of an import that were refused, in order."""
        ...

    async def forget(self, jobs: Sequence[str], handlers: Sequence[ImportHandler]) -> None:
        """Forget how far these imports were, their refused rows, and what they have set aside."""
        ...

    async def known(self, most: int) -> list[str]:
        """Imports that something is kept of, the oldest first."""
        ...

    async def close(self) -> None:
        """Close what was opened."""
        ...


@dataclass(slots=True)
class Unique:
    """Rows of a batch by their key: of rows with the same one the last wins."""

    rows: dict[tuple[Any, ...], tuple[int, tuple[Any, ...]]] = field(
        default_factory=dict[tuple[Any, ...], tuple[int, tuple[Any, ...]]]
    )
    repeats: list[int] = field(default_factory=list[int])


def unique(keys: Sequence[int], rows: Sequence[tuple[Any, ...]], numbers: Sequence[int]) -> Unique:
    """The rows without those whose key comes again."""
    found = Unique()
    columns = ([row[index] for row in rows] for index in keys)
    found.rows = dict(zip(zip(*columns, strict=True), zip(numbers, rows, strict=True), strict=True))
    kept = {number for number, _ in found.rows.values()}
    found.repeats = [] if len(kept) == len(numbers) else [number for number in numbers if number not in kept]
    return found


def document(handler: ImportHandler, row: Sequence[Any]) -> Mapping[str, Any]:
    """A row as documents have it."""
    return {field.label: value for field, value in zip(handler.fields, row, strict=True)}
