"""The life of jobs on PostgreSQL: each operation is one statement where it can be, and one transaction where not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.errors import StoreError
from windlass.stores.contract import Extended, Inserted, Promoted, Verdict
from windlass.stores.postgres import inserting, joining, operating, settling, sweeping
from windlass.stores.postgres.claiming import Claiming
from windlass.stores.postgres.connection import Room, guarded
from windlass.stores.postgres.flows import Rounds
from windlass.stores.postgres.notices import channel_of
from windlass.stores.postgres.records import CLOCK, COLUMNS, job_of, whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.core.draft import Draft
    from windlass.core.job import Job
    from windlass.core.transition import Transition
    from windlass.stores.contract import Answer, Lease, Order, Report, Rescued, Retention, Want
    from windlass.stores.postgres.connection import Link

_MOST_HELD = 100_000

# Their leases begin anew: the claim that took them may have been a while ago.
ADOPT = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET lease_expires_at = c.now + $3::interval
FROM clock AS c
WHERE j.status = 'processing' AND j.worker_id = $1::text AND j.lease_expires_at > c.now AND j.id <> ALL ($2::text[])
RETURNING {COLUMNS}
"""  # noqa: S608  # made of constants


class PostgresJobs(Room):
    """See `contract.Jobs` for what each promises."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._claiming = Claiming(link)
        self._rounds = Rounds()
        self._held: dict[str, tuple[int, bool]] = {}
        """what this store has handed out: its token, and whether nobody can be waiting for its end"""
        self._unsure: set[str] = set()
        """workers of whom a claim was lost on its way: they may hold jobs that they have not heard of"""

    @guarded
    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        """Write each draft or say why not."""
        if tx is not None:
            return await joining.join(self.link, tx, inserting.joining(self.link, drafts, channel_of))
        if not drafts:
            return []
        verdicts = await inserting.insert(self.link, drafts)
        self.link.changed({draft.options.queue for draft in drafts})
        return verdicts

    def insert_now(self, drafts: Sequence[Draft], tx: object) -> list[Inserted]:
        """Write inside a synchronous driver's transaction, on the caller's thread."""
        return joining.join_now(self.link, tx, inserting.joining(self.link, drafts, channel_of))

    @guarded
    async def claim(self, want: Want) -> list[Job]:
        """Lease at most n jobs."""
        if want.n < 1 or not want.types:
            return []
        return await self.link.surely(lambda: self._claim(want))

    async def _claim(self, want: Want) -> list[Job]:
        try:
            jobs = await self._adopt(want) if want.worker_id in self._unsure else []
            jobs = jobs or await self._claiming.claim(want)
        except StoreError:
            raise
        except BaseException:
            self._unsure.add(want.worker_id)
            raise
        for job in jobs:
            alone = job.limit_key is None and job.unique_running is None and job.next_id is None
            self._held[job.id] = (job.lease_token, alone)
        while len(self._held) > _MOST_HELD:
            del self._held[next(iter(self._held))]
        return jobs

    async def _adopt(self, want: Want) -> list[Job]:
        """What an earlier claim took whose answer never came."""
        rows = await self.link.fetch(ADOPT, want.worker_id, list(self._held), whole(want.lease))
        self._unsure.discard(want.worker_id)
        return [job_of(row) for row in rows]

    @guarded
    async def extend(self, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
        """Renew leases."""
        if not leases:
            return Extended(frozenset(), frozenset())
        return await settling.extend(self.link, worker_id, leases, lease)

    @guarded
    async def cancels(self, worker_id: str) -> frozenset[str]:
        """What this worker should stop."""
        return await settling.cancels(self.link, worker_id)

    @guarded
    async def report(self, reports: Sequence[Report]) -> list[Verdict]:
        """Write progress."""
        if not reports:
            return []
        verdicts = await settling.report(self.link, reports)
        self.link.changed(())
        return verdicts

    @guarded
    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        """Write transitions."""
        if not transitions:
            return []
        held = self._held
        plain = all(held.get(one.id) == (one.token, True) for one in transitions)
        verdicts = await settling.apply(self.link, transitions, plain=plain)
        for one in transitions:
            held.pop(one.id, None)
        self.link.changed(())
        return verdicts

    async def complete(self, transition: Transition, tx: object) -> Verdict:
        """Write one transition inside the caller's own transaction."""
        return await joining.join(self.link, tx, settling.completing(self.link, transition, channel_of(self.link)))

    def complete_now(self, transition: Transition, tx: object) -> Verdict:
        """The same on a synchronous driver's, on the caller's thread."""
        return joining.join_now(self.link, tx, settling.completing(self.link, transition, channel_of(self.link)))

    @guarded
    async def promote(self, n: int) -> Promoted:
        """Queue what is due."""
        found, queues = await sweeping.promote(self.link, n, self._rounds)
        if found.promoted or found.unblocked:
            self.link.changed(queues)
        return found

    @guarded
    async def age(self, after: timedelta, to: int, n: int) -> int:
        """Raise what has waited long."""
        return await sweeping.age(self.link, after, to, n)

    @guarded
    async def rescue(self, n: int) -> list[Rescued]:
        """Hand back what was lost."""
        found = await sweeping.rescue(self.link, n)
        if found:
            self.link.changed(())
        return found

    @guarded
    async def prune(self, retention: Retention, n: int) -> int:
        """Delete what has been kept long enough."""
        return await sweeping.prune(self.link, retention, n)

    @guarded
    async def operate(self, orders: Sequence[Order]) -> list[Answer]:
        """Carry out operators' orders."""
        if not orders:
            return []
        answers = await operating.operate(self.link, orders)
        self.link.changed(())
        return answers
