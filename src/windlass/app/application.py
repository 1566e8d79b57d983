"""Windlass: what a user makes. It only composes registry, client and worker, and loads optional parts when asked."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from windlass import settings as reading
from windlass.app.declaring import Declaring
from windlass.app.enqueueing import Enqueueing
from windlass.app.observing import Observing
from windlass.blocking import Door
from windlass.client.client import Client
from windlass.client.jobs import JobsRoom
from windlass.client.locks import TTL, Lock, lock
from windlass.client.schedules import SchedulesRoom
from windlass.client.vault import Vault
from windlass.core.context import on_enter
from windlass.core.draft import Options
from windlass.core.errors import SettingsError
from windlass.core.events import Hub
from windlass.core.keys import check_name
from windlass.core.registry import Registry
from windlass.core.retry import Retry
from windlass.core.signals import as_duration
from windlass.observability.context import bind_structlog
from windlass.observability.logs import Logs, tell_raised
from windlass.stores.contract import Retention
from windlass.stores.given import store_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import timedelta
    from types import TracebackType
    from typing import Self

    from fastapi import FastAPI
    from pydantic import BaseModel

    from windlass.core.ageing import Ageing
    from windlass.stores.contract import Capabilities, Store
    from windlass.web.access.authenticating import Authenticator
    from windlass.web.answers import Answers
    from windlass.web.dashboard.room import Room
    from windlass.web.extending import Routes
    from windlass.web.limits import Limits
    from windlass.web.live.pace import Pace
    from windlass.worker.own import Own
    from windlass.worker.worker import Worker

S = TypeVar("S", bound="BaseModel")
on_enter(bind_structlog)


class Windlass(Declaring, Enqueueing, Observing):
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
        self._longest_lease: timedelta | None = None
        self._rooms: list[Callable[[], Room]] = []
        self._routes: list[Callable[[], Routes]] = []
        self._on_close: list[Callable[[], Awaitable[None]]] = []

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
            lease=self._lease_wanted() if lease is None else lease,
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

    def lease_at_most(self, lease: float | timedelta) -> None:
        """Have workers of this application take leases of at most this (seconds or a timedelta).

        For an application whose jobs must go on soon after a worker is lost. A lease that is set for the worker, in
        code, on the command line or by WINDLASS_LEASE_MS, is left as it is.
        """
        wanted = as_duration(lease, "lease_at_most")
        self._longest_lease = wanted if self._longest_lease is None else min(wanted, self._longest_lease)

    def _lease_wanted(self) -> timedelta | None:
        usual, chosen = reading.Settings(), self.settings
        if self._longest_lease is None or (chosen.lease, chosen.heartbeat) != (usual.lease, usual.heartbeat):
            return None
        return min(usual.lease, self._longest_lease)

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have this called when the application closes, before its store does; the last one given comes first."""
        self._on_close.append(close)


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
