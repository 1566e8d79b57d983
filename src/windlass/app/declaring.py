"""Declaring: functions and classes become jobs, and something is laid around their runs and their enqueues."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from windlass.client.calls import JobFunction
from windlass.client.options import OPTION_WORDS, Asked, lay_over
from windlass.client.surrounding import Outgoing
from windlass.core.around import Surrounds, layer_of, layers_of
from windlass.core.batch import Batched
from windlass.core.context import Ctx
from windlass.core.draft import Options
from windlass.core.errors import HandlerError, PayloadInvalid
from windlass.core.every import When
from windlass.core.handler import Declaration, Handler, declare, declare_batch, declare_instance, declared_by
from windlass.core.retry import Retry
from windlass.core.words import read_words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import timedelta

    from windlass.client.client import Client
    from windlass.client.vault import Vault
    from windlass.core.draft import Priority
    from windlass.core.limit import Limit
    from windlass.core.rate import Rate
    from windlass.core.registry import Registry
    from windlass.core.unique import Unique

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")
OnRun = TypeVar("OnRun", bound=Surrounds[Ctx])
OnEnqueue = TypeVar("OnEnqueue", bound=Surrounds[Outgoing])
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


class Declaring:
    """An application's handlers."""

    client: Client
    registry: Registry
    vault: Vault
    defaults: Options
    policy: Retry

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


def _rules(schedule: When | Sequence[When] | None) -> tuple[When, ...]:
    if schedule is None:
        return ()
    return (schedule,) if isinstance(schedule, When) else tuple(schedule)
