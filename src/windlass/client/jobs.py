"""`app.jobs`: look at jobs and operate on them."""

from __future__ import annotations

from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, overload

from windlass.client.bulk import PAGE, Bulk, OnProgress, Wish, check_count, operate_all
from windlass.client.handle import Handle
from windlass.client.operating import operate, operate_now
from windlass.client.replaying import replay
from windlass.client.searching import Search, filter_of, fits_of, oldest_first_of
from windlass.client.sharing import SharedByQuestion
from windlass.client.walking import count_fitting, find_fitting
from windlass.core.draft import check_id
from windlass.core.errors import (
    DuplicateJob,
    JobNotFound,
    MoveRefused,
    SettingsError,
    SignalExists,
    SignalTooMuch,
)
from windlass.core.events import JobOperated
from windlass.core.kept import Signal, signal_name
from windlass.core.keys import check_key, shown
from windlass.core.payload import ResultCodec
from windlass.core.signals import as_duration
from windlass.stores.contract import COUNT_CAP, Action, Answer, Count, Filter, Operated, Order, Page

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime, timedelta

    from windlass.client.client import Client
    from windlass.client.explaining import Explanation
    from windlass.core.history import Entry
    from windlass.core.job import Job
    from windlass.stores.contract import Looked

JobRef: TypeAlias = str | Handle[Any]
"""a job by its id, or by the handle that enqueueing gave"""
MOST_ON_A_PAGE = 1000
MOST_AT_ONCE = 10_000
"""how many jobs are given in one sequence, unless more are asked for"""


