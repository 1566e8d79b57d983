"""Columns: how a store keeps the fields of a job. What lists them, to read jobs and to insert them, follows from here.

A store says which fields it calls otherwise than jobs do, and how it keeps each kind of value. A new field of a known
kind needs nothing here.
"""

from __future__ import annotations

from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from windlass.core.draft import Draft
from windlass.core.fields import FIELDS, Kind, Origin
from windlass.core.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from windlass.core.draft import Options

    Convert = Callable[[Any], Any]

NAMES: Mapping[str, str] = {
    "payload_json": "payload",
    "timeout": "timeout_ms",
    "result_json": "result",
    "limit": "limit_n",
    "metadata_json": "metadata",
    "kept_json": "kept",
}
"""What tables and documents call otherwise than jobs do."""

_WIDTH = len(Job._fields)
_TAGS = Job._fields.index("tags")

# As `Job._make` does, but without counting the values, which takes a tenth of the time that a job is read in.
make_job = cast("Callable[[type[Job], Sequence[Any]], Job]", tuple.__new__)  # pyright: ignore[reportUnknownMemberType]  # the stub does not say of what


class Columns:
    """The fields of a job as one store keeps them, in the order in which a job has them."""

    def __init__(self, names: Mapping[str, str] = NAMES) -> None:
        self.names = tuple(names.get(field.name, field.name) for field in FIELDS)
        self.kinds = {name: field.kind for name, field in zip(self.names, FIELDS, strict=True)}

    def of(self, origin: Origin) -> dict[str, Kind]:
        """The columns whose value a new job has from there."""
        named = zip(self.kinds.items(), FIELDS, strict=True)
        return {name: kind for (name, kind), field in named if field.origin is origin}


def reader(
    convert: Mapping[Kind, Convert], special: Mapping[str, Convert] = MappingProxyType({})
) -> Callable[[Iterable[Any]], Job]:
    """A function from the values of a job's fields, and perhaps more behind them, to the job.

    It runs for every job there is, so it touches only what is kept otherwise than a job has it: of these kinds, and
    the special fields of these names.
    """
    by_name = {field.name: convert[field.kind] for field in FIELDS if field.kind in convert} | {**special}
    converted = tuple((Job._fields.index(name), value_of) for name, value_of in by_name.items())

    def job_of(row: Iterable[Any]) -> Job:
        job = list(row)
        del job[_WIDTH:]
        for at, value_of in converted:
            if (value := job[at]) is not None:
                job[at] = value_of(value)
        if job[_TAGS] is None:
            job[_TAGS] = ()
        return make_job(Job, job)

    return job_of


_DRAFTED = [field for field in FIELDS if field.origin is Origin.DRAFT]
_ASKED = [field for field in FIELDS if field.origin is Origin.OPTIONS]
of_draft: Callable[[Sequence[Any]], tuple[Any, ...]] = itemgetter(
    *(Draft._fields.index(field.name) for field in _DRAFTED)
)
"""What a new job has from its draft, in the order of `Columns.of(Origin.DRAFT)`; or of the columns of many drafts."""


def writer(convert: Mapping[Kind, Convert]) -> Callable[[Options], list[Any]]:
    """A function from options to what a new job has from them, in the order of `Columns.of(Origin.OPTIONS)`."""
    get: Callable[[Options], tuple[Any, ...]] = attrgetter(*(field.name for field in _ASKED))
    converted = tuple((at, convert[field.kind]) for at, field in enumerate(_ASKED) if field.kind in convert)

    def values_of(options: Options) -> list[Any]:
        values = list(get(options))
        for at, kept in converted:
            if (value := values[at]) is not None:
                values[at] = kept(value)
        return values

    return values_of
