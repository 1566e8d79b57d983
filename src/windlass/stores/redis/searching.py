"""Filters as the script walk.lua takes them: which list is walked, and what is tested on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.core.status import Status
from windlass.stores.redis.records import CODES, FIELDS, as_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.stores.contract import Filter
    from windlass.stores.contract.paging import Walk
    from windlass.stores.redis.connection import Value

# From the narrowest to the widest: the first that is asked for is walked, the others tested on the way.
_LISTS = (
    ("parent_id", "parent"),
    ("correlation_id", "correlation"),
    ("entity_id", "entity_id"),
    ("user_id", "user"),
    ("schedule", "schedule"),
    ("entity_name", "entity"),
)
_SAME = (*_LISTS, ("unique_key", "key"), ("worker_id", "worker"), ("replay_of", "replay_of"))
_COMPARED = (
    ("attempts_at_least", "attempts", ">="),
    ("attempts_at_most", "attempts", "<="),
    ("created_since", "created_at", ">="),
    ("created_before", "created_at", "<"),
    ("finished_since", "finished_at", ">="),
    ("finished_before", "finished_at", "<"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What the script walks, within which ids, and what it tests."""

    kind: str
    name: str
    view: tuple[str, str, str, str]
    """statuses, queue, type and the beginning of a type, of the views that are walked"""
    descending: bool
    lower: str
    upper: str
    tests: tuple[Value, ...]
    counted: bool
    """whether how many there are is known without a walk"""

    @staticmethod
    def of(filter_: Filter, walk: Walk) -> Searched:
        """What is walked and what is tested."""
        kind, name = _walked(filter_)
        tests = list(_tests(filter_, kind, name))
        lower, upper = _bounds(filter_, walk)
        return Searched(
            kind=kind,
            name=name,
            view=_view(filter_) if kind == "views" else ("", "", "", ""),
            descending=walk.descending,
            lower=lower,
            upper=upper,
            tests=tuple(value for test in tests for value in test),
            counted=kind == "views" and (lower, upper) == ("-", "+") and all(test[1] == "in" for test in tests),
        )

    def asked(self, look: int, limit: int) -> list[Value]:
        """The arguments of the script."""
        way = 1 if self.descending else 0
        return [self.kind, self.name, *self.view, way, self.lower, self.upper, look, limit, *self.tests]

    def beyond(self, job_id: str) -> Searched:
        """The rest of the walk."""
        return replace(self, upper=f"({job_id}") if self.descending else replace(self, lower=f"({job_id}")


def _walked(filter_: Filter) -> tuple[str, str]:
    if filter_.next_id is not None:
        return "list", f"next:{filter_.next_id}"  # the narrowest of all, so that nobody has to test for it
    if filter_.unique_key is not None:
        return "key", filter_.unique_key
    for name, list_ in _LISTS:
        value = getattr(filter_, name)
        if value is not None:
            return "list", f"{list_}:{value}"
    return "views", ""


def _view(filter_: Filter) -> tuple[str, str, str, str]:
    return _codes(filter_), filter_.queue or "", filter_.type or "", filter_.type_prefix or ""


def _codes(filter_: Filter) -> str:
    return "" if filter_.status is None else "".join(CODES[status] for status in sorted(filter_.statuses))


def _tests(filter_: Filter, kind: str, name: str) -> Iterator[tuple[Value, Value, Value]]:
    for of, field in _SAME:
        value = getattr(filter_, of)
        if value is not None and (kind, name) != ("list", f"{field}:{value}") and (kind, field) != ("key", "key"):
            yield _place(field), "=", value
    # A list of what is queued also has what runs.
    shared = Status.QUEUED in filter_.statuses and Status.PROCESSING not in filter_.statuses
    if filter_.status is not None and (shared or kind != "views"):
        yield _place("status"), "in", _codes(filter_)
    if kind != "views":
        for of, field, way in (("queue", "queue", "="), ("type", "type", "="), ("type_prefix", "type", "^")):
            if getattr(filter_, of) is not None:
                yield _place(field), way, getattr(filter_, of)
    for of, field, way in _COMPARED:
        value = getattr(filter_, of)
        if value is not None:
            yield _place(field), way, value if isinstance(value, int) else as_ms(value)
    for tag in sorted(filter_.tags):
        yield _place("tags"), "has", tag


def _place(field: str) -> int:
    return FIELDS.index(field) + 1


def _bounds(filter_: Filter, walk: Walk) -> tuple[str, str]:
    """The ids between which it is walked, as Redis takes them."""
    lower = "-" if filter_.first_id is None else f"[{filter_.first_id}"
    upper = "+" if filter_.end_id is None else f"({filter_.end_id}"
    if walk.start is None:
        return lower, upper
    start = f"{'[' if walk.inclusive else '('}{walk.start}"
    if walk.descending:
        return lower, start if upper == "+" or walk.start < upper[1:] else upper
    return start if lower == "-" or walk.start > lower[1:] else lower, upper