class JobsRoom:
    """Looking at jobs and operating on them, by id or by what they are about."""

    def __init__(self, client: Client, user: str | None = None, shared: SharedByQuestion | None = None) -> None:
        self._client, self.user = client, user
        self._shared = SharedByQuestion() if shared is None else shared

    def only(self, user: str) -> JobsRoom:
        """The same for the jobs of one user: those of others are as if they were not there.

        That is part of every question and order to the store. To ask for another user's is refused.
        """
        return JobsRoom(self._client, check_key(user, "the user"), self._shared)

    async def get(self, job_id: str) -> Job:
        """The job; JobNotFound when there is none."""
        found = await self._client.read(check_id(job_id), self.user)
        if found is None:
            raise JobNotFound(job_id)
        return found

    async def several(self, ids: Sequence[str]) -> list[Job | None]:
        """The jobs of these ids, in order, in one question; None for one that is not there."""
        store = await self._client.ready()
        return await store.views.get([check_id(job_id) for job_id in ids], self.user)

    def changes(self) -> AbstractAsyncContextManager[asyncio.Event]:
        """While inside, an event that is set whenever something may have changed in the store.

        A hint, about any job: clear it, then look, and nothing that was told of is missed. Not every change is
        told of (a claim is not), so look now and then without it. All waiters in one loop share one subscription.
        """
        return self._client.changes()

    @property
    def pushed(self) -> bool:
        """Whether changes made by other processes are told of now; if not, only looking finds them."""
        return self._client.store.notices.healthy

    async def find(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        oldest_first: bool = False,
        max_age: float | timedelta = 0,
        **search: Unpack[Search],
    ) -> Page:
        """Jobs that match, newest first or oldest first; `after=page.next` gives the page after, `page.previous` that
        before. `where` is a line as people type it, and may give the order, too.

        A page that is not `complete` stopped at the bound of one call: `after=page.next` goes on from there. With a
        `max_age` all callers of the same page share one answer of at most that age.
        """
        if not 1 <= limit <= MOST_ON_A_PAGE:
            raise SettingsError(f"limit is {limit}: expected 1 to {MOST_ON_A_PAGE}")
        store, filter_, fits = await self._client.ready(), self._filter(search), fits_of(search)
        oldest = oldest_first or oldest_first_of(search)

        async def ask() -> Page:
            if fits is not None:
                return await find_fitting(store, filter_, fits, limit, after, oldest_first=oldest)
            return await store.views.find(filter_, limit, after, oldest_first=oldest)

        question = ("find", self._asked(search, filter_), limit, after, oldest)
        return await self._shared.get(question, ask, as_duration(max_age, "max_age"))

    async def count(self, *, most: int = COUNT_CAP, max_age: float | timedelta = 0, **search: Unpack[Search]) -> Count:
        """How many match, counted up to 100,000 or so many; not exact where so many had to be looked at.

        With a `max_age` all callers that count the same share one answer of at most that age.
        """
        store, filter_, fits = await self._client.ready(), self._filter(search), fits_of(search)

        async def ask() -> Count:
            return await (store.views.count(filter_, most) if fits is None else count_fitting(store, filter_, fits))

        return await self._shared.get(
            ("count", self._asked(search, filter_), most), ask, as_duration(max_age, "max_age")
        )

    async def explain(self, job_id: str) -> Explanation:
        """Why the job is not running, or where it runs: one true sentence, and its facts."""
        from windlass.client.explaining import explained, explained_to_its_user  # loaded when it is asked for

        job, store = await self.get(job_id), await self._client.ready()
        return await (explained(store, job) if self.user is None else explained_to_its_user(store, job))

    async def look(self, job_id: str, *, max_age: float | timedelta = 0) -> Looked:
        """The job with everything that happened to it, as both stood at one moment; JobNotFound when there is none.

        With a `max_age` all callers that look at the same job share one answer of at most that age.
        """
        store, id_ = await self._client.ready(), check_id(job_id)
        question = ("look", id_, self.user)
        age = as_duration(max_age, "max_age")
        looked = await self._shared.get(question, lambda: store.views.look(id_, self.user), age)
        if looked is None:
            raise JobNotFound(job_id)
        return looked._replace(history=[*looked.history])  # a list of its own, as others may be given the same answer

    async def history(self, job_id: str) -> list[Entry]:
        """Everything that happened to the job, oldest first; JobNotFound when there is none."""
        store = await self._client.ready()
        entries = await store.views.history(check_id(job_id), self.user)
        if not entries:
            raise JobNotFound(job_id)
        return entries

    async def each(
        self, *, after: str | None = None, oldest_first: bool = False, **search: Unpack[Search]
    ) -> AsyncGenerator[Job, None]:
        """Every job that matches, newest first or oldest first, read page by page as they are taken: as many as there
        are.
        """
        while True:
            page = await self.find(limit=PAGE, after=after, oldest_first=oldest_first, **search)
            for job in page.jobs:
                yield job
            after = page.next
            if after is None:
                return

    async def about(self, name: str, entity_id: str | int, *, most: int = MOST_AT_ONCE) -> Sequence[Job]:
        """Every job about one thing of the application, in order of creation; of more than `most` the newest.

        With `each(entity=(name, id))` there is no bound.
        """
        return await self._in_order(most, {"entity": (name, entity_id)})

    async def of(self, *, correlation: str, most: int = MOST_AT_ONCE) -> Sequence[Job]:
        """Every job of one correlation, in order of creation; of more than `most` the newest.

        The id of a job that has no correlation is the correlation of all that it enqueued, and of what those enqueued:
        with it, that job comes first.
        """
        found = await self._in_order(most, {"correlation": correlation})
        root = await self._root(correlation)
        return found if root is None else [root, *found]

    async def of_key(self, unique_key: str) -> Job | None:
        """The job that holds this unique key now, if one does: there is at most one."""
        page = await self.find(unique_key=unique_key, limit=1)
        return page.jobs[0] if page.jobs else None

    async def _in_order(self, most: int, search: Search) -> list[Job]:
        check_count(most, "most")
        found: list[Job] = []
        async with aclosing(self.each(**search)) as jobs:
            async for job in jobs:
                found.append(job)
                if len(found) >= most:
                    break
        return found[::-1]

    async def _root(self, correlation: str) -> Job | None:
        with suppress(SettingsError):  # a correlation of the caller's own making is mostly no id
            [job] = await (await self._client.ready()).views.get([check_id(correlation)], self.user)
            return job if job is not None and job.correlation_id is None else None
        return None

    @overload
    async def cancel(
        self, job: JobRef, /, *, actor: str = ..., reason: str | None = ..., tx: object | None = ...
    ) -> bool: ...
    @overload
    async def cancel(
        self,
        job: JobRef,
        other: JobRef,
        /,
        *more: JobRef,
        actor: str = ...,
        reason: str | None = ...,
        tx: object | None = ...,
    ) -> list[bool]: ...
    @overload
    async def cancel(
        self, *, unique: str, actor: str = ..., reason: str | None = ..., tx: object | None = ...
    ) -> bool: ...

    async def cancel(
        self,
        *jobs: JobRef,
        unique: str | None = None,
        actor: str = "operator",
        reason: str | None = None,
        tx: object | None = None,
    ) -> bool | list[bool]:
        """Cancel: true when it is cancelled now, false when its worker was asked to stop it.

        Jobs are named by their ids or handles. Of several there is one answer each, in order. All that can be cancelled
        are, also where one cannot: the first such one is raised afterwards. With `tx`, or inside `app.within`, it joins
        the caller's transaction: it counts on commit and is gone on rollback, and what is refused does not abort it.

        `unique="receipt:42"` cancels the job that holds this unique key, whatever its id; JobNotFound when none does.
        In a transaction that is the one that held it before.
        """
        if unique is not None:
            jobs = (await self._held_by(unique, jobs),)
        return _now_or_asked(await self._operate(_orders(jobs, Action.CANCEL, actor, reason), tx))

    async def retry(
        self, *jobs: JobRef, actor: str = "operator", reason: str | None = None, tx: object | None = None
    ) -> None:
        """Queue finished, scheduled or retrying jobs now; finished ones start with fresh attempts.

        Several, and transactions, are treated as `cancel` does.
        """
        await self._operate(_orders(jobs, Action.RETRY, actor, reason), tx)

    async def delete(
        self, *jobs: JobRef, actor: str = "operator", reason: str | None = None, tx: object | None = None
    ) -> None:
        """Remove jobs that are not processing, with their history; several, and transactions, as `cancel` does."""
        await self._operate(_orders(jobs, Action.DELETE, actor, reason), tx)

    @overload
    def cancel_sync(
        self, job: JobRef, /, *, actor: str = ..., reason: str | None = ..., tx: object | None = ...
    ) -> bool: ...
    @overload
    def cancel_sync(
        self,
        job: JobRef,
        other: JobRef,
        /,
        *more: JobRef,
        actor: str = ...,
        reason: str | None = ...,
        tx: object | None = ...,
    ) -> list[bool]: ...
    @overload
    def cancel_sync(
        self, *, unique: str, actor: str = ..., reason: str | None = ..., tx: object | None = ...
    ) -> bool: ...

    def cancel_sync(
        self,
        *jobs: JobRef,
        unique: str | None = None,
        actor: str = "operator",
        reason: str | None = None,
        tx: object | None = None,
    ) -> bool | list[bool]:
        """`cancel` for code without an event loop; inside a transaction it runs on this very thread."""
        if unique is not None:
            jobs = (self._client.run_sync(self._held_by(unique, jobs)),)
        return _now_or_asked(self._operate_sync(_orders(jobs, Action.CANCEL, actor, reason), tx))

    def retry_sync(
        self, *jobs: JobRef, actor: str = "operator", reason: str | None = None, tx: object | None = None
    ) -> None:
        """`retry` for code without an event loop."""
        self._operate_sync(_orders(jobs, Action.RETRY, actor, reason), tx)

    def delete_sync(
        self, *jobs: JobRef, actor: str = "operator", reason: str | None = None, tx: object | None = None
    ) -> None:
        """`delete` for code without an event loop."""
        self._operate_sync(_orders(jobs, Action.DELETE, actor, reason), tx)

    async def signal(
        self, job: JobRef, name: str, value: Any = None, *, actor: str = "operator", tx: object | None = None
    ) -> bool:
        """Send a job the signal it waits for, or will: true when it goes on now, false when it is kept until it asks.

        The value is what JSON can hold. Of one name the first counts: SignalExists for a second, also where the time
        that the job waited was up. MoveRefused when the job has ended. With `tx`, or inside `app.within`, it joins the
        caller's transaction, as `cancel` does.
        """
        return _freed(await self._operate([_signal(job, name, value, actor)], tx))

    def signal_sync(
        self, job: JobRef, name: str, value: Any = None, *, actor: str = "operator", tx: object | None = None
    ) -> bool:
        """`signal` for code without an event loop; inside a transaction it runs on this very thread."""
        return _freed(self._operate_sync([_signal(job, name, value, actor)], tx))

    async def cancel_all(
        self,
        *,
        actor: str = "operator",
        reason: str | None = None,
        dry_run: bool = False,
        limit: int | None = None,
        everything: bool = False,
        progress: OnProgress | None = None,
        **search: Unpack[Search],
    ) -> Bulk:
        """Cancel every job that matches when this begins, newest first, at most `limit`, hundreds in a step.

        Running ones are asked to stop. What cannot be cancelled is left and counted, as is a job that has left the
        status that was searched for. `progress` is told after every step how far it has come; if an error ends it
        early, the steps before stay. `dry_run` only counts. Without any filter it needs `everything`.
        """
        wish = Wish(action=Action.CANCEL, actor=actor, reason=reason, dry_run=dry_run, limit=limit, progress=progress)
        return await operate_all(self._client, self, search, wish, everything=everything)

    async def retry_all(
        self,
        *,
        actor: str = "operator",
        reason: str | None = None,
        dry_run: bool = False,
        limit: int | None = None,
        everything: bool = False,
        progress: OnProgress | None = None,
        **search: Unpack[Search],
    ) -> Bulk:
        """Queue every finished, scheduled or retrying job that matches, as `cancel_all` cancels them."""
        wish = Wish(action=Action.RETRY, actor=actor, reason=reason, dry_run=dry_run, limit=limit, progress=progress)
        return await operate_all(self._client, self, search, wish, everything=everything)

    async def delete_all(
        self,
        *,
        actor: str = "operator",
        reason: str | None = None,
        dry_run: bool = False,
        limit: int | None = None,
        everything: bool = False,
        progress: OnProgress | None = None,
        **search: Unpack[Search],
    ) -> Bulk:
        """Delete every job that matches and is not processing, with its history, as `cancel_all` cancels them."""
        wish = Wish(action=Action.DELETE, actor=actor, reason=reason, dry_run=dry_run, limit=limit, progress=progress)
        return await operate_all(self._client, self, search, wish, everything=everything)

    async def replay(
        self, job_id: str, payload: Any = None, *, edit: Mapping[str, Any] | None = None, actor: str = "operator"
    ) -> Handle[Any]:
        """Enqueue a finished job's work again as a new job that names the old one, under the same keys and limit.

        `payload` stands in place of its own, `edit` in place of some members of it. Replaying the same ending again
        gives the job that the first replay made, `created=False`; to do it once more, replay that one.
        """
        draft = replay(self._client, await self.get(job_id), payload=payload, edit=edit)
        known = draft.type in self._client.registry
        handle = await self._client.enqueue_bare(draft, self._client.registry.get(draft.type).codec if known else None)
        if handle.created:
            self._client.hub.tell(JobOperated(check_id(job_id), "replay", actor, replay_id=handle.id))
        return handle

    async def replays(self, job: Job, *, since: datetime | None = None, limit: int = 20) -> Page:
        """The jobs that do a job's work again, the first of them first, made since then or since it was made.

        No index knows them: they are looked for among its type's, and a page may not be `complete`, as of `find`.
        """
        store = await self._client.ready()
        wanted = Filter(
            type=job.type, replay_of=job.id, user_id=self.user, created_since=job.created_at if since is None else since
        )
        return await store.views.find(wanted, limit, oldest_first=True)

    def _filter(self, search: Search) -> Filter:
        """What a search means here."""
        filter_ = filter_of(search)
        if self.user is None:
            return filter_
        if filter_.user_id not in (None, self.user):
            raise SettingsError(f"user is {shown(filter_.user_id)}: here are only the jobs of {shown(self.user)}")
        return replace(filter_, user_id=self.user)

    def _asked(self, search: Search, filter_: Filter) -> Hashable:
        """The question, alike for all callers that ask the same: ages in a line count from each caller's own call."""
        if "where" not in search:
            return filter_, search.get("fingerprint")
        others: Search = {**search}
        del others["where"]
        return self._filter(others), search.get("fingerprint"), search["where"]

    async def _held_by(self, unique_key: str, others: Sequence[JobRef]) -> str:
        if others:
            raise SettingsError("jobs and a unique key were given: name the one to cancel by one of them")
        job = await self.of_key(unique_key)
        if job is None:
            raise JobNotFound(unique_key=unique_key)
        return job.id

    async def _operate(self, orders: Sequence[Order], tx: object | None) -> list[Answer]:
        answers: list[Answer] = []
        orders = self._meant(orders)
        for some in range(0, len(orders), PAGE):
            answers += await operate(self._client, orders[some : some + PAGE], tx=tx)
        return _accepted(orders, answers)

    def _operate_sync(self, orders: Sequence[Order], tx: object | None) -> list[Answer]:
        joined = self._client.transaction(tx)
        if joined is None:
            return self._client.run_sync(self._operate(orders, None))
        return _accepted(orders, operate_now(self._client, self._meant(orders), joined))

    def _meant(self, orders: Sequence[Order]) -> Sequence[Order]:
        return orders if self.user is None else [replace(order, user=self.user) for order in orders]


