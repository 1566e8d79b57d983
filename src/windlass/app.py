"""Windlass: what a user makes. It only composes registry, client and worker, and loads optional parts when asked."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

from windlass import settings as reading
from windlass.blocking import Door
from windlass.client import flows
from windlass.client.calls import JobFunction
from windlass.client.client import Client
from windlass.client.jobs import JobsRoom
from windlass.client.locks import TTL, Lock, lock
from windlass.client.many import enqueue_each, make_all, make_now
from windlass.client.naming import Named, make
from windlass.client.options import OPTION_WORDS, Asked, lay_over
from windlass.client.schedules import SchedulesRoom
from windlass.client.surrounding import Outgoing
from windlass.client.vault import Vault
from windlass.core.around import Surrounds, layer_of, layers_of
from windlass.core.batch import Batched
from windlass.core.context import Ctx, on_enter
from windlass.core.draft import Options
from windlass.core.errors import HandlerError, PayloadInvalid, SettingsError
from windlass.core.events import Event, Hub
from windlass.core.every import When
from windlass.core.handler import Declaration, Handler, declare, declare_batch, declare_instance, declared_by
from windlass.core.keys import check_name
from windlass.core.registry import Registry
from windlass.core.retry import Retry
from windlass.core.signals import as_duration
from windlass.core.words import read_words
from windlass.observability.context import bind_structlog
from windlass.observability.logs import Logs, tell_raised
from windlass.stores.contract import Retention
from windlass.stores.given import store_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import timedelta
    from types import TracebackType
    from typing import Self

    from fastapi import FastAPI
    from prometheus_client import CollectorRegistry
    from pydantic import BaseModel

    from windlass.client.audit import AuditRoom
    from windlass.client.catalogue import Published
    from windlass.client.dead_letters import DeadLettersRoom
    from windlass.client.flows import Bound, Group
    from windlass.client.handle import Handle
    from windlass.client.health import HealthRoom
    from windlass.client.keys import KeysRoom
    from windlass.client.many import Wanted
    from windlass.client.operations import OperationsRoom
    from windlass.client.queues import QueuesRoom
    from windlass.client.requests import RequestsRoom
    from windlass.client.secrets import SecretsRoom
    from windlass.client.stats import StatsRoom
    from windlass.client.types import TypesRoom
    from windlass.client.workers import WorkersRoom
    from windlass.core.ageing import Ageing
    from windlass.core.draft import Priority
    from windlass.core.errors import WindlassError
    from windlass.core.limit import Limit
    from windlass.core.rate import Rate
    from windlass.core.unique import Unique
    from windlass.observability.errors import Failure
    from windlass.observability.prometheus import Prometheus
    from windlass.observability.reporting import MetricsReporter
    from windlass.stores.contract import Capabilities, Store
    from windlass.web.access.authenticating import Authenticator
    from windlass.web.answers import Answers
    from windlass.web.dashboard.room import Room
    from windlass.web.extending import Routes
    from windlass.web.limits import Limits
    from windlass.web.live.pace import Pace
    from windlass.worker.own import Own
    from windlass.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")
T = TypeVar("T")
S = TypeVar("S", bound="BaseModel")
OnRun = TypeVar("OnRun", bound=Surrounds[Ctx])
OnError = TypeVar("OnError", bound="Callable[[Failure], Any]")
OnEnqueue = TypeVar("OnEnqueue", bound=Surrounds[Outgoing])
on_enter(bind_structlog)
_HANDLER_WORDS = ("name", "retry", "process", "schedule", "around_run", "around_enqueue", *OPTION_WORDS)


class BatchDecorator(Protocol):
    """Turns a function that does several jobs in one call into a job that is enqueued with the data of one."""

    @overload
    def __call__(self, function: Callable[[list[Batched[D, R]]], Awaitable[None]], /) -> JobFunction[[D], R]: ...
    @overload
    def __call__(self, function: Callable[[list[Batched[D, R]]], None], /) -> JobFunction[[D], R]: ...


class JobDecorator(Protocol):
    """Turns a function into a job; a first parameter annotated `Ctx` is windlass's to fill in."""

    @overload
    def __call__(self, function: Callable[Concatenate[Ctx, P], Awaitable[R]], /) -> JobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> JobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Ctx, P], R], /) -> JobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...


