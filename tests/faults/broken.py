"""Stores that are wrong on purpose, one mistake each, around a real one: the controls that every trial must catch.

Each mistake is one that a queue has been published with. They know nothing of the store they wrap but its contract.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from windlass.chaos.place import Place
from windlass.chaos.workload import LIMIT
from windlass.core.draft import Draft
from windlass.core.errors import StoreError, StoreUnavailable
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.status import Status
from windlass.core.transition import Transition
from windlass.stores.addresses import store_at
from windlass.stores.contract import (
    Action,
    Answer,
    Claimed,
    Created,
    Duplicate,
    Extended,
    Filter,
    Fired,
    Firing,
    Inserted,
    Keep,
    Lease,
    Notice,
    Notices,
    Operated,
    Order,
    Rescued,
    Store,
    Verdict,
    Want,
)
from windlass.worker.runners import process

OVER = timedelta(seconds=-1)


class Jobs:
    """The jobs of a real store; what is not overridden is passed on."""

    def __init__(self, store: Store) -> None:
        self.store, self.real = store, store.jobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    async def processing(self) -> list[Job]:
        page = await self.store.views.find(Filter(status=Status.PROCESSING), 1000)
        return list(page.jobs)

    async def end_lease(self, job: Job) -> None:
        """What no worker would ask for: the lease of somebody else is over now."""
        await self.real.extend(str(job.worker_id), [Lease(job.id, job.lease_token)], OVER)


class CompletesById(Jobs):
    """Ends whatever attempt is current, whoever asks: no fencing."""

    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        found = await self.store.views.get([one.id for one in transitions])
        tokens = {job.id: job.lease_token for job in found if job is not None and job.status is Status.PROCESSING}
        return await self.real.apply([one._replace(token=tokens.get(one.id, one.token)) for one in transitions])


class RescuesFromASnapshot(Jobs):
    """Decides by what it read a moment ago, and writes by id without looking again."""

    async def rescue(self, n: int) -> list[Rescued]:
        now = await self.store.now()
        decided = [job.id for job in await self.processing() if job.lease_expires_at and job.lease_expires_at < now]
        if not decided:
            return []
        rescued = await self.real.rescue(n)  # as another does, who is faster
        await asyncio.sleep(0.3)  # and they begin again
        for job in await self.store.views.get(decided):
            if job is not None and job.status.finished:
                await self.real.operate([Order(id=job.id, action=Action.RETRY, actor="rescue")])
        writing = asyncio.ensure_future(self.real.rescue(n))
        while not writing.done():  # a store may let those extend first who live: this one has decided
            for job in await self.store.views.get(decided):
                if job is not None and job.status is Status.PROCESSING:
                    await self.end_lease(job)
            await asyncio.wait([writing], timeout=0.05)
        return [*rescued, *writing.result()]


class TrustsItsOwnClock(Jobs):
    """Judges leases by the clock of this process, which is fast by an hour.

    It does so with every claim, too: the worker on duty, who alone rescues, may be the one that stands still.
    """

    async def claim(self, want: Want) -> Claimed:
        await self.rescue(want.n)
        return await self.real.claim(want)

    async def rescue(self, n: int) -> list[Rescued]:
        now = datetime.now(UTC) + timedelta(hours=1)
        for job in await self.processing():
            if job.lease_expires_at is not None and job.lease_expires_at < now:
                await self.end_lease(job)
        return await self.real.rescue(n)


class ClaimsOnNoticeOnly(Jobs):
    """Does not poll: it claims when it was told to, and is told no more after a while."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.told = 3

    async def claim(self, want: Want) -> Claimed:
        self.told -= 1
        return await self.real.claim(want) if self.told >= 0 else Claimed()


class LooksThenInserts(Jobs):
    """Keeps keys unique by looking first."""

    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        page = await self.store.views.find(Filter(type="keyed"), 1000)
        held = {job.payload["key"]: job.id for job in page.jobs if not job.status.finished}
        answers: list[Inserted] = []
        for draft in drafts:
            key = json.loads(draft.payload_json).get("key")
            if draft.unique_queued is not None and key in held:
                answers.append(Duplicate(held[key], key))
            else:
                bare = draft._replace(
                    unique_queued=None, unique_running=None, options=replace(draft.options, unique=None)
                )
                answers += await self.real.insert([bare], tx)
        return answers


class CountsThenClaims(Jobs):
    """Keeps limits by counting what runs, then claiming."""

    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        bare = [one._replace(limit_key=None, limit=None, options=replace(one.options, limit=None)) for one in drafts]
        return await self.real.insert(bare, tx)

    async def claim(self, want: Want) -> Claimed:
        running = Counter(job.payload["key"] for job in await self.processing() if job.type == "limited")
        await asyncio.sleep(0.02)  # the mistake: others come in between
        full = any(n >= LIMIT for n in running.values())
        return await self.real.claim(replace(want, types=want.types - {"limited"}) if full else want)


