"""Filters: which jobs are looked for, and which words of a filter an index serves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from windlass.core.status import Status

MOST_LOOKED_AT = 5_000
"""How many jobs one call of `find` looks at for words that have no index, before it says how far it came."""
CLOCKS_APART = timedelta(minutes=10)
"""How far an enqueueing client's clock may be off for a job still to be found by the time of its creation."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 2**48 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs; every field given must match.

    Served by an index: `status`, `type`, `queue`, `user_id`, an entity, `correlation_id`, `schedule`, `parent_id`,
    `next_id`, `unique_key`; `created_since`, `created_before` and `finished_before` bound the ids that are looked at.
    The narrowest of these is walked, and all else is tested on the way, by a walk that is bounded.
    """

    status: Status | frozenset[Status] | None = None
    """one, or any of several"""
    type: str | None = None
    type_prefix: str | None = None
    queue: str | None = None
    user_id: str | None = None
    entity_name: str | None = None
    entity_id: str | None = None
    correlation_id: str | None = None
    schedule: str | None = None
    parent_id: str | None = None
    next_id: str | None = None
    """the jobs that one awaits"""
    unique_key: str | None = None
    """the job that holds it now"""
    worker_id: str | None = None
    """jobs that it runs, or ran last"""
    replay_of: str | None = None
    """the jobs that do this one's work again"""
    tags: frozenset[str] = frozenset()
    """jobs with all of these"""
    attempts_at_least: int | None = None
    attempts_at_most: int | None = None
    created_since: datetime | None = None
    created_before: datetime | None = None
    finished_since: datetime | None = None
    finished_before: datetime | None = None

    @property
    def statuses(self) -> frozenset[Status]:
        """The statuses asked for; all where none is."""
        if self.status is None:
            return frozenset(Status)
        return frozenset({self.status}) if isinstance(self.status, Status) else self.status

    @property
    def first_id(self) -> str | None:
        """No job that matches has an id before this one: ids begin with the instant they were made at."""
        return None if self.created_since is None else _id_at(self.created_since, -CLOCKS_APART)

    @property
    def end_id(self) -> str | None:
        """Every job that matches has an id before this one. What has finished was made before."""
        ends = [end for end in (self.created_before, self.finished_before) if end is not None]
        return _id_at(min(ends), CLOCKS_APART) if ends else None


def _id_at(at: datetime, later: timedelta) -> str:
    digits = f"{min(max((at - _EPOCH + later) // timedelta(milliseconds=1), 0), _LAST_MS):012x}"
    return f"{digits[:8]}-{digits[8:]}"
