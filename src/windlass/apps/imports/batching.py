"""From rows that were checked to a batch that is written, and what is done where the database refuses one of them."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from windlass.apps.imports.targets.target import Batch, Refused, Unwritable, unique

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windlass.apps.imports.checking import Checked
    from windlass.apps.imports.targets.target import Counts, Run, Target

_PREVIEWED = 20
_LONGEST_SHOWN = 200
_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


class Batching:
    """The batches of one attempt."""

    def __init__(self, run: Run, target: Target) -> None:
        self._run, self._target = run, target
        self._values: Callable[[Any], tuple[Any, ...]] = _tuple_of([field.name for field in run.handler.fields])
        self._keys = [index for index, field in enumerate(run.handler.fields) if field.name in run.handler.key]
        self._seen = set[int]()
        """of a dry run: the keys that rows before had, as they would be there by now"""
        self.preview: list[dict[str, Any]] = []
        """of a dry run: the first rows as they would be stored"""

    def batch(self, checked: Checked) -> Batch:
        """What is written of these rows."""
        rows = [self._values(row) for row in checked.rows]
        found = unique(self._keys, rows, checked.numbers)
        by_row: dict[int, list[dict[str, Any]]] = {}
        for error in checked.errors:
            by_row.setdefault(error.row, []).append(error.as_json())
        refused = [Refused(row=row[0], cells=row[1:], errors=by_row.get(row[0], [])) for row in checked.bad]
        batch = Batch(
            rows=[row for _, row in found.rows.values()],
            numbers=[number for number, _ in found.rows.values()],
            repeats=found.repeats,
            refused=refused,
            last_row=checked.last,
        )
        return self._as_if(batch, checked) if self._run.dry else batch

    def _as_if(self, batch: Batch, checked: Checked) -> Batch:
        """As it would be, had the rows before been written: their keys would be there."""
        self._preview(checked)
        kept, repeats = list[tuple[tuple[Any, ...], int]](), list(batch.repeats)
        for row, number in zip(batch.rows, batch.numbers, strict=True):
            key = hash(tuple(row[index] for index in self._keys))
            if key in self._seen:
                repeats.append(number)
            else:
                self._seen.add(key)
                kept.append((row, number))
        return Batch(
            rows=[row for row, _ in kept],
            numbers=[number for _, number in kept],
            repeats=repeats,
            refused=batch.refused,
            last_row=batch.last_row,
        )

    def _preview(self, checked: Checked) -> None:
        for row in checked.rows[: _PREVIEWED - len(self.preview)]:
            made = _ANYTHING.dump_python(row.model_dump(by_alias=True), mode="json")
            self.preview.append({name: _short(value) for name, value in made.items()})

    async def write(self, batch: Batch, given: Mapping[int, Sequence[Any]], before: Counts) -> Counts:
        """Write a batch. A row that the database refuses is found, and refused as its bad cells would be."""
        try:
            return await self._target.write(self._run, batch, before)
        except Unwritable as error:
            if error.rows is None and len(batch.rows) > 1:
                middle = sorted(batch.numbers)[len(batch.numbers) // 2 - 1]
                half = await self.write(batch.until(middle), given, before)
                return await self.write(batch.after(middle), given, half)
            wrong = error.rows or dict.fromkeys(batch.numbers, error.reason)
            if not wrong:
                raise
            refused = [_refused(number, given[number], reason) for number, reason in wrong.items()]
            return await self.write(batch.refusing(refused), given, before)


def _refused(number: int, row: Sequence[Any], reason: str) -> Refused:
    told = {"row": number, "reason": f"the database refuses it: {reason[:200]}", "code": "database"}
    return Refused(row=number, cells=list(row[1:]), errors=[{"column": None, "field": None, "value": None, **told}])


def _short(value: Any) -> Any:
    return value[:_LONGEST_SHOWN] + " …" if isinstance(value, str) and len(value) > _LONGEST_SHOWN else value


def _tuple_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    # Straight from the model's own dictionary: asked by name, a model looks through all its classes first.
    if len(names) == 1:
        return lambda row: (row.__dict__[names[0]],)
    values = itemgetter(*names)
    return lambda row: values(row.__dict__)