_MOVED = {
    Action.CANCEL: "cancelled",
    Action.RETRY: "queued",
    Action.DELETE: "deleted",
    Action.SIGNAL: "queued by a signal",
}
_VALUE = ResultCodec("the signal", Any)


def _orders(jobs: Sequence[JobRef], action: Action, actor: str, reason: str | None) -> list[Order]:
    if not jobs:
        raise SettingsError(f"which jobs? {action.value} was given none: name them by their ids or handles")
    ids = [check_id(job.id if isinstance(job, Handle) else job) for job in jobs]
    return [Order(id=job_id, action=action, actor=actor, reason=reason) for job_id in ids]


def _signal(job: JobRef, name: str, value: Any, actor: str) -> Order:
    signal_name(name)
    job_id = check_id(job.id if isinstance(job, Handle) else job)
    return Order(id=job_id, action=Action.SIGNAL, actor=actor, signal=Signal(name, _VALUE.encode(value)))


def _freed(answers: Sequence[Answer]) -> bool:
    return answers[0].verdict is Operated.DONE


def _accepted(orders: Sequence[Order], answers: list[Answer]) -> list[Answer]:
    """The answers, if all orders were accepted; else the first refusal."""
    for order, answer in zip(orders, answers, strict=True):
        if answer.verdict is Operated.MISSING:
            raise JobNotFound(order.id)
        if answer.verdict is Operated.DUPLICATE and order.signal is not None:
            raise SignalExists(order.id, order.signal.name)
        if answer.verdict is Operated.FULL and order.signal is not None:
            raise SignalTooMuch(order.id, order.signal.name)
        if answer.verdict is Operated.DUPLICATE and answer.holder is not None:
            raise DuplicateJob(answer.holder, "unique key of the job")
        if answer.verdict is Operated.REFUSED and answer.status is not None:
            raise MoveRefused(order.id, answer.status, _MOVED[order.action])
    return answers


def _now_or_asked(answers: Sequence[Answer]) -> bool | list[bool]:
    done = [answer.verdict is Operated.DONE for answer in answers]
    return done[0] if len(done) == 1 else done
