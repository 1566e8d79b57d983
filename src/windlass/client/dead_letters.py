"""`app.dead_letters`: failed jobs by what went wrong, and what to do about them."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Unpack, cast

from windlass.client.bulk import Bulk, OnProgress, answered, batches, begun, check_count, check_wanted, orders
from windlass.client.jobs import MOST_AT_ONCE
from windlass.client.operating import operate
from windlass.client.replaying import replay
from windlass.client.searching import DEAD_WORDS, DeadSearch, print_of, words_of
from windlass.client.sharing import SharedByQuestion
from windlass.core.errors import MoveRefused, PayloadInvalid, SettingsError
from windlass.core.events import JobDiscarded, JobOperated
from windlass.core.fingerprint import fingerprint
from windlass.core.keys import shown
from windlass.core.signals import as_duration
from windlass.core.status import Status
from windlass.stores.contract import Action, Created, Duplicate, Full, Operated

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from datetime import datetime

    from windlass.client.client import Client
    from windlass.client.handle import Handle
    from windlass.client.jobs import JobsRoom
    from windlass.client.rehearsing import Rehearsal
    from windlass.client.searching import Search
    from windlass.core.draft import Draft
    from windlass.core.job import Job
    from windlass.stores.contract import Answer, Inserted


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Failed jobs of one fingerprint."""

    fingerprint: str
    type: str
    error: str
    """the type of the error"""
    message: str
    """of the newest"""
    count: int
    first_seen: datetime | None
    last_seen: datetime | None
    example: str
    """the id of the newest"""
    seen: Mapping[datetime, int] = field(default_factory=dict["datetime", int])
    """how many failed in each minute"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroups:
    """The groups, largest first, of so many jobs looked at; `complete` when those were all."""

    groups: tuple[DeadGroup, ...]
    looked_at: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadJobs:
    """Failed jobs, newest first, among so many looked at; `complete` when there are no others."""

    jobs: tuple[Job, ...]
    looked_at: int
    complete: bool


class Skipped(StrEnum):
    """Why a job that matched was not replayed."""

    ALREADY_REPLAYED = "already_replayed"
    """this very failure was replayed before"""
    KEY_HELD = "key_held"
    """another job holds its unique key"""
    QUEUE_FULL = "queue_full"
    PAYLOAD_INVALID = "payload_invalid"
    """as edited, its payload does not fit"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What became of a replay of many."""

    matched: int
    replayed: int
    skipped: Mapping[Skipped, int] = field(default_factory=dict[Skipped, int])
    ids: tuple[str, ...] = ()
    """the new jobs"""
    takes: timedelta = timedelta(0)
    """how long after the first the last one is due, at the rate asked for"""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded:
    """What became of an order to discard many."""

    matched: int
    discarded: int
    left: int
    """those that were no longer there, or no longer failed, when their turn came"""
    dry_run: bool = False


