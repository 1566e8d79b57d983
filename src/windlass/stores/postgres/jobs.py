"""The life of jobs on PostgreSQL: each operation is one statement where it can be, and one transaction where not."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from windlass.core.errors import StoreError
from windlass.stores.contract import Claimed, Created, Extended, Inserted, Promoted, Replaced, Verdict
from windlass.stores.postgres import inserting, joining, keeping, operating, pruning, rescuing, settling, sweeping
from windlass.stores.postgres.claiming import Claiming
from windlass.stores.postgres.connection import FIRST_TOKEN, Room, guarded, in_doubt
from windlass.stores.postgres.leases import Leases
from windlass.stores.postgres.notices import CHANGED, channel_of, claimable, of_drafts
from windlass.stores.postgres.records import CLOCK, COLUMNS, job_of, whole
from windlass.stores.postgres.rescuing import Watch
from windlass.stores.postgres.unblocking import Rounds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.core.draft import Draft
    from windlass.core.job import Job
    from windlass.core.transition import Transition
    from windlass.stores.contract import Answer, Keep, Lease, Order, Pruned, Report, Rescued, Retention, Want
    from windlass.stores.postgres.connection import Link

# Their leases begin anew: the claim that took them may have been a while ago. So do their tokens after a promotion: an
# end that the new server never received leaves its job there as if its claim had not been answered.
MINE = "SELECT id, lease_token FROM windlass_jobs WHERE status = 'processing' AND worker_id = $1::text"
ADOPT = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET lease_expires_at = c.now + $4::interval,
    lease_token = greatest(j.lease_token, (SELECT {FIRST_TOKEN}))
FROM clock AS c, unnest($2::text[], $3::bigint[]) AS told (id, token)
WHERE j.id = told.id AND j.lease_token = told.token AND j.lease_expires_at IS NOT NULL AND j.worker_id = $1::text
RETURNING {COLUMNS}
"""  # noqa: S608  # made of constants


