"""Turns: where a job with a fair key is put among the others that wait. An order only: nobody waits for its time.

No lock is taken: of two inserts at the same moment neither sees the other's jobs, and their users share a turn. One
without a fair key that comes while the first with one is not committed yet is not told from those that came before.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.stores.postgres.records import CLOCK, EPOCH, epoch, floored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.draft import Draft
    from windlass.stores.postgres.connection import Rows, Steps

_MILLISECOND = timedelta(milliseconds=1)

# That key, queue and priority are not below what they are said to be costs nothing by the index of keys, and makes
# any other look dearer, in which these jobs may lie far apart: also while there is nothing in any of them.
STAND = f"""
WITH {CLOCK}
SELECT asked.queue, asked.priority, asked.key, {epoch("c.now")}, (
    SELECT {epoch("min(j.run_at)")} FROM windlass_jobs AS j
    WHERE j.status = 'queued' AND j.fair_key > '' AND j.queue || '' = asked.queue AND j.priority = asked.priority
), (
    SELECT {epoch("max(j.run_at)")} FROM windlass_jobs AS j
    WHERE j.status = 'queued' AND j.fair_key = '' AND j.queue = asked.queue AND j.priority = asked.priority
        AND (j.fair_key, j.queue, j.priority) >= ('', asked.queue, asked.priority)
), (
    SELECT {epoch("max(j.floor)")} FROM windlass_jobs AS j
    WHERE j.status = 'queued' AND j.floor IS NOT NULL AND j.queue || '' = asked.queue AND j.priority = asked.priority
), (
    SELECT {epoch("max(j.run_at)")} FROM windlass_jobs AS j
    WHERE j.status = 'queued' AND j.fair_key = asked.key AND j.queue = asked.queue AND j.priority = asked.priority
        AND (j.fair_key, j.queue, j.priority) >= (asked.key, asked.queue, asked.priority)
)
FROM clock AS c, unnest($1::text[], $2::int[], $3::text[]) AS asked (queue, priority, key)
"""  # noqa: S608  # made of constants


class Turns:
    """The turns of one insert's drafts, taken one after the other."""

    def __init__(self, stand: Rows) -> None:
        self._now = 0
        self._next: dict[tuple[str, int, str], int] = {}
        for queue, priority, key, now, head, plain, floor, last in stand:
            self._now = now
            # Behind those that take no part and wait there already, be they known only to one that came back before.
            behind = [at + 1 for at in (plain, floor, last) if at is not None]
            self._next[queue, priority, key] = max(now if head is None else head, *behind, 0)

    def take(self, draft: Draft) -> int | None:
        """The millisecond to stand at: beside the first with a key that waits, but behind the last of the same key."""
        options = draft.options
        if draft.fair_key is None or options.awaits is not None or options.delay:
            return None
        if options.run_at is not None and (floored(options.run_at) - EPOCH) // _MILLISECOND > self._now:
            return None
        line = (options.queue, options.priority, draft.fair_key)
        turn = self._next[line]
        self._next[line] = turn + 1
        return turn


def taking(drafts: Sequence[Draft]) -> Steps[Turns]:
    """Look where the lines of these stand; costs nothing where nobody shares turns."""
    lines = {(one.options.queue, one.options.priority, one.fair_key) for one in drafts if one.fair_key is not None}
    if not lines:
        return Turns(())
    stand: Rows = yield STAND, tuple(map(list, zip(*sorted(lines), strict=True)))
    return Turns(stand)