class ForgetsHandBacks(Jobs):
    """Leaves what is handed back to the end of its lease."""

    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        rest = [one for one in transitions if one.happened is not Happened.RELEASED]
        verdicts = iter(await self.real.apply(rest) if rest else [])
        return [Verdict.APPLIED if one.happened is Happened.RELEASED else next(verdicts) for one in transitions]


class CountsNoCrashes(Jobs):
    """Hands a lost job back for ever."""

    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        return await self.real.insert(
            [one._replace(options=replace(one.options, max_crashes=1_000_000)) for one in drafts], tx
        )


class TakesSilenceForConsent(Jobs):
    """Believes that a lease was extended when the store did not say so: a worker that does not fence itself."""

    async def extend(self, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
        try:
            async with asyncio.timeout(lease.total_seconds() / 5):
                return await self.real.extend(worker_id, leases, lease)
        except (TimeoutError, StoreError):
            return Extended(frozenset(), frozenset())


class GivesUp(Jobs):
    """Claims no more once the store has failed it, or was a second late."""

    failed = False

    async def claim(self, want: Want) -> Claimed:
        if self.failed:
            return Claimed()
        try:
            async with asyncio.timeout(1):
                return await self.real.claim(want)
        except (TimeoutError, StoreError):
            self.failed = True
            return Claimed()


class LeasesForLess(Jobs):
    """Leases for a third of what was asked for: who has a job believes to have it for longer than it has."""

    async def claim(self, want: Want) -> Claimed:
        return await self.real.claim(replace(want, lease=want.lease / 3))

    async def extend(self, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
        return await self.real.extend(worker_id, leases, lease / 3)


class WithholdsTheDeadline(Jobs):
    """Lets no child know until when its job is its worker's: it goes on while that one stands still."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        vars(process)["_Turn"]._until = _never


def _never(turn: object) -> dict[str, object]:
    return {"until": 1e12, "lease": vars(turn)["_lease"]}


class DropsResults(Jobs):
    """Takes a store that does not answer for one that refused: ends that are ready are thrown away."""

    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        try:
            async with asyncio.timeout(0.5):
                # A write that changes nothing, to see whether it answers: what once waits for a file is written to it,
                # whoever has stopped waiting for that.
                await self.real.age(timedelta(days=365), 0, 1)
                return await self.real.apply(transitions)
        except (TimeoutError, StoreError):
            return [Verdict.STALE for _ in transitions]


class ForgetsClaims(Jobs):
    """Leases jobs and does not say so, several times in a row; asks for others, and never for these."""

    times = 5

    async def claim(self, want: Want) -> Claimed:
        jobs = await self.real.claim(want)
        if jobs and self.times > 0:
            self.times -= 1
            raise StoreUnavailable("the answer was lost on purpose")
        return jobs


class ChargesTheUnbegun(ForgetsClaims):
    """And counts every lease that ends as a crash, whether its worker ever knew of it or not."""

    async def rescue(self, n: int) -> list[Rescued]:
        now = await self.store.now()
        for job in await self.processing():
            if job.lease_expires_at is not None and job.lease_expires_at < now:
                await self.end_lease(job)  # which confirms it besides
        return await self.real.rescue(n)


class TakesHeldForRenewed(Jobs):
    """Believes that a lease was extended whose record another had."""

    async def extend(self, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
        found = await self.real.extend(worker_id, leases, lease)
        return replace(found, held=frozenset[str]())


class StopsAtAHeldEnd(Jobs):
    """Writes no end that comes after one of a job that another has."""

    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for one in transitions:
            verdicts += await self.real.apply([one])
            if verdicts[-1] is Verdict.HELD:
                raise StoreUnavailable("somebody holds it")
        return verdicts


class StopsAtAHeldLine(Jobs):
    """Claims nothing while the first that it meets cannot be looked at."""

    async def claim(self, want: Want) -> Claimed:
        held = await self.store.views.find(Filter(type="lingering", status=Status.PROCESSING), 1)
        return Claimed() if held.jobs else await self.real.claim(want)


class Deaf:
    """Notices that never arrive, from a notifier that says all is well."""

    def __init__(self, real: Notices) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @property
    def healthy(self) -> bool:
        return True

    def subscribe(self, wake: Callable[[Notice], None]) -> AbstractAsyncContextManager[None]:
        return self._real.subscribe(lambda _: None)


class AcknowledgesAnyway(Jobs):
    """Says that jobs exist which the store refused."""

    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        try:
            return await self.real.insert(drafts, tx)
        except StoreError:
            return [Created(one.id) for one in drafts]


class KeepsWhatItClaimed(Jobs):
    """Leaks 64 KiB with every job that it claims."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.kept: list[bytes] = []

    async def claim(self, want: Want) -> Claimed:
        found = await self.real.claim(want)
        # Written to, for memory that nobody has written to is not taken yet.
        self.kept += [b"\x01" * 2**16 for _ in found]
        return found


class ForgetsWhatIsKept(Jobs):
    """Says that values are kept, and keeps them in memory at best: nothing is written."""

    async def keep(self, keeps: Sequence[Keep]) -> list[Verdict]:
        return [Verdict.APPLIED for _ in keeps]


class KeepsById(Jobs):
    """Keeps values for whoever asks, under whatever lease is current: no fencing."""

    async def keep(self, keeps: Sequence[Keep]) -> list[Verdict]:
        jobs = await self.store.views.get([one.lease.id for one in keeps])
        tokens = {job.id: job.lease_token for job in jobs if job is not None}
        current = [replace(one, lease=Lease(one.lease.id, tokens.get(one.lease.id, 0))) for one in keeps]
        return await self.real.keep(current)


class LosesEarlySignals(Jobs):
    """Takes a signal that nobody waits for yet, says that it is kept, and forgets it."""

    async def operate(self, orders: Sequence[Order], tx: object | None = None) -> list[Answer]:
        answers: list[Answer] = []
        for order in orders:
            [job] = await self.store.views.get([order.id])
            waits = job is not None and order.signal is not None and job.blocked_by == f"signal:{order.signal.name}"
            if order.signal is not None and job is not None and not waits and not job.status.finished:
                answers.append(Answer(Operated.KEPT, job.status))
            else:
                answers += await self.real.operate([order], tx)
        return answers


class LooksThenFires:
    """Makes the job of a tick that stood when it looked, whoever else may have fired it since."""

    def __init__(self, store: Store) -> None:
        self._store, self._real = store, store.schedules

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        standing = {one.name: one.next_tick for one in await self._real.list()}
        due = [one for one in firings if standing.get(one.name, one.next_tick) <= one.expected]
        await asyncio.sleep(0.05)  # the mistake: others come in between
        answers = dict(zip(firings, await self._real.fire(firings), strict=True))
        for one in due:
            if answers[one] is Fired.STALE and one.draft is not None:
                # Without its tick: no store takes a second job of one tick, which is a fence of its own.
                bare = replace(one.draft.options, tick=None)
                await self._store.jobs.insert([one.draft._replace(options=bare)])
                answers[one] = Fired.FIRED
        return [answers[one] for one in firings]


CONTROLS: dict[str, type[Jobs]] = {
    "complete_by_id": CompletesById,
    "rescue_from_snapshot": RescuesFromASnapshot,
    "client_clock": TrustsItsOwnClock,
    "notify_only": ClaimsOnNoticeOnly,
    "look_then_insert": LooksThenInserts,
    "count_then_claim": CountsThenClaims,
    "forget_hand_backs": ForgetsHandBacks,
    "count_no_crashes": CountsNoCrashes,
    "look_then_fire": Jobs,
    "acknowledge_anyway": AcknowledgesAnyway,
    "never_fence": TakesSilenceForConsent,
    "give_up": GivesUp,
    "leak": KeepsWhatItClaimed,
    "forget_claims": ForgetsClaims,
    "charge_the_unbegun": ChargesTheUnbegun,
    "held_is_renewed": TakesHeldForRenewed,
    "stop_at_a_held_end": StopsAtAHeldEnd,
    "stop_at_a_held_line": StopsAtAHeldLine,
    "lease_for_less": LeasesForLess,
    "drop_results": DropsResults,
    "withhold_the_deadline": WithholdsTheDeadline,
    "forget_what_is_kept": ForgetsWhatIsKept,
    "keep_by_id": KeepsById,
    "lose_early_signals": LosesEarlySignals,
}


class BrokenStore:
    """A real store but for the one mistake."""

    def __init__(self, real: Store, control: str) -> None:
        self._real, self._control = real, control
        self.jobs = CONTROLS[control](real)
        self.schedules = LooksThenFires(real) if control == "look_then_fire" else real.schedules
        self.notices = Deaf(real.notices) if control == "notify_only" else real.notices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def sibling(self) -> Store:
        return broken(self._real.sibling(), self._control)


def broken(real: Store, control: str) -> Store:
    """The same store with one mistake."""
    return cast("Store", BrokenStore(real, control))


def broken_at(place: Place) -> Store:
    """The store of a place with the mistake that the place asks for."""
    return broken(store_at(place.url, namespace=place.namespace), place.control)
