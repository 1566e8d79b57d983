"""Filters as SQL: which index of PostgreSQL is walked for a filter, and what is tested on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windlass.core.status import Status
from windlass.stores.contract import MOST_LOOKED_AT
from windlass.stores.postgres.records import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import Filter
    from windlass.stores.contract.paging import Walk

_NARROW = ("unique_key", "next_id", "parent_id", "correlation_id", "entity_id", "user_id", "schedule")
"""Each has an index with the id: the first that is asked for is walked, as it leaves the fewest jobs."""
_WIDE = ("type", "queue")
"""All jobs that a type or a queue ever had, which are few in any status but succeeded."""
_SAME = (*_NARROW, *_WIDE, "entity_name", "worker_id", "replay_of")
_COMPARED = (
    ("attempts_at_least", "attempts", ">=", "int"),
    ("attempts_at_most", "attempts", "<=", "int"),
    ("created_since", "created_at", ">=", "timestamptz"),
    ("created_before", "created_at", "<", "timestamptz"),
    ("finished_since", "finished_at", ">=", "timestamptz"),
    ("finished_before", "finished_at", "<", "timestamptz"),
)
# What runs is in other indexes than the rest, so each part of a search is asked for in the words of its own.
_RESTING, _RUNNING = "j.status <> 'processing'", "j.status = 'processing'"


@dataclass(slots=True)
class Searched:
    """A filter as walks over indexes, each a part of the answer."""

    walk: Walk
    values: list[Any] = field(default_factory=list[Any])
    _parts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """what the index of each tells, and its order"""
    _index: list[str] = field(default_factory=list[str])
    _tests: list[str] = field(default_factory=list[str])

    _indexed: int = 0
    """how many of the values the indexes are asked for; those of the tests come after them"""

    @staticmethod
    def of(filter_: Filter, walk: Walk) -> Searched:
        """What is walked and what is tested."""
        search = Searched(walk)
        by = _walked(filter_)
        search._walk(filter_, by)
        search._indexed = len(search.values)
        search._test(filter_, by)
        return search

    @property
    def bounded(self) -> list[int]:
        """The parts that stop somewhere: not what runs, which is little, and none where an index tells all."""
        return [n for n, (index, _) in enumerate(self._parts) if self._tests and not index.startswith(_RUNNING)]

    def page(self) -> str:
        """Rows of each part, with its number as the last column; takes the values, and how many of each at most."""
        most = self._number(len(self.values))
        return " UNION ALL ".join(self._rows(n, f"{COLUMNS}, {n}", most) for n in range(len(self._parts)))

    def counts(self) -> str:
        """How many of each part match, and how many were looked at; takes the values, and how many to look at."""
        most = self._number(len(self.values))
        tests = " AND ".join(self._tests) or "true"
        return " UNION ALL ".join(
            f"SELECT count(*) FILTER (WHERE fits), count(*) FROM (SELECT {tests} AS fits FROM windlass_jobs AS j"  # noqa: S608  # made of constants
            f" WHERE {index} LIMIT {most}) AS few"
            for index, _ in self._parts
        )

    def stops(self) -> tuple[str, list[Any]]:
        """The last id that each bounded part looked at, if it did not come to its end; with all that this takes."""
        statement = " UNION ALL ".join(
            f"(SELECT id FROM windlass_jobs AS j WHERE {index} ORDER BY {order} OFFSET {MOST_LOOKED_AT - 1} LIMIT 1)"  # noqa: S608  # made of constants
            for index, order in (self._parts[n] for n in self.bounded)
        )
        return statement, self.values[: self._indexed]

    def _rows(self, n: int, columns: str, most: str) -> str:
        index, order = self._parts[n]
        tests = " AND ".join(self._tests)
        if n in self.bounded:
            # The limit inside keeps the tests out of the choice of an index, and bounds the walk.
            walked = f"SELECT * FROM windlass_jobs AS j WHERE {index} ORDER BY {order} LIMIT {MOST_LOOKED_AT}"  # noqa: S608  # made of constants
            return f"(SELECT {columns} FROM ({walked}) AS j WHERE {tests} ORDER BY {order} LIMIT {most})"  # noqa: S608  # the same
        where = f"{index} AND {tests}" if tests else index
        return f"(SELECT {columns} FROM windlass_jobs AS j WHERE {where} ORDER BY {order} LIMIT {most})"  # noqa: S608  # the same

    def _number(self, after: int) -> str:
        return f"${after + 1}::bigint"

    def _value(self, value: Any, of: str) -> str:
        self.values.append(value)
        return f"${len(self.values)}::{of}"

    def _walk(self, filter_: Filter, by: str | None) -> None:
        self._bound(filter_)
        if by == "status":
            self._by_status(sorted(filter_.statuses))
            return
        if by is not None:
            told = self._value(getattr(filter_, by), "text")
            # As a range of one value it takes part in the order, which leaves the index of ids no way to give it.
            self._index.append(f"j.{by} BETWEEN {told} AND {told}")
        if by == "entity_id" and filter_.entity_name is not None:
            self._index.append(f"j.entity_name = {self._value(filter_.entity_name, 'text')}")
        if filter_.statuses != frozenset({Status.PROCESSING}):
            self._part(_RESTING, self._ordered(by))
        if Status.PROCESSING in filter_.statuses:
            self._part(_RUNNING, self._sorted())

    def _bound(self, filter_: Filter) -> None:
        if self.walk.start is not None:
            way = f"{'<' if self.walk.descending else '>'}{'=' if self.walk.inclusive else ''}"
            self._index.append(f"j.id {way} {self._value(self.walk.start, 'text')}")
        if filter_.first_id is not None:
            self._index.append(f"j.id >= {self._value(filter_.first_id, 'text')}")
        if filter_.end_id is not None:
            self._index.append(f"j.id < {self._value(filter_.end_id, 'text')}")

    def _test(self, filter_: Filter, by: str | None) -> None:
        told = {by, "entity_name"} if by == "entity_id" else {by}
        for name in _SAME:
            if getattr(filter_, name) is not None and name not in told:
                self._tests.append(f"j.{name} = {self._value(getattr(filter_, name), 'text')}")
        if filter_.status is not None and by != "status":
            self._tests.append(
                f"j.status = ANY ({self._value([status.value for status in filter_.statuses], 'text[]')})"
            )
        if filter_.type_prefix is not None:
            self._tests.append(f"starts_with(j.type, {self._value(filter_.type_prefix, 'text')})")
        if filter_.tags:
            self._tests.append(f"j.tags @> {self._value(sorted(filter_.tags), 'text[]')}")
        for name, column, way, of in _COMPARED:
            value = getattr(filter_, name)
            if value is not None:
                self._tests.append(f"j.{column} {way} {self._value(value, of)}")

    def _by_status(self, statuses: Sequence[Status]) -> None:
        for status in statuses:
            if status is Status.PROCESSING:
                self._part(_RUNNING, self._sorted())
            else:
                told = self._value(status.value, "text")
                self._part(f"{_RESTING} AND j.status BETWEEN {told} AND {told}", self._ordered("status"))

    def _part(self, half: str, order: str) -> None:
        self._parts.append((" AND ".join([half, *self._index]), order))

    def _ordered(self, by: str | None) -> str:
        way = "DESC" if self.walk.descending else "ASC"
        return f"j.id {way}" if by is None else f"j.{by} {way}, j.id {way}"

    def _sorted(self) -> str:
        # What runs is little: it is found by an index of its own and sorted.
        return f"j.id || '' {'DESC' if self.walk.descending else 'ASC'}"


def _walked(filter_: Filter) -> str | None:
    """The column whose index is walked; None for that of ids."""
    by = next((name for name in (*_NARROW, *_WIDE) if getattr(filter_, name) is not None), None)
    if filter_.status is None or by in _NARROW:
        return by
    return by if by in _WIDE and Status.SUCCEEDED in filter_.statuses else "status"