class DeadLettersRoom:
    """Failed jobs are dead letters: kept for someone to look at, to replay or to discard."""

    def __init__(self, client: Client, jobs: JobsRoom, shared: SharedByQuestion | None = None) -> None:
        self._client, self._jobs = client, jobs
        self._shared = SharedByQuestion() if shared is None else shared

    def only(self, user: str) -> DeadLettersRoom:
        """The same for the failed jobs of one user; see `app.jobs.only`."""
        return DeadLettersRoom(self._client, self._jobs.only(user), self._shared)

    async def groups(
        self, *, most: int = MOST_AT_ONCE, max_age: float | timedelta = 0, **search: Unpack[DeadSearch]
    ) -> DeadGroups:
        """What went wrong, by fingerprint, among the newest `most` failed jobs that match.

        With a `max_age` all callers that ask the same share one answer of at most that age.
        """
        check_count(most, "most")
        question = "failed", self._jobs.user, most, repr(sorted(search.items()))
        return await self._shared.get(
            question, lambda: self._groups(Status.FAILED, most, search), as_duration(max_age, "max_age")
        )

    async def retrying(self, *, most: int = MOST_AT_ONCE, max_age: float | timedelta = 0) -> DeadGroups:
        """The same of jobs that are not dead yet: they failed, and wait to be tried again."""
        check_count(most, "most")
        question = "retrying", self._jobs.user, most
        return await self._shared.get(
            question, lambda: self._groups(Status.RETRYING, most, {}), as_duration(max_age, "max_age")
        )

    async def _groups(self, status: Status, most: int, search: DeadSearch) -> DeadGroups:
        found: dict[str, _Group] = {}
        looked_at, complete = 0, True
        async with aclosing(self._each(search, status)) as jobs:
            async for job, print_ in jobs:
                if looked_at >= most:
                    complete = False
                    break
                looked_at += 1
                found.setdefault(print_, _Group(job)).add(job)
        groups = [group.told(print_) for print_, group in found.items() if search.get("fingerprint") in (None, print_)]
        ordered = sorted(groups, key=lambda one: (-one.count, one.fingerprint))
        return DeadGroups(groups=tuple(ordered), looked_at=looked_at, complete=complete)

    async def find(self, *, limit: int = 50, most: int = MOST_AT_ONCE, **search: Unpack[DeadSearch]) -> DeadJobs:
        """The newest failed jobs that match, at most `limit`, among the newest `most`."""
        check_count(most, "most")
        check_count(limit, "limit")
        found: list[Job] = []
        looked_at, complete = 0, True
        async with aclosing(self._each(search)) as jobs:
            async for job, print_ in jobs:
                if looked_at >= most or len(found) >= limit:
                    complete = False
                    break
                looked_at += 1
                if search.get("fingerprint") in (None, print_):
                    found.append(job)
        return DeadJobs(jobs=tuple(found), looked_at=looked_at, complete=complete)

    async def replay(
        self, job_id: str, payload: Any = None, *, edit: Mapping[str, Any] | None = None, actor: str = "operator"
    ) -> Handle[Any]:
        """Do a failed job's work again as a new job: with its payload, with another, or with some members changed.

        A payload that is given is checked against the handler where that is known here. Replaying the same failure
        again gives the job that is already there, `created=False`.
        """
        return await self._jobs.replay(await self._dead(job_id, "replayed"), payload, edit=edit, actor=actor)

    async def replay_all(
        self,
        *,
        rate: float | None = None,
        dry_run: bool = False,
        limit: int | None = None,
        edit: Mapping[str, Any] | None = None,
        actor: str = "operator",
        everything: bool = False,
        progress: OnProgress | None = None,
        **search: Unpack[DeadSearch],
    ) -> Replayed:
        """Replay the failed jobs that match, newest first, at most `limit`, at most `rate` by the second.

        The rate is kept by delays: this returns as soon as all are enqueued. Without any filter it needs `everything`.
        `progress` is told how far it has come, as by `app.jobs.cancel_all`; what is skipped counts as refused.
        """
        check_rate(rate)
        check_wanted(search, DEAD_WORDS, everything=everything)
        plain, fits = _plain(search)
        run = Replaying(self._client, rate, edit, actor)
        bulk = await self._begun(plain, fits, limit)
        async with aclosing(batches(self._client, self._jobs, plain, limit, fits)) as found:
            async for batch in found:
                run.matched += len(batch)
                if not dry_run:
                    await run.take(batch)
                    _tell(progress, replace(bulk, done=run.replayed, refused=run.matched - run.replayed))
        return replace(run.report(), dry_run=dry_run)

    async def rehearse(self, *, limit: int | None = None, **search: Unpack[DeadSearch]) -> Rehearsal:
        """How many a replay of what matches would be about, and of the newest of them which it would skip, and why."""
        from windlass.client.rehearsing import rehearse  # loaded when it is asked for

        words = words_of(search, DEAD_WORDS)
        return await rehearse(self._client, self._jobs, cast("Search", words), limit)

    async def discard(self, job_id: str, *, actor: str = "operator", reason: str | None = None) -> None:
        """Delete a failed job with its history; announced with who did it and why."""
        job = await self._jobs.get(await self._dead(job_id, "discarded"))
        [answer] = await self._delete([job], actor, reason)
        if answer.verdict is not Operated.DONE:
            raise MoveRefused(job.id, (await self._jobs.get(job.id)).status, "discarded")

    async def discard_all(
        self,
        *,
        actor: str = "operator",
        reason: str | None = None,
        dry_run: bool = False,
        limit: int | None = None,
        everything: bool = False,
        progress: OnProgress | None = None,
        **search: Unpack[DeadSearch],
    ) -> Discarded:
        """Delete failed jobs that match, newest first, at most `limit`. Without any filter it needs `everything`.

        `progress` is told how far it has come, as by `app.jobs.delete_all`.
        """
        check_wanted(search, DEAD_WORDS, everything=everything)
        plain, fits = _plain(search)
        matched, bulk = 0, await self._begun(plain, fits, limit)
        async with aclosing(batches(self._client, self._jobs, plain, limit, fits)) as found:
            async for batch in found:
                matched += len(batch)
                if not dry_run:
                    bulk = answered(bulk, await self._delete(batch, actor, reason))
                    _tell(progress, bulk)
        left = 0 if dry_run else matched - bulk.done
        return Discarded(matched=matched, discarded=bulk.done, left=left, dry_run=dry_run)

    async def _delete(self, batch: Sequence[Job], actor: str, reason: str | None) -> list[Answer]:
        # One of them may have been queued again since it was read.
        still_failed = frozenset({Status.FAILED})
        types = {job.id: job.type for job in batch}
        return await operate(
            self._client,
            orders(batch, Action.DELETE, actor, reason, still_failed, self._jobs.user),
            lambda order, _: JobDiscarded(order.id, types[order.id], actor, reason),
        )

    async def _begun(self, plain: Search, fits: Callable[[Job], bool] | None, limit: int | None) -> Bulk:
        bulk = await begun(self._jobs, plain, limit)
        return bulk if fits is None else replace(bulk, exact=False)

    async def _dead(self, job_id: str, wanted: str) -> str:
        job = await self._jobs.get(job_id)
        if job.status is not Status.FAILED:
            raise MoveRefused(job.id, job.status, wanted)
        return job.id

    async def _each(self, search: DeadSearch, status: Status = Status.FAILED) -> AsyncGenerator[tuple[Job, str], None]:
        """Failed jobs that match but for the fingerprint, newest first, each with its own."""
        plain, _ = _plain(search)
        plain["status"] = status
        async with aclosing(self._jobs.each(**plain)) as jobs:
            async for job in jobs:
                yield job, fingerprint(job.type, job.error)


