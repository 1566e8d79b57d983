"""The client: one store, one registry, one way from a draft to a handle."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from windlass.client.background import Background
from windlass.client.catalogue import Catalogue, Published
from windlass.client.changes import Changes
from windlass.client.enqueueing import Coalescer, Ids
from windlass.client.handle import Handle
from windlass.client.inheriting import Inheritance
from windlass.client.options import Asked, lay_over
from windlass.client.reading import Reading
from windlass.client.surrounding import surrounded, surrounded_now
from windlass.client.timing import timed
from windlass.core.draft import Draft, Options
from windlass.core.errors import DuplicateJob, QueueFull, TransactionRefused, WindlassError
from windlass.core.events import (
    Event,
    Hub,
    JobDeduplicated,
    JobEnqueued,
    JobEnqueuedInTransaction,
    JobReplaced,
    StoreRecovered,
    StoreTroubled,
)
from windlass.core.handler import make_draft
from windlass.core.keys import check_name
from windlass.core.values import canonical
from windlass.stores.contract import Created, Duplicate, Full, Inserted, Replaced

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from windlass.core.handler import Declaration
    from windlass.core.job import Job
    from windlass.core.payload import Codec
    from windlass.core.registry import Registry
    from windlass.core.sealing import Seals
    from windlass.stores.contract import Store

T = TypeVar("T")
C = TypeVar("C")
BULK = 1000
"""how many jobs of an `enqueue_many` go to the store in one step"""
_MADE_AT_ONCE = 100
SLOW = 5.0
"""seconds after which it is told that the store is still being opened"""
_OPEN = "open the store"
_SLOW_OPENING = (
    "not yet after {:g} s: it does not answer, or it is being migrated, here or by another process:"
    " 'windlass doctor' tells which"
)


def in_steps(jobs: Iterable[T], size: int = BULK) -> Iterator[list[T]]:
    """So many at a time."""
    left = iter(jobs)
    while batch := list(islice(left, size)):
        yield batch


async def _in_turn(
    jobs: Iterable[T], make: Callable[[list[T]], Awaitable[list[tuple[Draft, Codec | None]]]]
) -> AsyncGenerator[list[tuple[Draft, Codec | None]]]:
    """Drafts in steps, giving way to the loop's other tasks every hundred: the insert of the step before is one."""
    batch: list[tuple[Draft, Codec | None]] = []
    for some in in_steps(jobs, _MADE_AT_ONCE):
        batch += await make(some)
        if len(batch) >= BULK:
            yield batch
            batch = []
        await asyncio.sleep(0)
    if batch:
        yield batch


class Door(Protocol):
    """Where calls of code without an event loop run."""

    def run(self, call: Coroutine[Any, Any, T]) -> T: ...