class Windlass:
    """One application's jobs on one store: define them, enqueue them, look at them, run them.

    `url` names the store; without one it is WINDLASS_URL, else a file `windlass.db` here. In its place a client or pool
    may be given that the application has already: an `asyncpg.Pool`, a pymongo `AsyncMongoClient` or a database of one,
    a `redis.asyncio.Redis`, or for SQLite a `pathlib.Path` or a `sqlite3.Connection`. Its settings are taken over, and
    it is neither used nor closed. `namespace` prefixes every table, collection or key, so that several applications can
    share a database. Making one connects to nothing: the store opens at first use, or with `async with app:`, which
    also closes it. With `allow_override` a handler declared under a name that is taken replaces the one before it, as
    tests want that declare theirs again. `version` is that of your own application: `windlass types` shows which ones
    are there. `secret_keys` seal what is declared as `Secret`, the newest first; without them they are
    WINDLASS_SECRET_KEYS.
    """

    def __init__(
        self,
        url: str | object | None = None,
        *,
        namespace: str | None = None,
        retention: Retention | None = None,
        ageing: Ageing | None = None,
        store: Store | None = None,
        allow_override: bool = False,
        version: str | None = None,
        secret_keys: Sequence[str] | None = None,
    ) -> None:
        self.settings = reading.load()
        self._given: object = self.settings.url if url in (None, "") else url
        self.namespace = reading.check_namespace(namespace or self.settings.namespace)
        self.retention = _kept(retention or Retention())
        self.ageing = ageing
        self.registry = Registry(allow_override=allow_override)
        self.hub = Hub(Logs(), tell_raised)
        self.defaults = Options(max_attempts=self.settings.max_attempts)
        self.policy = Retry(self.settings.max_attempts, base=self.settings.retry_delay.total_seconds())
        self.store: Store = store or self._store()
        self.url = self._url()
        self.vault = Vault(self.settings.secret_keys if secret_keys is None else reading.check_keys(secret_keys))
        self.client = Client(self.store, self.registry, self.hub, self.defaults, self._blocking, self.vault)
        self.client.version = None if version is None else check_name(version, "the version")
        self.jobs = JobsRoom(self.client)
        self.schedules = SchedulesRoom(self.client)
        self._door: Door | None = None
        self._opening = threading.Lock()
        if self.settings.statsd is not None:
            from windlass.observability.statsd import StatsD  # the same

            self.report_metrics(StatsD.of(self.settings.statsd))
        if self.settings.tracing:
            from windlass.observability.tracing import instrument  # only who asks for it needs OpenTelemetry

            instrument(self)
        self._rooms: list[Callable[[], Room]] = []
        self._routes: list[Callable[[], Routes]] = []
        self._on_close: list[Callable[[], Awaitable[None]]] = []
        self._metrics: Prometheus | None = None

    def move(self, url: str | object | None, namespace: str | None = None) -> None:
        """Use another store than its own, or another namespace there, before anything has opened it."""
        if url is None and namespace is None:
            return
        self._given = self._given if url in (None, "") else url
        self.namespace = reading.check_namespace(namespace or self.namespace)
        self.store = self.client.store = self._store()
        self.url = self._url()

    def _store(self) -> Store:
        return store_of(self._given, namespace=self.namespace, synchronous=self.settings.synchronous)

    def _url(self) -> str:
        return self._given if isinstance(self._given, str) else self.store.address

    # Only who asks for one of these loads it: most processes enqueue and work.

    @cached_property
    def dead_letters(self) -> DeadLettersRoom:
        """Failed jobs: look at them by fingerprint, replay or discard them."""
        from windlass.client.dead_letters import DeadLettersRoom

        return DeadLettersRoom(self.client, self.jobs)

    @cached_property
    def stats(self) -> StatsRoom:
        """How many jobs stand where, and what has ended lately."""
        from windlass.client.stats import StatsRoom

        return StatsRoom(self.client)

    @cached_property
    def queues(self) -> QueuesRoom:
        """Queues: list, pause and resume them, limit their depth."""
        from windlass.client.queues import QueuesRoom

        return QueuesRoom(self.client, self.stats)

    @cached_property
    def workers(self) -> WorkersRoom:
        """The workers of this store, alive or silent."""
        from windlass.client.workers import WorkersRoom

        return WorkersRoom(self.client)

    @cached_property
    def health(self) -> HealthRoom:
        """What is wrong, or soon will be; whether the store can be worked with."""
        from windlass.client.health import HealthRoom

        return HealthRoom(self.client, self.jobs)

    @cached_property
    def types(self) -> TypesRoom:
        """What workers handle: the catalogue."""
        from windlass.client.types import TypesRoom

        return TypesRoom(self.client)

    @cached_property
    def keys(self) -> KeysRoom:
        """API keys and sessions."""
        from windlass.client.keys import KeysRoom

        return KeysRoom(self.client)

    @cached_property
    def secrets(self) -> SecretsRoom:
        """The keys that seal the secrets of jobs."""
        from windlass.client.secrets import SecretsRoom

        return SecretsRoom(self.client, self.vault)

    @cached_property
    def audit(self) -> AuditRoom:
        """Who did what to what."""
        from windlass.client.audit import AuditRoom

        return AuditRoom(self.client, self.retention.audit)

    @cached_property
    def operations(self) -> OperationsRoom:
        """Retry, cancel, delete and replay by a filter, in the background."""
        from windlass.client.operations import OperationsRoom, declared

        operations = declared(self.client, self.audit, self.defaults)
        self.registry.build_in(operations)
        return OperationsRoom(self.client, self.jobs, operations)

    @cached_property
    def own(self) -> Own:
        """Windlass's own jobs, run in this process where that is needed."""
        from windlass.worker.config import WorkerConfig
        from windlass.worker.own import Own

        queue, operations = self.operations.queue, self.operations
        config = WorkerConfig.of(
            self.settings, queues={queue: 2}, grace=5, retention=self.retention, ageing=self.ageing, own=True
        )
        return Own(self.client, operations, self.apart, config)

    def apart(self) -> Client:
        """A client with a store of its own, for who opens and closes it by themselves."""
        return Client(self.store.sibling(), self.registry, self.hub, self.defaults, self._blocking, self.vault)

    @cached_property
    def requests(self) -> RequestsRoom:
        """What was asked under an idempotency key."""
        from windlass.client.requests import RequestsRoom

        return RequestsRoom(self.client, self.settings.idempotency)

    @property
    def address(self) -> str:
        """Where its store is, without secrets: fit for logs and screens."""
        return self.store.address

    @property
    def capabilities(self) -> Capabilities:
        """What its store can do and what it risks; complete once it is open."""
        return self.store.capabilities

    async def __aenter__(self) -> Self:
        await self.client.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for close in reversed(self._on_close):
            await close()
        if "own" in self.__dict__:
            await self.own.close()
        if self._metrics is not None:
            await self._metrics.source.figures.close()
        await self.client.close()

    def close(self) -> None:
        """End the thread that serves code without an event loop, if there is one."""
        with self._opening:
            door, self._door = self._door, None
        if door is not None:
            door.close()

    def metrics(self, registry: CollectorRegistry | None = None) -> Prometheus:
        """What Prometheus reads of this application, counted from the first call on. Needs `windlass[metrics]`.

        A `prometheus_client.CollectorRegistry` of your own may be given with the first call: windlass's metrics stand
        in it beside yours, and yours stand on windlass's page.
        """
        if self._metrics is None:
            self._metrics = self._measured(registry)
        elif registry is not None and registry is not self._metrics.registry:
            raise SettingsError("metrics are in another registry already: give yours with the first call of metrics()")
        return self._metrics

    def _measured(self, registry: CollectorRegistry | None) -> Prometheus:
        try:
            from windlass.observability.prometheus import Prometheus, Source  # only who measures loads it
        except ImportError as error:
            raise SettingsError(
                f'metrics need the extra "metrics": pip install "windlass[metrics]" ({error})'
            ) from error
        from windlass.observability.counting import Counting
        from windlass.observability.figures import Figures
        from windlass.observability.tally import Tally

        tally = Tally()
        self.listen(Counting(self.registry, tally))
        return Prometheus(Source(tally.read, Figures(self.client)), self.registry, registry)

    def listen(self, listener: Callable[[Event], Any]) -> Callable[[], None]:
        """Tell `listener` every event of this application (see `windlass.events`); call the result to stop.

        Events are logged under the name `windlass` in any case; a `Logs` of your own stands in for that.
        """
        return self.hub.listen(listener, in_place_of_fallback=isinstance(listener, Logs))

    @overload
    def on_error(self, hook: OnError, /) -> OnError: ...
    @overload
    def on_error(self, *, final: bool = False) -> Callable[[OnError], OnError]: ...

    def on_error(self, hook: OnError | None = None, *, final: bool = False) -> OnError | Callable[[OnError], OnError]:
        """Have a function told of each failed attempt of this process's workers, or with `final` of the last ones only.

        It is called with a `Failure` in a thread of its own, one after another, and may take its time. Whatever it
        does, no job is harmed: that it raised or hangs is logged once.
        """

        def decorate(hook: OnError) -> OnError:
            from windlass.observability.errors import ErrorReports  # only who asks for it loads it

            self.hub.listen(ErrorReports(hook, final=final))
            return hook

        return decorate if hook is None else decorate(hook)

    def report_metrics(self, reporter: MetricsReporter) -> Callable[[], None]:
        """Have a reporter called for whatever is counted or timed here; call the result to stop.

        Of all workers of the store, the one on duty reports how it and they stand, too, every five seconds.
        """
        from windlass.observability.reporting import Reporting  # only who asks for it loads it

        reporting = Reporting(reporter, self.registry)
        remove = self.hub.listen(reporting)
        self.client.beside[reporting] = lambda on_duty: reporting.stand(self.queues, self.stats, self.workers, on_duty)

        def stop() -> None:
            remove()
            self.client.beside.pop(reporting, None)

        return stop

    # Defining.

    @overload
    def job(self, function: Callable[Concatenate[Ctx, P], Awaitable[R]], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, Awaitable[R]], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[Concatenate[Ctx, P], R], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...
    @overload
    def job(
        self,
        *,
        name: str | None = None,
        queue: str = ...,
        priority: Priority = ...,
        retry: int | Retry | None = None,
        timeout: float | timedelta | None = ...,
        expires: float | timedelta | None = None,
        max_crashes: int = ...,
        unique: str | Unique | None = None,
        idempotent: bool | float | timedelta = ...,
        limit: Limit | None = None,
        rate: Rate | None = None,
        fair_by: str | None = None,
        tags: Sequence[str] = ...,
        process: bool = False,
        schedule: When | Sequence[When] | None = None,
        around_run: Sequence[Surrounds[Ctx]] = (),
        around_enqueue: Sequence[Surrounds[Outgoing]] = (),
    ) -> JobDecorator: ...

    @overload
    def job(
        self,
        *,
        batch: int,
        name: str | None = None,
        queue: str = ...,
        priority: Priority = ...,
        retry: int | Retry | None = None,
        timeout: float | timedelta | None = ...,
        expires: float | timedelta | None = None,
        max_crashes: int = ...,
        unique: str | Unique | None = None,
        idempotent: bool | float | timedelta = ...,
        limit: Limit | None = None,
        rate: Rate | None = None,
        fair_by: str | None = None,
        tags: Sequence[str] = ...,
        around_run: Sequence[Surrounds[Ctx]] = (),
        around_enqueue: Sequence[Surrounds[Outgoing]] = (),
    ) -> BatchDecorator: ...

    def job(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        batch: int | None = None,
        process: bool = False,
        schedule: When | Sequence[When] | None = None,
        around_run: Sequence[Surrounds[Ctx]] = (),
        around_enqueue: Sequence[Surrounds[Outgoing]] = (),
        **declared: Any,
    ) -> Any:
        """Declare a function as a handler. Its jobs are enqueued with its own parameters and run by any worker.

        `async def` runs in the event loop, `def` in a thread, and with `process=True` in a process that is killed at
        its timeout. Unique keys and limits may name the function's parameters: `unique="recount:{facility}"`.

        With `batch=100` one call does up to so many jobs: the function takes a `list[Batched[Row, None]]`, and each job
        is enqueued with one `Row`.
        """

        def decorate(function: Callable[..., Any]) -> JobFunction[Any, Any]:
            options, policy = self._declared(declared)
            make = declare if batch is None else partial(declare_batch, batch=batch)
            declaration = make(
                function,
                name=name or function.__name__,
                options=options,
                policy=policy,
                process=process,
                schedules=_rules(schedule),
            )
            return self._add(_surrounded(declaration, around_run, around_enqueue))

        return decorate if function is None else decorate(function)

    def add(self, handler: Handler[D, R] | type[Handler[D, R]]) -> JobFunction[[D], R]:
        """Register a class handler: an instance, or the class when it needs no arguments."""
        instance = self._instance(handler)
        declared = declared_by(type(instance), _HANDLER_WORDS)
        name = declared.pop("name", None) or type(instance).__name__
        schedules = _rules(declared.pop("schedule", None))
        layers = declared.pop("around_run", ()), declared.pop("around_enqueue", ())
        options, policy = self._declared(declared)
        declaration = declare_instance(instance, name=name, options=options, policy=policy, schedules=schedules)
        return cast("JobFunction[[D], R]", self._add(_surrounded(declaration, *layers)))

    def _instance(self, handler: Handler[D, R] | type[Handler[D, R]]) -> Handler[D, R]:
        if not isinstance(handler, type):
            return handler
        try:
            return handler()
        except TypeError as error:
            raise HandlerError(
                f"{handler.__qualname__} cannot be made without arguments ({error}): add an instance instead"
            ) from None

    def _declared(self, declared: Mapping[str, Any]) -> tuple[Options, Retry]:
        given = read_words(declared, _HANDLER_WORDS, "option of a handler")
        retry = cast("int | Retry | None", given.pop("retry", None))
        policy = self.policy if retry is None else Retry.of(retry)
        options = lay_over(self.defaults, cast("Asked", {"max_attempts": policy.attempts, **given}))
        return options, policy

    def _add(self, declaration: Declaration) -> JobFunction[Any, Any]:
        if declaration.schedules:
            _check_schedulable(declaration)
        declaration.codec.seal_with(self.vault)
        self.registry.add(declaration)
        return JobFunction(self.client, declaration, declaration.options)

    # Surrounding.

    def around_run(self, layer: OnRun) -> OnRun:
        """Lay something around every run of this application's jobs: what comes before its one yield, and after.

        It is called with the job's `Ctx`. The first one registered is the outermost. What it raises counts as if the
        handler had: an error, or a signal such as Snooze. What is raised inside reaches it at the yield, and goes on.
        """
        self.registry.lay_around_run(layer_of(layer))
        return layer

    def around_enqueue(self, layer: OnEnqueue) -> OnEnqueue:
        """Lay something around every enqueue: it may yield the job with other options, or refuse it by raising.

        It is called with the job about to be enqueued, an `Outgoing`. The first one registered is the outermost.
        """
        self.registry.lay_around_enqueue(layer_of(layer))
        return layer

    # Enqueueing.

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

    # Locking.

    def lock(
        self, name: str, *, ttl: float | timedelta = TTL, wait: float | timedelta | None = None
    ) -> AbstractAsyncContextManager[Lock]:
        """Hold a named lock while inside: `async with app.lock("nightly") as lock:`.

        It is renewed every third of `ttl`. LockHeld when somebody else has it, at once or after `wait`; LockLost on the
        way out when it had expired and gone to another meanwhile.
        """
        return lock(self.client, name, ttl, wait)

    @contextmanager
    def lock_sync(
        self, name: str, *, ttl: float | timedelta = TTL, wait: float | timedelta | None = None
    ) -> Generator[Lock, None, None]:
        """The same for code without an event loop; renewed by the thread of `enqueue_sync`."""
        door = self._blocking()
        holding = lock(self.client, name, ttl, wait)
        held = door.run(holding.__aenter__())
        try:
            yield held
        except BaseException as error:
            door.run(holding.__aexit__(type(error), error, error.__traceback__))
            raise
        door.run(holding.__aexit__(None, None, None))

    def _blocking(self) -> Door:
        with self._opening:
            if self._door is None:
                self._door = Door(self.client)
            return self._door

    # Running.

    def worker(
        self,
        *,
        queues: Mapping[str, int] | Sequence[str] | None = None,
        concurrency: int | None = None,
        exclude: Sequence[str] = (),
        weights: Mapping[str, int] | None = None,
        lease: float | timedelta | None = None,
        heartbeat: float | timedelta | None = None,
        poll: float | timedelta | None = None,
        grace: float | timedelta | None = None,
        **more: Any,
    ) -> Worker:
        """A worker for this application's handlers; `async with` it, or await its `run()`.

        Durations are seconds or timedeltas. Without a `heartbeat`, leases are renewed three times as often as needed.
        """
        from windlass.worker.config import WorkerConfig  # only a process that works loads the hands
        from windlass.worker.worker import Worker

        config = WorkerConfig.of(
            self.settings,
            queues=queues,
            concurrency=concurrency,
            exclude=exclude,
            weights=weights,
            lease=lease,
            heartbeat=heartbeat,
            poll=poll,
            grace=grace,
            retention=self.retention,
            ageing=self.ageing,
            **more,
        )
        _ = self.operations  # their handler is every worker's
        return Worker(self.client, config)

    def asgi(
        self,
        *,
        authenticate: Authenticator | Sequence[Authenticator] | None = None,
        hosts: Sequence[str] | None = None,
        origins: Sequence[str] | None = None,
        proxies: Sequence[str] | None = None,
        live: Pace | None = None,
        limits: Limits | None = None,
        dashboard: bool | None = None,
    ) -> FastAPI:
        """The HTTP API as an ASGI application, to be served or mounted under any prefix. Needs `windlass[web]`.

        Closed: without a key (`app.keys.create`) nobody is let in. `authenticate` takes the place of keys and of what
        WINDLASS_HTTP_… sets: give a function from a request to a `windlass.web.callers.Caller` to use the sign-in of
        your own application, or several, of which the first that says something decides. `hosts` are the names that it
        answers to, any if none are given; `origins` the sites whose pages may read answers (CORS); `proxies` the
        addresses whose word on others' addresses and users is taken. Each may be set by WINDLASS_HTTP_… instead.
        `live` sets the pace and the bounds of live streams, `limits` how often anybody may ask and how many jobs of one
        owner may wait. Below `/dashboard` are pages for people, unless `dashboard` is False.
        """
        try:
            from windlass.web.access.configured import WhoMay  # only who serves loads it
            from windlass.web.application import build
            from windlass.web.dashboard.dashboard import Dashboard
            from windlass.web.limits import Limits as Set
        except ImportError as error:
            raise SettingsError(f'the HTTP API needs the extra "web": pip install "windlass[web]" ({error})') from error
        from windlass import __version__

        asked = WhoMay.of(self.settings, authenticate, hosts=hosts, origins=origins, proxies=proxies)
        pages = None
        if self.settings.http_dashboard if dashboard is None else dashboard:
            pages = Dashboard(asked.authenticate, [load() for load in self._rooms])
        return build(
            cast("Answers", self),
            version=__version__,
            who_may=asked,
            pace=live,
            limits=limits or Set.of(self.settings),
            spans=(lambda: self.registry.spans) if self.settings.http_traceparent else None,
            dashboard=pages,
            own=[load() for load in self._routes],
        )

    def add_pages(self, load: Callable[[], Room]) -> Callable[[], Room]:
        """Hang pages of your own into the dashboard: `load` gives their room, and is called by who serves alone."""
        self._rooms.append(load)
        return load

    def add_routes(self, load: Callable[[], Routes]) -> Callable[[], Routes]:
        """Hang routes of your own into the HTTP API: `load` gives them, and is called by who serves alone.

        They stand behind the same door: the caller is known before any of them runs, bodies are bounded, and
        `windlass.web` has what says who may (`Reader`, `Enqueuer`, `Operator`, `Admin`) and how to refuse.
        """
        self._routes.append(load)
        return load

    def settings_of(self, name: str, model: type[S]) -> S:
        """Settings of your own: the table `[name]` of windlass.toml, and over it `WINDLASS_<NAME>_<FIELD>`.

        `model` is a pydantic model of them. What is set wrongly is an error that names the variable, the value and what
        was expected.
        """
        return reading.load_own(name, model)

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have this called when the application closes, before its store does; the last one given comes first."""
        self._on_close.append(close)


def _surrounded(
    declaration: Declaration, around_run: Sequence[Surrounds[Ctx]], around_enqueue: Sequence[Surrounds[Outgoing]]
) -> Declaration:
    if not around_run and not around_enqueue:
        return declaration
    return replace(declaration, around_run=layers_of(around_run), around_enqueue=layers_of(around_enqueue))


def _check_schedulable(declaration: Declaration) -> None:
    try:
        declaration.codec.encode((), {})
    except PayloadInvalid:
        raise HandlerError(
            f"{declaration.source} declares a schedule but needs arguments, which a tick cannot give: give them"
            " defaults, or put the schedule with app.schedules.put(name, job.bind(...), cron)"
        ) from None


def _kept(retention: Retention) -> Retention:
    """The retention with every time as a timedelta: numbers are seconds."""
    return replace(
        retention,
        succeeded=as_duration(retention.succeeded, "the retention of succeeded jobs"),
        failed=as_duration(retention.failed, "the retention of failed jobs"),
        cancelled=as_duration(retention.cancelled, "the retention of cancelled jobs"),
        audit=as_duration(retention.audit, "the retention of the audit list"),
        queues={name: _kept(own) for name, own in retention.queues.items()},
    )


def _rules(schedule: When | Sequence[When] | None) -> tuple[When, ...]:
    if schedule is None:
        return ()
    return (schedule,) if isinstance(schedule, When) else tuple(schedule)
