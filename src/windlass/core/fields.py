"""The fields of a job as a table: what kind of value each holds, and where a new job has it from.

The table follows from `Job`, `Draft` and `Options`: a field that a draft or its options have under the same name is
taken from there. CONTRIBUTING.md says how to add one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from types import NoneType
from typing import TYPE_CHECKING, NamedTuple, get_args, get_type_hints

from windlass.core.draft import Draft, Options
from windlass.core.job import Error, Job, Progress
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """What a field holds. A store has one way to keep each kind."""

    TEXT = "text"
    JSON = "json"
    """text that is JSON; the name of such a field ends with _json"""
    INTEGER = "integer"
    INSTANT = "instant"
    DURATION = "duration"
    STATUS = "status"
    ERROR = "error"
    PROGRESS = "progress"
    TAGS = "tags"


class Origin(StrEnum):
    """Where a new job has a field from."""

    DRAFT = "draft"
    """each draft has its own"""
    OPTIONS = "options"
    """drafts that were asked for alike share it"""
    STORE = "store"
    """the store decides on it as it inserts"""
    LATER = "later"
    """it has no value yet, or a zero"""


class Field(NamedTuple):
    """One field of a job."""

    name: str
    kind: Kind
    origin: Origin


_KINDS: Mapping[object, Kind] = {
    str: Kind.TEXT,
    int: Kind.INTEGER,
    datetime: Kind.INSTANT,
    timedelta: Kind.DURATION,
    Status: Kind.STATUS,
    Error: Kind.ERROR,
    Progress: Kind.PROGRESS,
    tuple[str, ...]: Kind.TAGS,
}
_BY_STORE = frozenset(
    {"status", "run_at", "created_at", "updated_at", "queued_at", "unique_key", "blocked_by", "expires_at"}
)


def kind_of(name: str, hint: object) -> Kind:
    """The kind of a field of this name and type; whether it may be empty does not matter."""
    types = get_args(hint)
    if NoneType in types:
        [hint] = [each for each in types if each is not NoneType]
    if hint not in _KINDS:
        raise TypeError(f"the field {name} of a job is of type {hint}: no Kind in core/fields.py holds such a value")
    return Kind.JSON if name.endswith("_json") else _KINDS[hint]


def _origin_of(name: str) -> Origin:
    if name in _BY_STORE:
        return Origin.STORE
    if name in Draft._fields:
        return Origin.DRAFT
    return Origin.OPTIONS if hasattr(Options, name) else Origin.LATER


FIELDS = tuple(Field(name, kind_of(name, hint), _origin_of(name)) for name, hint in get_type_hints(Job).items())
"""In the order in which a job has them."""
