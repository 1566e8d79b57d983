"""Checking: rows of cells become rows of the model, or errors that name row and column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from windlass.apps.imports.cells import Misfit, Reading, column_reader, reader, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

    from windlass.apps.imports.handler import ImportHandler, ImportRow
    from windlass.apps.imports.mapping import Mapped

_SAID = {
    "missing": "is required",
    "string_too_short": "is required",
    "none_required": "has to be empty",
    "decimal_max_digits": "has too many digits",
    "decimal_max_places": "has too many decimal places",
    "decimal_whole_digits": "has too many digits",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellError:
    """What is wrong with one cell, in words for the person who typed it."""

    row: int
    reason: str
    """`email: not a valid address`"""
    column: str | None = None
    """the sheet's own name of it"""
    field: str | None = None
    value: str | None = None
    code: str = "invalid"

    def as_json(self) -> dict[str, Any]:
        """As results and downloads have it."""
        return {
            "row": self.row,
            "reason": self.reason,
            "column": self.column,
            "field": self.field,
            "value": self.value,
            "code": self.code,
        }


@dataclass(slots=True)
class Checked:
    """One batch."""

    numbers: list[int] = field(default_factory=list[int])
    """the sheet's own numbers of the good rows"""
    rows: list[ImportRow] = field(default_factory=list["ImportRow"])
    errors: list[CellError] = field(default_factory=list[CellError])
    given: Sequence[list[Any]] = ()
    """the good rows as the sheet has them, each after its number"""
    bad: list[list[Any]] = field(default_factory=list[list[Any]])
    """the rows that were refused, each after its number"""
    last: int = 0
    """the last row's number"""

    @property
    def total(self) -> int:
        """Rows that were looked at."""
        return len(self.rows) + len(self.bad)


class Checker:
    """Of one file: knows where which field stands and how its cells are read."""

    def __init__(self, handler: ImportHandler, mapped: Mapped, reading: Reading) -> None:
        self._columns = mapped.columns
        self._readers = [
            (column.index + 1, column.field.name, reader(column.field.kind, reading)) for column in mapped.columns
        ]
        self._sweeps = [
            (column.index + 1, column.field.name, column_reader(column.field.kind, reading))
            for column in mapped.columns
        ]
        self._width = max((index for index, _, _ in self._readers), default=0) + 1
        self._headers = {column.field.name: column.header for column in mapped.columns}
        self._labels = {one.name: one.label for one in handler.fields}
        self._names = {one.label: one.name for one in handler.fields}
        self._rows: TypeAdapter[list[ImportRow]] = TypeAdapter(list[handler.row])  # type: ignore[name-defined]  # a class that is a value

    def check_all(self, batches: Sequence[Sequence[list[Any]]]) -> list[Checked]:
        """Several batches."""
        return [self.check(batch) for batch in batches]

    def check(self, batch: Sequence[list[Any]]) -> Checked:
        """All rows of a batch, each after its number."""
        found = Checked(last=batch[-1][0] if batch else 0)
        values, given = self._swept(batch), batch
        if values is None:
            values, given = self._one_by_one(batch, found)
        try:
            found.rows = self._rows.validate_python(values)
        except ValidationError as error:
            refused = self._explain(error, given, found, frozenset())
            good = [index for index in range(len(given)) if index not in refused]
            found.rows = self._rows.validate_python([values[index] for index in good])
            found.bad += [given[index] for index in sorted(refused)]
            given = [given[index] for index in good]
        found.numbers, found.given = [row[0] for row in given], given
        found.bad.sort(key=lambda row: row[0])
        found.errors.sort(key=lambda error: error.row)
        return found

    def _swept(self, batch: Sequence[list[Any]]) -> list[dict[str, Any]] | None:
        """The values of all rows, read column by column; None where a cell cannot be read or rows are too short."""
        if not batch or min(map(len, batch)) < self._width:
            return None
        columns = list(zip(*batch, strict=False))  # behind the width rows may differ
        try:
            read = [(name, sweep(columns[index])) for index, name, sweep in self._sweeps]
        except Misfit:
            return None
        names = [name for name, _ in read]
        rows = [dict(zip(names, values, strict=True)) for values in zip(*(values for _, values in read), strict=True)]
        for name, values in read:
            if None in values:
                for row, value in zip(rows, values, strict=True):
                    if value is None:
                        del row[name]
        return rows

    def _one_by_one(
        self, batch: Sequence[list[Any]], found: Checked
    ) -> tuple[list[dict[str, Any]], Sequence[list[Any]]]:
        """The values of the rows that can be read, and these rows; what is wrong with the others is noted."""
        values: list[dict[str, Any]] = []
        given: list[list[Any]] = []
        for row in batch:
            read, misfits = self._read(row, found)
            if misfits:
                found.bad.append(row)
                self._explain_rest(row, read, misfits, found)
            else:
                values.append(read)
                given.append(row)
        return values, given

    def _read(self, row: list[Any], found: Checked) -> tuple[dict[str, Any], frozenset[str]]:
        """The values of a row, and the fields whose cells cannot be read."""
        values: dict[str, Any] = {}
        width, misfits = len(row), frozenset[str]()
        for index, name, read in self._readers:
            if index >= width:
                continue
            cell = row[index]
            try:
                value = read(cell)
            except Misfit as misfit:
                found.errors.append(self._error(row, name, misfit.code, misfit.reason, cell))
                misfits |= {name}
                continue
            if value is not None:
                values[name] = value
        return values, misfits

    def _explain_rest(self, row: list[Any], read: dict[str, Any], misfits: frozenset[str], found: Checked) -> None:
        """What is wrong besides with a row that is refused anyhow: all of it is to be corrected at once."""
        try:
            self._rows.validate_python([read])
        except ValidationError as error:
            self._explain(error, [row], found, misfits)

    def _explain(
        self, error: ValidationError, given: Sequence[list[Any]], found: Checked, known: frozenset[str]
    ) -> set[int]:
        refused: set[int] = set()
        for one in error.errors(include_url=False, include_context=False):
            place = one["loc"]
            index = int(place[0])
            refused.add(index)
            at = str(place[1]) if len(place) > 1 else ""
            name = self._names.get(at, at) or None
            if name in known:
                continue
            row = given[index]
            cell = next((row[i] for i, field, _ in self._readers if field == name and i < len(row)), None)
            found.errors.append(self._error(row, name, one["type"].replace("_", "-"), _reason(one), cell))
        return refused

    def _error(self, row: list[Any], name: str | None, code: str, reason: str, cell: Any) -> CellError:
        label = self._labels.get(name or "", name)
        return CellError(
            row=row[0],
            reason=reason if label is None else f"{label}: {reason}",
            column=self._headers.get(name or ""),
            field=label,
            value=shown(cell),
            code=code,
        )


def _reason(error: ErrorDetails) -> str:
    said = _SAID.get(error["type"])
    if said is not None:
        return said
    text = error["msg"].removeprefix("Value error, ")
    if text.startswith("Input should be "):
        return f"has to be {text.removeprefix('Input should be ')}"
    if text.startswith("String should "):
        return f"should {text.removeprefix('String should ')}"
    return text[:200]
