"""News: what a transaction has to tell, kept as counters in one row of the file, and the notices made of them.

The counters only grow, so the difference from what a listener last saw is all that it missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.stores.contract import ANYTHING, About, Notice

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable


class News(NamedTuple):
    """What happened, as far as others may have to do something about it."""

    claimable: int = 0
    """how many jobs were queued"""
    queue: str | None = None
    """where; None is several queues"""
    due: int = 0
    changed: int = 0
    anything: int = 0
    hop: int = 0

    def __bool__(self) -> bool:
        return self != NOTHING

    def joined(self, other: News) -> News:
        """Both."""
        if not self:
            return other
        if not other:
            return self
        queues = {news.queue for news in (self, other) if news.claimable}
        return News(
            self.claimable + other.claimable,
            queues.pop() if len(queues) == 1 else None,
            self.due + other.due,
            self.changed + other.changed,
            self.anything + other.anything,
            max(self.hop, other.hop),
        )

    @staticmethod
    def of(notice: Notice) -> News:
        """What somebody wants told."""
        if notice.about is About.CLAIMABLE:
            return News(notice.n, notice.queue, hop=notice.hop)
        if notice.about is About.DUE:
            return News(due=notice.n)
        changed = notice.about in (About.CHANGED, About.CANCEL)
        return News(changed=notice.n) if changed else News(anything=1)


NOTHING = News()
CHANGED = News(changed=1)
DUE = News(due=1)


def queued(queues: Iterable[str]) -> News:
    """Jobs were queued in these queues, one for each that is named."""
    named = list(queues)
    return News(len(named), named[0] if len(set(named)) == 1 else None) if named else NOTHING


class Told(NamedTuple):
    """Everything that was ever told, as the file has it."""

    told: int
    claimable: int
    queue: str | None
    since: int
    """the telling of claimable jobs from which on all were of this queue"""
    hop: int
    due: int
    changed: int
    anything: int

    @property
    def length(self) -> int:
        """Grows with everything that is told."""
        return self.claimable + self.due + self.changed + self.anything

    def after(self, seen: Told) -> list[Notice]:
        """The notices for a process that has seen less."""
        if self.anything > seen.anything:
            return [ANYTHING]
        notices: list[Notice] = []
        if self.claimable > seen.claimable:
            queue = self.queue if self.since <= seen.told + 1 else None
            # The number before these jobs is the same for every listener, and each job goes on from it: a listener that
            # reads two transactions at once draws as one that reads them one after the other.
            draw = seen.claimable & 0xFFFFFF
            notices.append(Notice(About.CLAIMABLE, queue, self.claimable - seen.claimable, draw, self.hop))
        if self.due > seen.due:
            notices.append(Notice(About.DUE, n=self.due - seen.due))
        if self.changed > seen.changed:
            # The file tells neither from the other; looking for cancel requests costs one read of an index.
            notices += [Notice(About.CHANGED, n=self.changed - seen.changed), Notice(About.CANCEL)]
        return notices


FAR = 86_400_000
"""milliseconds: a clock that is ahead by more than a day was a wrong one, which is not followed"""
_TOLD = "told, claimable, queue, since, hop, due, changed, anything"
READ = f"SELECT {_TOLD} FROM windlass_news"  # noqa: S608  # a constant
CLOCK = "SELECT clock FROM windlass_news"
_CLOCK = f"clock = CASE WHEN clock > :now + {FAR} THEN :now ELSE max(clock, :now) END"
# Where no jobs were queued: ends, above all.
RECORD_CHANGES = f"""
UPDATE windlass_news SET {_CLOCK}, due = due + :due, changed = changed + :changed, anything = anything + :anything
"""  # noqa: S608  # constants
# Two tellings of several queues are never the same queue: nothing is known of either.
RECORD = f"""
UPDATE windlass_news SET {_CLOCK}, told = told + 1, claimable = claimable + :claimable,
    since = CASE WHEN queue = :queue THEN since ELSE told + 1 END, queue = :queue, hop = :hop,
    due = due + :due, changed = changed + :changed, anything = anything + :anything
"""  # noqa: S608  # constants


def read(db: sqlite3.Connection, sql: Callable[[str], str]) -> Told:
    """What was told until now."""
    return Told(*db.execute(sql(READ)).fetchone())


def record(db: sqlite3.Connection, sql: Callable[[str], str], news: News, now: int) -> Told:
    """Write down the news in the transaction that made them, and the clock."""
    values: dict[str, Any] = {"now": now, **news._asdict()}
    # Read afterwards: RETURNING would make a table of its own for the one row, which takes longer than both.
    db.execute(sql(RECORD if news.claimable else RECORD_CHANGES), values)
    return read(db, sql)
