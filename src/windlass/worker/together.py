"""Together: one call of a handler does a batch of jobs. Each has a lease, a context and an end of its own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.core.batch import Batched, context_of
from windlass.core.context import Ctx
from windlass.core.errors import PayloadUnfit
from windlass.core.job import Error
from windlass.core.outcome import Failed, Succeeded
from windlass.core.wording import plural, span
from windlass.worker.execution import classify, unreadable
from windlass.worker.surrounding import in_its_thread, in_the_loop
from windlass.worker.taking import Taking

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windlass.core.around import Layer
    from windlass.core.events import Hub
    from windlass.core.handler import Declaration
    from windlass.core.outcome import Outcome
    from windlass.core.registry import Registry
    from windlass.stores.contract import Store
    from windlass.worker.deadlines import Deadlines
    from windlass.worker.progress import Reporting
    from windlass.worker.runners.thread import ThreadRunner
    from windlass.worker.slots import Running, StopReason


class Group:
    """The jobs of one call. What stops one of them stops the call, and so all; only a request to cancel is its own."""

    def __init__(self, members: Sequence[Running]) -> None:
        self.members = members
        self._end: Callable[[StopReason], object] | None = None
        self._reason: StopReason | None = None

    def bind(self, end: Callable[[StopReason], object]) -> None:
        """Say how the call is ended; at once, if a job was stopped before it began."""
        self._end = end
        for member in self.members:
            member.stopper = self.stop
        for member in self.members:
            if member.reason is not None:
                self.stop(member.reason)

    def stop(self, reason: StopReason) -> None:
        """Stop every job of the call, if it is more than one job's own request."""
        if reason in ("cancel", self._reason):
            return
        self._reason = reason
        for member in self.members:
            member.stop(reason)
        if self._end is not None:
            self._end(reason)

    @property
    def hastiest(self) -> Running:
        """The job with the shortest timeout, which is that of the call."""
        return min(self.members, key=lambda member: member.job.timeout or timedelta.max)


class Together:
    """Calls handlers for batches, and says how each job ended."""

    def __init__(
        self,
        store: Store,
        hub: Hub,
        registry: Registry,
        threads: ThreadRunner,
        deadlines: Deadlines,
        progress: Reporting,
    ) -> None:
        self._store, self._hub, self._registry, self._threads = store, hub, registry, threads
        self._deadlines, self._progress = deadlines, progress

    async def run(self, members: Sequence[Running]) -> dict[Running, Outcome]:
        """Do them all in one call; whatever it does, an outcome comes of each."""
        outcomes: dict[Running, Outcome] = {}
        batch: dict[Running, Batched[Any, Any]] = {}
        for member in members:
            self._hub.started(member.job)
            try:
                batch[member] = await self._batched(member)
            except PayloadUnfit as error:
                outcomes[member] = unreadable(member.job, error)
            except Exception as error:  # noqa: BLE001  # what it takes of other jobs is not there, or cannot be read
                outcomes[member] = classify(member, error)
        group = Group(list(batch))
        raised = await self._called(group, list(batch.values())) if batch else None
        return outcomes | {member: _outcome(group, member, one, raised) for member, one in batch.items()}

    async def _batched(self, member: Running) -> Batched[Any, Any]:
        job = member.job
        if job.takes is not None:
            job = await Taking(self._threads, self._store, member.declaration.codec.seals).filled(job)
        data = member.declaration.arguments(job.payload_json)["data"]
        ctx = Ctx(job, lambda progress: self._progress.report(member, progress), member.is_cancelled)
        return Batched(ctx, data)

    async def _called(self, group: Group, batch: list[Batched[Any, Any]]) -> BaseException | None:
        """What the call raised."""
        declaration = group.members[0].declaration
        layers = self._registry.around_run(declaration)
        self._deadlines.begin(group.hastiest)
        task = asyncio.current_task()
        group.bind(lambda _: None if task is None else task.cancel())
        spans = self._registry.spans
        try:
            async with AsyncExitStack() as stack:
                if spans is not None:
                    stack.enter_context(spans.running([member.job for member in group.members]))
                for layer in in_the_loop(declaration, layers):
                    for one in batch:
                        await stack.enter_async_context(layer.around(context_of(one)))
                if declaration.mode == "coroutine":
                    await declaration.call(batch)
                else:
                    call = _in_layers(declaration, in_its_thread(layers), batch)
                    await self._threads.carry(group.members[0], call, group.bind)
        except BaseException as error:  # noqa: BLE001  # a handler may raise anything; the worker lives on
            return error
        return None


def _in_layers(
    declaration: Declaration, layers: Sequence[Layer[Ctx]], batch: list[Batched[Any, Any]]
) -> Callable[[], str]:
    def call() -> str:
        with ExitStack() as stack:
            for layer in layers:
                for one in batch:
                    stack.enter_context(layer.around(context_of(one)))
            declaration.call(batch)
        return "null"

    return call


def _outcome(group: Group, member: Running, one: Batched[Any, Any], raised: BaseException | None) -> Outcome:
    if one.error is not None:
        return classify(member, one.error, context_of(one).job)
    if raised is not None and not one.is_done:
        if isinstance(raised, asyncio.CancelledError) and member.reason == "timeout":
            timeout, n = span(group.hastiest.job.timeout), plural(len(group.members), "job")
            return Failed(Error(type="JobTimeout", message=f"its batch of {n} ran longer than {timeout}"))
        return classify(member, raised, context_of(one).job)
    try:
        return Succeeded(member.declaration.codec.encode_result(one.result))
    except Exception as error:  # noqa: BLE001  # a result that does not fit, or whose own code fails
        return classify(member, error)