class PostgresJobs(Room):
    """See `contract.Jobs` for what each promises."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._claiming = Claiming(link)
        self._rounds = Rounds()
        self._watch = Watch()
        self._passed = pruning.Passed()
        self._leases = Leases()
        self._unsure: dict[str, float] = {}
        """workers whose claim got no answer, and when: they may hold jobs that they do not know of"""

    @guarded
    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        """Write each draft or say why not."""
        if tx is not None:
            return await joining.join(self.link, tx, inserting.joining(self.link, drafts))
        if not drafts:
            return []
        verdicts = await inserting.insert(self.link, drafts)
        new = drafts
        if {*map(type, verdicts)} != {Created}:
            pairs = zip(drafts, verdicts, strict=True)
            new = [draft for draft, made in pairs if isinstance(made, (Created, Replaced))]
        self.link.changed(*of_drafts(new))
        return verdicts

    def insert_now(self, drafts: Sequence[Draft], tx: object) -> list[Inserted]:
        """Write inside a synchronous driver's transaction, on the caller's thread."""
        return joining.join_now(self.link, tx, inserting.joining(self.link, drafts))

    @guarded
    async def claim(self, want: Want) -> Claimed:
        """Lease at most n jobs."""
        if want.n < 1 or not want.types:
            return Claimed()
        return await self.link.surely(lambda: self._claim(want))

    async def _claim(self, want: Want) -> Claimed:
        try:
            if self._leases.many:
                await self._running(want.worker_id)
                self._leases.asked()
            claimed = Claimed()
            if want.worker_id in self._unsure:
                claimed = Claimed(await self._adopt(want), more=True)
            claimed = claimed or await self._claiming.claim(want)
        except StoreError:
            raise
        except BaseException as error:
            if in_doubt(error):
                self._unsure[want.worker_id] = time.monotonic()
            raise
        self._leases.add(want.worker_id, claimed)
        return claimed

    async def _adopt(self, want: Want) -> list[Job]:
        """What earlier claims took whose answers never came, at most as many as are wanted; the rest stays in doubt."""
        since = self._unsure[want.worker_id]
        await self.link.end_what_was_left()
        mine = sorted(await self._running(want.worker_id) - self._leases.of(want.worker_id))
        jobs: list[Job] = []
        if mine:
            leases = [id_ for id_, _ in mine], [token for _, token in mine]
            rows = await self.link.fetch(ADOPT, want.worker_id, *leases, whole(want.lease))
            jobs = sorted(map(job_of, rows), key=lambda job: (job.priority, job.run_at, job.id))
        # Behind a pooler what was given up may still be carried out: until it cannot be any more, every claim looks.
        over = not self.link.pooled or time.monotonic() > since + 2 * self.link.place.timeout
        if over and len(jobs) <= want.n:
            self._unsure.pop(want.worker_id, None)
        return jobs[: want.n]

    async def _running(self, worker_id: str) -> set[tuple[str, int]]:
        """The ids and tokens of all that a worker holds; what it held before is forgotten."""
        before = self._leases.of(worker_id)
        running = {(id_, token) for id_, token in await self.link.fetch(MINE, worker_id)}
        self._leases.end(before - running)
        return running

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
        self.link.changed(CHANGED)
        return verdicts

    @guarded
    async def keep(self, keeps: Sequence[Keep]) -> list[Verdict]:
        """Have running jobs remember values."""
        if not keeps:
            return []
        verdicts = await keeping.keep(self.link, keeps)
        # Once the jobs have got on that wait for this, a turn later: to send the news would keep each of them back.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self.link.changed, CHANGED)
        return verdicts

    async def keep_in(self, keep: Keep, tx: object) -> Verdict:
        """The same inside the caller's own transaction."""
        return await joining.join(self.link, tx, keeping.keeping(keep, channel_of(self.link)))

    def keep_in_now(self, keep: Keep, tx: object) -> Verdict:
        """The same on a synchronous driver's, on the caller's thread."""
        return joining.join_now(self.link, tx, keeping.keeping(keep, channel_of(self.link)))

    @guarded
    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        """Write transitions."""
        if not transitions:
            return []
        known = {one.id: self._leases.get(one.id) for one in transitions}
        plain = all(
            (lease := known[one.id]) is not None and lease.alone and lease.token == one.token for one in transitions
        )
        verdicts, freed = await settling.apply(self.link, transitions, plain=plain)
        # One that is held goes on here: else it would be taken for one whose claim was never answered.
        said = [one for one, verdict in zip(transitions, verdicts, strict=True) if verdict is not Verdict.HELD]
        self._leases.end((one.id, one.token) for one in said)
        queues = {id_: None if lease is None else lease.queue for id_, lease in known.items()}
        self.link.changed(*settling.of_ends(transitions, queues, freed))
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
        promoted, notices = await sweeping.promote(self.link, n, self._rounds)
        self.link.changed(*notices)
        return promoted

    @guarded
    async def age(self, after: timedelta, to: int, n: int) -> int:
        """Raise what has waited long."""
        return await sweeping.age(self.link, after, to, n)

    @guarded
    async def rescue(self, n: int) -> list[Rescued]:
        """Hand back what was lost."""
        rescued, queues = await rescuing.rescue(self.link, n, self._watch)
        if rescued:
            self.link.changed(CHANGED, *claimable(queues))
        return rescued

    @guarded
    async def prune(self, retention: Retention, n: int) -> Pruned:
        """Delete what has been kept long enough."""
        return await pruning.prune(self.link, retention, n, self._passed)

    @guarded
    async def operate(self, orders: Sequence[Order], tx: object | None = None) -> list[Answer]:
        """Carry out operators' orders."""
        if not orders:
            return []
        if tx is not None:
            return await joining.join(self.link, tx, operating.joining(self.link, orders))
        carried = await operating.operate(self.link, orders)
        self.link.changed(*carried.notices)
        return carried.answers

    def operate_now(self, orders: Sequence[Order], tx: object) -> list[Answer]:
        """The same inside a synchronous driver's transaction, on the caller's thread."""
        return joining.join_now(self.link, tx, operating.joining(self.link, orders)) if orders else []