def _plain(search: DeadSearch) -> tuple[Search, Callable[[Job], bool] | None]:
    """What every search understands of it; and which of those have the fingerprint, if one is searched for."""
    words = words_of(search, DEAD_WORDS)
    wanted = print_of(search)
    words.pop("fingerprint", None)
    # The other words of dead letters are those of every search.
    plain = cast("Search", {**words, "status": Status.FAILED})
    return plain, None if wanted is None else lambda job: fingerprint(job.type, job.error) == wanted


def _tell(progress: OnProgress | None, bulk: Bulk) -> None:
    if progress is not None:
        progress(bulk)


class Replaying:
    """One replay of many, batch by batch."""

    def __init__(
        self, client: Client, rate: float | None, edit: Mapping[str, Any] | None, actor: str, before: int = 0
    ) -> None:
        self._client, self._rate, self._edit, self._actor = client, rate, edit, actor
        self._before = before
        """how many had their turn before, as far as the rate goes"""
        self.matched = 0
        self._ids: list[str] = []
        self._skipped: Counter[Skipped] = Counter()
        self._last = timedelta(0)

    async def take(self, batch: Sequence[Job]) -> None:
        """Enqueue the work of these again."""
        drafts = self._drafts(batch)
        store = await self._client.ready()
        spans = self._client.registry.spans
        with nullcontext(drafts) if spans is None else spans.sending(drafts) as sent:
            for draft, verdict in zip(sent, await store.jobs.insert(sent), strict=True):
                self._note(draft, verdict)

    @property
    def replayed(self) -> int:
        """How many new jobs there are."""
        return len(self._ids)

    def report(self) -> Replayed:
        """What has become of all."""
        return Replayed(
            matched=self.matched,
            replayed=len(self._ids),
            skipped=dict(self._skipped),
            ids=tuple(self._ids),
            takes=self._last,
        )

    def _drafts(self, batch: Sequence[Job]) -> list[Draft]:
        made: list[Draft] = []
        for job in batch:
            try:
                made.append(replay(self._client, job, edit=self._edit, delay=self._delay(len(made))))
            except PayloadInvalid:
                self._skipped[Skipped.PAYLOAD_INVALID] += 1
        return made

    def _delay(self, place: int) -> timedelta | None:
        before = self._before + len(self._ids) + place
        return timedelta(seconds=before / self._rate) if self._rate is not None and before else None

    def _note(self, draft: Draft, verdict: Inserted) -> None:
        match verdict:
            case Full():
                self._skipped[Skipped.QUEUE_FULL] += 1
                return
            case Duplicate() if verdict.key == draft.idempotency_key:
                self._skipped[Skipped.ALREADY_REPLAYED] += 1
            case Created():
                self._ids.append(verdict.id)
                self._last = max(self._last, draft.options.delay or timedelta(0))
                self._tell(draft, verdict.id)
            case _:
                self._skipped[Skipped.KEY_HELD] += 1
        self._client.announce(draft, verdict)

    def _tell(self, draft: Draft, replay_id: str) -> None:
        if draft.options.replay_of is not None:
            event = JobOperated(draft.options.replay_of, "replay", self._actor, replay_id=replay_id)
            self._client.hub.tell(event)


class _Group:
    """Jobs of one fingerprint, as they are met; the newest comes first."""

    def __init__(self, newest: Job) -> None:
        self._newest, self._count = newest, 0
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._seen: Counter[datetime] = Counter()

    def add(self, job: Job) -> None:
        self._count += 1
        at = job.finished_at or job.updated_at
        self._first = at if self._first is None else min(self._first, at)
        self._last = at if self._last is None else max(self._last, at)
        self._seen[at.replace(second=0, microsecond=0)] += 1

    def told(self, print_: str) -> DeadGroup:
        job = self._newest
        return DeadGroup(
            fingerprint=print_,
            type=job.type,
            error="" if job.error is None else job.error.type,
            message="" if job.error is None else job.error.message,
            count=self._count,
            first_seen=self._first,
            last_seen=self._last,
            example=job.id,
            seen=dict(self._seen),
        )


def check_rate(rate: float | None) -> None:
    """Refuse what is no number of jobs by the second."""
    if rate is None:
        return
    fits = not isinstance(rate, bool) and isinstance(cast("object", rate), (int, float))
    if not fits or not 0.0 < rate < float("inf"):
        raise SettingsError(f"rate is {shown(rate)}: expected how many by the second, more than 0")