class Client:
    """Enqueues and looks. Opens its store at first use; `close` lets go of it.

    What runs in the loop of a door goes by the door's own client: a store belongs to the loop that opened it.
    """

    def __init__(
        self, store: Store, registry: Registry, hub: Hub, defaults: Options, door: Callable[[], Door], seals: Seals
    ) -> None:
        self.store = store
        self.seals = seals
        """what the secrets of jobs are sealed with"""
        self.registry = registry
        self.hub = hub
        self.defaults = defaults
        self.version: str | None = None
        """of the application, where it gives one"""
        self.beside: dict[object, Callable[[Callable[[], Awaitable[None]]], Coroutine[None, None, None]]] = {}
        """what workers do beside their work, told how to wait until it is their duty"""
        self.ids = Ids()
        self._inheritance = Inheritance()
        self._ambient: ContextVar[object | None] = ContextVar("windlass_tx", default=None)
        self._door = door
        self.behind: ContextVar[Client | None] = ContextVar("windlass_behind", default=None)
        """the door's client, in calls that run there"""
        self._opening: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._coalescer: Coalescer | None = None
        self._reading = Reading(self._several)
        self._changes = Changes(store.notices)
        self._catalogue = Catalogue(store, seals)
        self._background = Background()

    @property
    def background(self) -> Background:
        """What goes on in this loop until the client closes."""
        behind = self.behind.get()
        return self._background if behind is None else behind.background

    @property
    def opened(self) -> bool:
        """Whether the store is open."""
        behind = self.behind.get()
        return self._coalescer is not None if behind is None else behind.opened

    async def open(self) -> None:
        """Open the store, once for every `close`."""
        self._users += 1
        try:
            await self.ready()
        except BaseException:
            self._users -= 1
            raise

    async def close(self) -> None:
        """Finish what is being enqueued and close the store when nobody else uses it."""
        self._users -= 1
        if self._users <= 0 and self._coalescer is not None:
            coalescer, self._coalescer, self._loop, self._users = self._coalescer, None, None, 0
            await self._background.close()
            await coalescer.close()
            await self._changes.close()
            await self._catalogue.close()
            await self.store.close()

    async def ready(self) -> Store:
        """The store, open."""
        behind = self.behind.get()
        if behind is not None:
            return await behind.ready()
        if self._coalescer is None:
            async with self._lock():
                if self._coalescer is None:
                    await self._open_store()
                    self._gather_in(asyncio.get_running_loop())
        elif self._loop is not None and self._loop.is_closed():
            # An earlier `asyncio.run` left the store open; what it gathered ended with its loop.
            self._gather_in(asyncio.get_running_loop())
        return self.store

    async def _open_store(self) -> None:
        loop, began = asyncio.get_running_loop(), time.monotonic()
        slow = loop.call_later(SLOW, self.hub.tell, StoreTroubled(_OPEN, _SLOW_OPENING.format(SLOW)))
        try:
            await self.store.open()
        finally:
            slow.cancel()
        took = time.monotonic() - began
        if took > SLOW:
            self.hub.tell(StoreRecovered(_OPEN, took))

    def _lock(self) -> asyncio.Lock:
        # A lock belongs to the loop that first waited for it.
        loop = asyncio.get_running_loop()
        if self._opening is None or self._opening[0] is not loop:
            self._opening = (loop, asyncio.Lock())
        return self._opening[1]

    def _gather_in(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._coalescer = Coalescer(partial(self._insert, self.store))
        self._changes = Changes(self.store.notices)
        self._catalogue = Catalogue(self.store, self.seals)

    async def read(self, job_id: str, user: str | None = None) -> Job | None:
        """A job, if it is there and this user's; those asked for at the same moment are read together."""
        return await self._reading.get(job_id, user)

    async def _several(self, ids: Sequence[str], user: str | None) -> list[Job | None]:
        return await (await self.ready()).views.get(ids, user)

    async def published(self, name: str) -> Published | None:
        """What a worker elsewhere declares of a type; None of one whose handler is here, or that nobody has told of."""
        check_name(name, "the type")
        if name in self.registry:
            return None
        behind = self.behind.get()
        if behind is not None:
            return await behind.published(name)
        store = await self.ready()
        if asyncio.get_running_loop() is self._loop:
            return await self._catalogue.newest(name)
        versions = await store.types.get(name)
        return Published(versions[0].declared, self.seals) if versions else None

    def draft(self, declaration: Declaration, payload_json: str, options: Options) -> Draft:
        """A job of a handler that is registered here. Inside a running job it takes over what was not decided."""
        return declaration.draft(self.ids(), payload_json, self._inheritance.of(options))

    def draft_by_name(
        self, name: str, payload: Any, asked: Asked, published: Published | None = None
    ) -> tuple[Draft, Codec | None]:
        """A job of any type; its payload is checked where its handler is known here, or was published elsewhere."""
        check_name(name, "the type")
        if name in self.registry:
            declaration = self.registry.get(name)
            nothing = payload is None and declaration.handler is None
            text = declaration.codec.encode_plain({} if nothing else payload)
            return self.draft(declaration, text, lay_over(declaration.options, asked)), declaration.codec
        if published is not None:
            return self._draft_published(published, payload, asked), None
        text = canonical({} if payload is None else payload, name)
        options = self._inheritance.of(lay_over(self.defaults, asked))
        return make_draft(name, self.ids(), text, options, templated=False), None

    def _draft_published(self, published: Published, payload: Any, asked: Asked) -> Draft:
        declared, text = published.declared, published.encode(payload)
        own = declared.enqueued_with
        options = self._inheritance.of(lay_over(own, asked))
        templated = options.unique is own.unique
        return make_draft(
            declared.type,
            self.ids(),
            text,
            options,
            templated=templated,
            defaults=declared.defaults,
            seals=published.seals,
        )

    def transaction(self, tx: object | None) -> object | None:
        """The caller's transaction: the one given, else the one of the surrounding `within`."""
        joined = tx if tx is not None else self._ambient.get()
        if joined is not None and self.behind.get() is not None:
            raise TransactionRefused(
                "a transaction is joined on the thread it was begun on, and run_sync works on another: use the call of"
                " that name that ends in _sync, as enqueue_sync and cancel_sync"
            )
        return joined

    def enter(self, tx: object) -> Any:
        """Make `tx` the ambient transaction; give what is returned to `leave`."""
        return self._ambient.set(tx)

    def leave(self, token: Any) -> None:
        """End the ambient transaction."""
        self._ambient.reset(token)

    async def enqueue(self, draft: Draft, codec: Codec | None, tx: object | None = None) -> Handle[Any]:
        """Insert one job inside its layers; returns when it is durable, or inside the caller's transaction."""
        registry = self.registry
        if not registry.around_enqueue(draft.type):
            if registry.spans is None:
                return await self._enqueue(draft, codec, tx)
            return await self.enqueue_bare(draft, codec, tx)
        async with surrounded(self.registry, [draft]) as [made]:
            return await self._enqueue(made, codec, tx)

    async def enqueue_bare(self, draft: Draft, codec: Codec | None, tx: object | None = None) -> Handle[Any]:
        """The same without its layers, as a replay is: it has what the job before it had."""
        spans = self.registry.spans
        if spans is None:
            return await self._enqueue(draft, codec, tx)
        with spans.sending([draft]) as [sent]:
            return await self._enqueue(sent, codec, tx)

    async def _enqueue(self, draft: Draft, codec: Codec | None, tx: object | None) -> Handle[Any]:
        tx = self.transaction(tx)
        if tx is not None:
            [verdict] = await self._insert(self.store, [draft], tx)
        else:
            verdict = await (self.behind.get() or self).put(draft)
        if not self.hub.silent:
            self.announce(draft, verdict, tx)
        return self._handle(draft, verdict, codec)

    def put(self, draft: Draft) -> Awaitable[Inserted]:
        """Insert one job with those that are enqueued at the same moment; to be awaited at once."""
        if self._coalescer is not None and asyncio.get_running_loop() is self._loop:
            return self._coalescer.put(draft)
        return self._put_first(draft)

    async def _put_first(self, draft: Draft) -> Inserted:
        await self.ready()
        if self._coalescer is not None and asyncio.get_running_loop() is self._loop:
            return await self._coalescer.put(draft)
        [verdict] = await self._insert(self.store, [draft])
        return verdict

    async def _insert(self, store: Store, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        # Inside the caller's transaction how long it takes is the caller's affair.
        if tx is not None:
            return await store.jobs.insert(drafts, tx)
        return await timed(self.hub, "enqueue", lambda: store.jobs.insert(drafts))

    def enqueue_sync(self, draft: Draft, codec: Codec | None, tx: object | None = None) -> Handle[Any]:
        """The same for code without an event loop; inside a transaction it runs on this very thread."""
        joined = self.transaction(tx)
        if joined is None:
            return self.run_sync(self.enqueue(draft, codec))
        [handle] = self._insert_now([(draft, codec)], joined)
        return handle

    def run_sync(self, call: Coroutine[Any, Any, T]) -> T:
        """Run one call behind the door, and wait for what it gives."""
        return self._door().run(call)

    async def enqueue_many(
        self,
        jobs: Iterable[T],
        make: Callable[[list[T]], Awaitable[list[tuple[Draft, Codec | None]]]],
        tx: object | None = None,
    ) -> list[Handle[Any]]:
        """Insert many jobs in steps of a thousand, one after the other, each durable before the next is sent.

        A step is written whole or not at all, but for MongoDB, where an error may leave a part of it. While the store
        writes one step the next is made ready.
        """
        tx = self.transaction(tx)
        handles: list[Handle[Any]] = []
        writing: asyncio.Task[list[Handle[Any]]] | None = None
        try:
            async for batch in _in_turn(jobs, make):
                if writing is not None:
                    handles += await writing
                writing = asyncio.create_task(self._insert_batch(batch, tx), name="windlass-enqueue-many")
            return handles + await writing if writing is not None else handles
        except BaseException:
            if writing is not None and not writing.done():
                await asyncio.wait([writing])  # what was asked for before the error is not left in the air
            raise

    def enqueue_many_sync(
        self, drafts: Iterable[tuple[Draft, Codec | None]], tx: object | None = None
    ) -> list[Handle[Any]]:
        """The same for code without an event loop; inside a transaction it runs on this very thread."""
        joined = self.transaction(tx)
        handles: list[Handle[Any]] = []
        for batch in in_steps(drafts):  # made on this thread, where the caller's own generator belongs
            if joined is None:
                handles += self.run_sync(self._insert_batch(batch, None))
            else:
                handles += self._insert_now(batch, joined)
        return handles

    async def _insert_batch(self, batch: Sequence[tuple[Draft, Codec | None]], tx: object | None) -> list[Handle[Any]]:
        store = self.store if tx is not None else await self.ready()
        async with self.surrounded([draft for draft, _ in batch]) as drafts:
            verdicts = await self._insert(store, drafts, tx)
            return self.handles(_with(drafts, batch), verdicts, tx)

    def _insert_now(self, batch: Sequence[tuple[Draft, Codec | None]], tx: object) -> list[Handle[Any]]:
        with self.surrounded_now([draft for draft, _ in batch]) as drafts:
            verdicts = self.store.jobs.insert_now(drafts, tx)
            return self.handles(_with(drafts, batch), verdicts, tx)

    def surrounded(self, drafts: list[Draft]) -> AbstractAsyncContextManager[list[Draft]]:
        """While inside, the application's layers are around these, and a span if it is traced; gives the changed."""
        return surrounded(self.registry, drafts) if self._around_some(drafts) else nullcontext(drafts)

    def surrounded_now(self, drafts: list[Draft]) -> AbstractContextManager[list[Draft]]:
        """The same on a thread without a loop."""
        return surrounded_now(self.registry, drafts) if self._around_some(drafts) else nullcontext(drafts)

    def _around_some(self, drafts: list[Draft]) -> bool:
        registry = self.registry
        return registry.spans is not None or any(registry.around_enqueue(of) for of in {draft.type for draft in drafts})

    def handles(
        self, batch: Sequence[tuple[Draft, Codec | None]], verdicts: Sequence[Inserted], tx: object | None = None
    ) -> list[Handle[Any]]:
        """One for each verdict, in order, or the first error that was asked for. Whatever was written is announced."""
        if not self.hub.silent:
            for (draft, _), verdict in zip(batch, verdicts, strict=True):
                self.announce(draft, verdict, tx)
        return [self._handle(draft, verdict, codec) for (draft, codec), verdict in zip(batch, verdicts, strict=True)]

    async def insert_each(
        self, batch: Sequence[tuple[Draft, Codec | None]], tx: object | None = None
    ) -> list[Handle[Any] | WindlassError]:
        """The same in one step where what cannot be is told in its place, and keeps nobody else from being enqueued."""
        tx = self.transaction(tx)
        store = self.store if tx is not None else await self.ready()
        async with self.surrounded([draft for draft, _ in batch]) as drafts:
            verdicts = await self._insert(store, drafts, tx)
        found: list[Handle[Any] | WindlassError] = []
        for (draft, codec), verdict in zip(_with(drafts, batch), verdicts, strict=True):
            if not self.hub.silent:
                self.announce(draft, verdict, tx)
            try:
                found.append(self._handle(draft, verdict, codec))
            except (DuplicateJob, QueueFull) as error:
                found.append(error)
        return found

    def announce(self, draft: Draft, verdict: Inserted, tx: object | None = None) -> None:
        """Tell of a job that is in the store, or will be when the caller's transaction commits."""
        event = _announced(draft, verdict, joined=tx is not None)
        if event is not None:
            self.hub.tell(event)

    def _handle(self, draft: Draft, verdict: Inserted, codec: Codec | None) -> Handle[Any]:
        if isinstance(verdict, Full):
            raise QueueFull(verdict.queue, verdict.depth)
        if isinstance(verdict, Duplicate) and _raises(draft, verdict):
            raise DuplicateJob(verdict.id, verdict.key)
        return Handle(self, verdict.id, created=isinstance(verdict, Created), codec=codec)

    @asynccontextmanager
    async def changes(self) -> AsyncGenerator[asyncio.Event, None]:
        """An event that is set whenever something may have changed in the store."""
        behind = self.behind.get()
        if behind is not None:
            async with behind.changes() as changed:
                yield changed
            return
        store = await self.ready()
        if asyncio.get_running_loop() is self._loop:
            with self._changes.told() as changed:
                yield changed
            return
        changed = asyncio.Event()
        async with store.notices.subscribe(lambda _: changed.set()):
            yield changed


def _with(drafts: Sequence[Draft], batch: Sequence[tuple[Draft, C]]) -> Sequence[tuple[Draft, C]]:
    return [(draft, codec) for draft, (_, codec) in zip(drafts, batch, strict=True)]


def _announced(draft: Draft, verdict: Inserted, *, joined: bool) -> Event | None:
    """What there is to tell; of what the caller learns by an error there is nothing."""
    queue, correlation, user = draft.options.queue, draft.options.correlation_id, draft.options.user_id
    match verdict:
        case Full():
            return None
        case Duplicate():
            raises = _raises(draft, verdict)
            return None if raises else JobDeduplicated(verdict.id, draft.type, queue, verdict.key, correlation, user)
        case _ if joined:
            return JobEnqueuedInTransaction(
                verdict.id, draft.type, queue, isinstance(verdict, Replaced), correlation, user
            )
        case Created():
            return JobEnqueued(verdict.id, draft.type, queue, correlation, user)
        case Replaced():
            return JobReplaced(verdict.id, draft.type, queue, correlation, user)


def _raises(draft: Draft, verdict: Inserted) -> bool:
    return isinstance(verdict, Duplicate) and draft.options.on_conflict == "raise"
