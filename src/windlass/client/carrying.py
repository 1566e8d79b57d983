"""Carrying out an operation: batch by batch, from where it was left, with each job met once."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from windlass.client.bulk import PAGE, Bulk, answered
from windlass.client.dead_letters import Replaying, Skipped
from windlass.client.jobs import JobsRoom
from windlass.client.operating import operate
from windlass.client.searching import filter_of
from windlass.core.grants import Grants
from windlass.core.kept import SAVED
from windlass.core.status import Status
from windlass.stores.contract import Action, Order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.audit import AuditRoom
    from windlass.client.client import Client
    from windlass.client.searching import Search
    from windlass.core.context import Ctx
    from windlass.core.job import Job
    from windlass.stores.contract import Rescued

OWN = "windlass."
"""what the types of windlass's own jobs begin with: no operation is about one of them"""
INSTANTS = ("created_since", "created_before", "finished_since", "finished_before")
_TOLD = ("done", "requested", "refused", "duplicate", "missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What is to be done to which jobs, and for whom, as the operation's payload has it."""

    deed: str
    search: dict[str, Any]
    """instants as text"""
    actor: str
    user: str | None
    """whose jobs alone are meant; None is everybody's"""
    queues: list[str] | None
    types: list[str] | None
    of: int
    limit: int | None
    rate: float | None
    reason: str | None
    origin: str | None
    request: str | None
    ids: list[str] | None = None
    """these instead of a search"""

    def words(self) -> Search:
        """The search, as it was asked for."""
        read = {word: datetime.fromisoformat(self.search[word]) for word in INSTANTS if word in self.search}
        entity = {"entity": tuple(self.search["entity"])} if "entity" in self.search else {}
        return cast("Search", {**self.search, **read, **entity})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How far it is; kept before each batch is touched, so that after a crash it is known which one was under way."""

    after: str | None = None
    """where the batch after this one begins; None at first, and after the last"""
    ids: tuple[str, ...] = ()
    """the batch under way"""
    last: bool = False
    bulk: dict[str, int]
    """what became of those before"""

    @staticmethod
    def of(saved: Any) -> Place:
        """From what was saved; the beginning, where nothing was."""
        if saved is None:
            return Place(bulk={})
        return Place(after=saved["after"], ids=tuple(saved["ids"]), last=saved["last"], bulk=saved["bulk"])


async def carry_out(client: Client, audit: AuditRoom, ctx: Ctx, errand: Errand) -> dict[str, Any]:
    """Do it all, and give what became of each kind. How it ended is in the audit list."""
    carrying = Carrying(client, ctx, errand)
    ended = "failed"
    try:
        await carrying.run()
        ended = "ended"
        return carrying.result()
    finally:
        # One that is handed back, or will be tried again, has not ended.
        ended = "cancelled" if ended != "ended" and ctx.cancelled else ended
        if ended != "failed" or ctx.attempt >= ctx.job.max_attempts:
            await _note_end(audit, ctx.id, errand, ended, carrying.result())


async def note_lost(client: Client, audit: AuditRoom, rescued: Sequence[Rescued]) -> None:
    """Operations whose workers died, and which do not run again, have an end in the audit list all the same."""
    ended = [lost.id for lost in rescued if lost.job.type.startswith(OWN) and lost.to.finished]
    if ended:  # what a rescue hands over need not have what they kept
        for job in await (await client.ready()).views.get(ended):
            if job is not None:
                errand = Errand(**job.payload["errand"])
                counted = Place.of(job.kept.get(SAVED)).bulk
                result = {"deed": errand.deed, "matched": errand.of, **counted}
                await _note_end(audit, job.id, errand, job.status.value, result)


async def _note_end(audit: AuditRoom, id_: str, errand: Errand, ended: str, result: dict[str, Any]) -> None:
    details = {**result, "requestId": errand.request}
    told = {name: value for name, value in details.items() if value is not None}
    await audit.record(
        errand.actor, f"bulk.{errand.deed}.{ended}", f"operation:{id_}", origin=errand.origin, details=told
    )


class Carrying:
    """One run of an operation."""

    def __init__(self, client: Client, ctx: Ctx, errand: Errand) -> None:
        self._client, self._ctx, self._errand = client, ctx, errand
        self._jobs = JobsRoom(client, errand.user)
        self._search = errand.words()
        self._grants = Grants.made(errand.queues, errand.types)
        statuses = filter_of(self._search)
        self._only = None if statuses.status is None else statuses.statuses
        self._began = ctx.job.created_at
        self._place = Place.of(ctx.saved)
        counted = self._place.bulk
        self._bulk = Bulk(
            of=errand.of,
            done=counted.get("done", 0),
            requested=counted.get("requested", 0),
            refused=counted.get("refused", 0),
            duplicate=counted.get("duplicate", 0),
            missing=counted.get("missing", 0),
        )

    async def run(self) -> None:
        """Batch by batch, to the end."""
        if self._place.ids:  # what this operation did before a crash is done
            await self._do(await self._again(), repeated=True)
        while not self._place.last:
            jobs = await self._next()
            await self._do(jobs, repeated=False)

    def result(self) -> dict[str, Any]:
        """What became of each kind."""
        return {"deed": self._errand.deed, "matched": self._bulk.of, **self._tally()}

    def _tally(self) -> dict[str, int]:
        return {name: getattr(self._bulk, name) for name in _TOLD}

    async def _next(self) -> list[Job]:
        """The next batch, once it is kept that it is under way."""
        if self._errand.ids is not None:
            return await self._named(self._errand.ids)
        page = await self._jobs.find(limit=PAGE, after=self._place.after, **self._search)
        limit = self._errand.limit
        left = None if limit is None else max(0, limit - self._bulk.met)
        jobs = [job for job in page.jobs if self._is_meant(job)][:left]
        last = page.next is None or (left is not None and len(jobs) >= left)
        ids = tuple(job.id for job in jobs)
        self._place = Place(after=page.next, ids=ids, last=last, bulk=self._tally())
        await self._ctx.save(asdict(self._place))
        return jobs

    async def _named(self, ids: list[str]) -> list[Job]:
        """The next of those that were named."""
        begin = int(self._place.after or 0)
        end = begin + PAGE
        found = await self._jobs.several(ids[begin:end])
        jobs = [job for job in found if job is not None and self._is_meant(job)]
        self._count("missing", found.count(None))
        under_way = tuple(job.id for job in jobs)
        self._place = Place(after=str(end), ids=under_way, last=end >= len(ids), bulk=self._tally())
        await self._ctx.save(asdict(self._place))
        return jobs

    async def _again(self) -> list[Job]:
        """The batch that was under way, as far as it is still there."""
        store = await self._client.ready()
        found = await store.views.get(self._place.ids, self._errand.user)
        gone = found.count(None)
        if self._errand.deed == "delete":
            self._count("done", gone)
        else:
            self._count("missing", gone)
        return [job for job in found if job is not None]

    def _is_meant(self, job: Job) -> bool:
        own = job.type.startswith(OWN)
        return job.created_at <= self._began and not own and self._grants.allow(type_=job.type, queue=job.queue)

    async def _do(self, jobs: Sequence[Job], *, repeated: bool) -> None:
        """Give the order to these; one that has moved since the operation began is done already, or not meant."""
        moved = [job for job in jobs if self._has_moved(job)]
        done = sum(self._is_as_wanted(job) for job in moved) if repeated else 0
        self._count("done", done)
        self._count("refused", len(moved) - done)
        ids = {job.id for job in moved}
        left = [job for job in jobs if job.id not in ids]
        if left:
            await (self._replay(left, repeated=repeated) if self._errand.deed == "replay" else self._operate(left))
        self._ctx.progress(self._bulk.met, max(self._bulk.of, self._bulk.met))

    def _has_moved(self, job: Job) -> bool:
        if self._errand.deed == "retry":
            return job.updated_at > self._began
        return job.finished_at is not None and job.finished_at > self._began

    def _is_as_wanted(self, job: Job) -> bool:
        return self._errand.deed == "retry" or (self._errand.deed == "cancel" and job.status is Status.CANCELLED)

    async def _operate(self, jobs: Sequence[Job]) -> None:
        errand = self._errand
        orders = [
            Order(
                id=job.id,
                action=Action(errand.deed),
                actor=errand.actor,
                reason=errand.reason,
                only=self._only,
                user=errand.user,
            )
            for job in jobs
        ]
        self._bulk = answered(self._bulk, await operate(self._client, orders))

    async def _replay(self, jobs: Sequence[Job], *, repeated: bool) -> None:
        errand = self._errand
        replaying = Replaying(self._client, errand.rate, None, errand.actor, before=self._bulk.met)
        await replaying.take(jobs)
        skipped: Counter[Skipped] = Counter(replaying.report().skipped)
        again = skipped.pop(Skipped.ALREADY_REPLAYED, 0)
        self._count("done", replaying.replayed + (again if repeated else 0))
        self._count("duplicate", skipped.pop(Skipped.KEY_HELD, 0))
        self._count("refused", skipped.total() + (0 if repeated else again))

    def _count(self, name: str, n: int) -> None:
        self._bulk = replace(self._bulk, **{name: getattr(self._bulk, name) + n})
