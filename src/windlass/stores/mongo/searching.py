"""Filters as queries: what an index of MongoDB tells of a filter, and what is tested on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.status import Status

if TYPE_CHECKING:
    from windlass.stores.contract import Filter
    from windlass.stores.contract.paging import Walk
    from windlass.stores.mongo.connection import Doc

_NARROW = ("unique_key", "next_id", "parent_id", "correlation_id", "entity_name", "user_id", "schedule")
"""Each has an index with the id: the first that is asked for is walked, as it leaves the fewest jobs."""
_WIDE = ("type", "queue")
"""All jobs that a type or a queue ever had, which are few in any status but succeeded."""
_SAME = (*_NARROW, *_WIDE, "entity_id", "worker_id", "replay_of")
_COMPARED = (
    ("attempts_at_least", "attempts", "$gte"),
    ("attempts_at_most", "attempts", "$lte"),
    ("created_since", "created_at", "$gte"),
    ("created_before", "created_at", "$lt"),
    ("finished_since", "finished_at", "$gte"),
    ("finished_before", "finished_at", "$lt"),
)


def searched(filter_: Filter, walk: Walk) -> tuple[Doc, Doc]:
    """What one index tells, and what is tested in the documents that it leads to."""
    by = _walked(filter_)
    index: Doc = {}
    if by == "status":
        # Several statuses are as many walks over one index, which the server merges by their ids.
        index["status"] = _any(filter_.statuses)
    elif by is not None:
        index[by] = getattr(filter_, by)
    if by == "entity_name" and filter_.entity_id is not None:
        index["entity_id"] = filter_.entity_id
    if bounds := _bounds(filter_, walk):
        index["_id"] = bounds
    return index, _tests(filter_, by, index)


def _walked(filter_: Filter) -> str | None:
    """The field whose index is walked; None for that of ids."""
    by = next((name for name in (*_NARROW, *_WIDE) if getattr(filter_, name) is not None), None)
    if filter_.status is None or by in _NARROW:
        return by
    return by if by in _WIDE and Status.SUCCEEDED in filter_.statuses else "status"


def _any(statuses: frozenset[Status]) -> Any:
    [first, *others] = sorted(status.value for status in statuses)
    return {"$in": [first, *others]} if others else first


def _bounds(filter_: Filter, walk: Walk) -> Doc:
    found: Doc = {}
    if filter_.first_id is not None:
        found["$gte"] = filter_.first_id
    if filter_.end_id is not None:
        found["$lt"] = filter_.end_id
    if walk.start is None:
        return found
    way = f"${'lt' if walk.descending else 'gt'}{'e' if walk.inclusive else ''}"
    if way not in found:
        return {**found, way: walk.start}
    return {**found, way: (min if walk.descending else max)(found[way], walk.start)}


def _tests(filter_: Filter, by: str | None, index: Doc) -> Doc:
    tests: dict[str, Any] = {
        name: getattr(filter_, name) for name in _SAME if getattr(filter_, name) is not None and name not in index
    }
    if filter_.status is not None and by != "status":
        tests["status"] = _any(filter_.statuses)
    if filter_.type_prefix is not None:
        text = {"$substrCP": ["$type", 0, len(filter_.type_prefix)]}
        tests["$expr"] = {"$eq": [text, {"$literal": filter_.type_prefix}]}
    if filter_.tags:
        tests["tags"] = {"$all": sorted(filter_.tags)}
    for name, field, way in _COMPARED:
        value = getattr(filter_, name)
        if value is not None:
            tests.setdefault(field, {})[way] = value
    return tests
