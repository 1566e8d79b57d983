"""Enqueueing: jobs by name or by their functions, one or many, alone or in the caller's transaction."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from windlass.client import flows
from windlass.client.many import enqueue_each, make_all, make_now
from windlass.client.naming import Named, make
from windlass.client.options import Asked
from windlass.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Iterable

    from windlass.client.calls import JobFunction
    from windlass.client.catalogue import Published
    from windlass.client.client import Client
    from windlass.client.flows import Bound, Group
    from windlass.client.handle import Handle
    from windlass.client.many import Wanted
    from windlass.core.errors import WindlassError
    from windlass.core.handler import Handler
    from windlass.core.registry import Registry

R = TypeVar("R")
D = TypeVar("D")
T = TypeVar("T")


class Enqueueing:
    """What sends jobs to the store."""

    client: Client
    registry: Registry

    @overload
    async def enqueue(
        self,
        job: type[Handler[D, R]] | Handler[D, R],
        payload: D,
        /,
        *,
        tx: object | None = None,
        **asked: Unpack[Asked],
    ) -> Handle[R]: ...
    @overload
    async def enqueue(
        self, job: JobFunction[..., R], payload: Any = None, /, *, tx: object | None = None, **asked: Unpack[Asked]
    ) -> Handle[R]: ...
    @overload
    async def enqueue(self, job: Bound[R], /, *, tx: object | None = None, **asked: Unpack[Asked]) -> Handle[R]: ...
    @overload
    async def enqueue(
        self, job: str, payload: Any = None, /, *, tx: object | None = None, **asked: Unpack[Asked]
    ) -> Handle[Any]: ...

    async def enqueue(
        self, job: Named, payload: Any = None, /, *, tx: object | None = None, **asked: Unpack[Asked]
    ) -> Handle[Any]:
        """Enqueue by name, with plain JSON values and no need for the handler here; or by the job itself.

        By name a job has the options that its handler declares, here or as the newest worker has published them, and
        its payload is checked against that handler's types. Of a type that nobody has told of, anything is taken.

        That is a function declared with `job`, with its arguments by name as a dict; one bound to its arguments; or a
        class handler that was added, its class or an instance, with its data.
        """
        published = await self.client.published(job) if isinstance(job, str) else None
        made = make(self.client, job, payload, asked, published)
        return await self.client.enqueue(made.draft, made.codec, made.tx if tx is None else tx)

    @overload
    def enqueue_sync(
        self,
        job: type[Handler[D, R]] | Handler[D, R],
        payload: D,
        /,
        *,
        tx: object | None = None,
        **asked: Unpack[Asked],
    ) -> Handle[R]: ...
    @overload
    def enqueue_sync(
        self, job: JobFunction[..., R], payload: Any = None, /, *, tx: object | None = None, **asked: Unpack[Asked]
    ) -> Handle[R]: ...
    @overload
    def enqueue_sync(self, job: Bound[R], /, *, tx: object | None = None, **asked: Unpack[Asked]) -> Handle[R]: ...
    @overload
    def enqueue_sync(
        self, job: str, payload: Any = None, /, *, tx: object | None = None, **asked: Unpack[Asked]
    ) -> Handle[Any]: ...

    def enqueue_sync(
        self, job: Named, payload: Any = None, /, *, tx: object | None = None, **asked: Unpack[Asked]
    ) -> Handle[Any]:
        """The same from code without an event loop."""
        published: Published | None = None
        if isinstance(job, str) and job not in self.registry:
            published = self.client.run_sync(self.client.published(job))
        made = make(self.client, job, payload, asked, published)
        return self.client.enqueue_sync(made.draft, made.codec, made.tx if tx is None else tx)

    @overload
    async def enqueue_many(self, jobs: Iterable[Bound[R]], *, tx: object | None = None) -> list[Handle[R]]: ...
    @overload
    async def enqueue_many(self, jobs: Iterable[Wanted], *, tx: object | None = None) -> list[Handle[Any]]: ...

    async def enqueue_many(self, jobs: Iterable[Wanted], *, tx: object | None = None) -> list[Handle[Any]]:
        """Enqueue many in steps of a thousand, each durable as a whole; one handle each, in order.

        Jobs are bound ones, or by name as `("mail.send", {"to": "ada"}, {"priority": "high"})`, where options may be
        left out.
        """
        return await self.client.enqueue_many(jobs, partial(make_all, self.client), tx)

    @overload
    def enqueue_many_sync(self, jobs: Iterable[Bound[R]], *, tx: object | None = None) -> list[Handle[R]]: ...
    @overload
    def enqueue_many_sync(self, jobs: Iterable[Wanted], *, tx: object | None = None) -> list[Handle[Any]]: ...

    def enqueue_many_sync(self, jobs: Iterable[Wanted], *, tx: object | None = None) -> list[Handle[Any]]:
        """The same from code without an event loop."""
        return self.client.enqueue_many_sync((make_now(self.client, one) for one in jobs), tx)

    async def enqueue_each(
        self, jobs: Iterable[Wanted], *, tx: object | None = None
    ) -> list[Handle[Any] | WindlassError]:
        """Enqueue many of which each stands for itself: in the place of one that cannot be enqueued is its error.

        That is a PayloadInvalid, a DuplicateJob where it asked for `on_conflict="raise"`, a QueueFull. The others are
        enqueued, a thousand in one durable step.
        """
        return await enqueue_each(self.client, jobs, tx)

    def group(self, jobs: Iterable[Bound[R]]) -> Group[R]:
        """Jobs to run side by side; its `then` names the one that runs when all have: see `windlass.client.flows`."""
        return flows.group(self.client, jobs)

    @contextmanager
    def within(self, tx: object) -> Generator[None, None, None]:
        """Let everything enqueued, cancelled, retried and deleted below join the caller's transaction."""
        token = self.client.enter(tx)
        try:
            yield
        finally:
            self.client.leave(token)

    def run_sync(self, call: Coroutine[Any, Any, T]) -> T:
        """Do from code without an event loop what is written with `await` elsewhere, and give what it gives.

        `app.run_sync(handle.result(30))`, `app.run_sync(app.jobs.find(status="failed"))`. To enqueue inside your own
        transaction there is `enqueue_sync`, which stays on your thread.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self.client.run_sync(call)
        call.close()
        raise SettingsError("run_sync was called inside an event loop, which it would hold up: await the call instead")
