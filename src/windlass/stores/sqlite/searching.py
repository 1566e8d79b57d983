"""Filters as SQL: which index of SQLite is walked for a filter, and what is tested on the way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.status import Status
from windlass.stores.sqlite.records import as_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.stores.contract import Filter
    from windlass.stores.contract.paging import Walk

_NARROW = ("unique_key", "next_id", "parent_id", "correlation_id", "entity_name", "user_id", "schedule")
"""Each has an index with the id: the first that is asked for is walked, as it leaves the fewest jobs."""
_WIDE = ("type", "queue")
"""All jobs that a type or a queue ever had, which are few in any status but succeeded."""
_SAME = (*_NARROW, *_WIDE, "entity_id", "worker_id", "replay_of")
_COMPARED = (
    ("attempts_at_least", "attempts >= ?"),
    ("attempts_at_most", "attempts <= ?"),
    ("created_since", "created_at >= ?"),
    ("created_before", "created_at < ?"),
    ("finished_since", "finished_at >= ?"),
    ("finished_before", "finished_at < ?"),
)


class Part(NamedTuple):
    """One walk over an index in the order of ids. Its statements take the values and how many rows to look at."""

    statement: str
    """gives each id, and whether that job matches"""
    counted: str
    """gives how many match, and how many were looked at"""
    values: tuple[Any, ...]
    tests: bool
    """whether there are tests besides the index, so that a walk may find few jobs among many"""


def parts_of(filter_: Filter, walk: Walk) -> list[Part]:
    """The walks that together find what a filter asks for."""
    by = next((name for name in (*_NARROW, *_WIDE) if getattr(filter_, name) is not None), None)
    if filter_.status is None or by in _NARROW:
        return [_part(filter_, walk, by, None)]
    if by in _WIDE and Status.SUCCEEDED in filter_.statuses:
        return [_part(filter_, walk, by, None)]
    return [_part(filter_, walk, "status", status) for status in sorted(filter_.statuses)]


def _part(filter_: Filter, walk: Walk, by: str | None, status: Status | None) -> Part:
    index = list(_index(filter_, by, status)) + list(_bounds(filter_, walk))
    tests = list(_tests(filter_, by, status))
    # The plus lets the few processing jobs be found by their leases and sorted, instead of walking all ids.
    order = f"{'+' if status is Status.PROCESSING else ''}id {'DESC' if walk.descending else 'ASC'}"
    where = " AND ".join(text for text, _ in index) or "1"
    test = " AND ".join(text for text, _ in tests) or "1"
    looked = f"SELECT {test} AS fits FROM windlass_jobs WHERE {where} LIMIT ?"  # noqa: S608  # made of constants
    return Part(
        f"SELECT id, {test} FROM windlass_jobs WHERE {where} ORDER BY {order} LIMIT ?",  # noqa: S608  # the same
        f"SELECT coalesce(sum(fits), 0), count(*) FROM ({looked})",  # noqa: S608  # the same
        tuple(value for _, values in (*tests, *index) for value in values),
        bool(tests),
    )


def _index(filter_: Filter, by: str | None, status: Status | None) -> Iterator[tuple[str, list[Any]]]:
    """What the index itself tells."""
    if status is Status.PROCESSING:
        yield "status = 'processing'", []  # said as the index of leases says it, so that it serves
    elif status is not None:
        yield "status = ? AND status <> 'processing'", [status.value]  # said as the index of statuses says it
    elif by is not None:
        yield f"{by} = ?", [getattr(filter_, by)]
        if by == "entity_name" and filter_.entity_id is not None:
            yield "entity_id = ?", [filter_.entity_id]


def _bounds(filter_: Filter, walk: Walk) -> Iterator[tuple[str, list[Any]]]:
    if walk.start is not None:
        yield f"id {'<' if walk.descending else '>'}{'=' if walk.inclusive else ''} ?", [walk.start]
    if filter_.first_id is not None:
        yield "id >= ?", [filter_.first_id]
    if filter_.end_id is not None:
        yield "id < ?", [filter_.end_id]


def _tests(filter_: Filter, by: str | None, status: Status | None) -> Iterator[tuple[str, list[Any]]]:
    """What is read in the row."""
    told = {by, "entity_id"} if by == "entity_name" else {by}
    for name in _SAME:
        value = getattr(filter_, name)
        if value is not None and name not in told:
            yield f"{name} IS ?", [value]
    if filter_.status is not None and status is None:
        yield "status IN (SELECT value FROM json_each(?))", [json.dumps(sorted(filter_.statuses))]
    if filter_.type_prefix is not None:
        yield "substr(type, 1, ?) = ?", [len(filter_.type_prefix), filter_.type_prefix]
    for name, text in _COMPARED:
        value = getattr(filter_, name)
        if value is not None:
            yield f"coalesce({text}, 0)", [value if isinstance(value, int) else as_ms(value)]
    for tag in sorted(filter_.tags):
        yield "EXISTS (SELECT 1 FROM json_each(tags) AS tag WHERE tag.value = ?)", [tag]
