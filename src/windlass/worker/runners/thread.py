"""Synchronous handlers run in daemon threads. A thread cannot be killed: past its timeout the job is settled, and the
slot stays taken, and is reported as stuck, until the thread ends by itself.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from windlass.core.outcome import Released
from windlass.worker.execution import RemoteFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windlass.core.around import Layer
    from windlass.core.context import Ctx
    from windlass.core.handler import Declaration
    from windlass.worker.slots import Running, StopReason


class Threads:
    """As many threads as are needed at once, reused; daemons, so that a stuck one cannot hold up the exit."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = 0
        self._count = 0
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread that is free, or a new one."""
        with self._lock:
            fresh = self._idle == 0
            if fresh:
                self._count += 1
            else:
                self._idle -= 1
            number = self._count
        self._work.put(work)
        if fresh:
            threading.Thread(target=self._serve, name=f"windlass-thread-{number}", daemon=True).start()

    def close(self) -> None:
        """Let idle threads end; busy ones end with their work."""
        with self._lock:
            count = self._count
        for _ in range(count):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # what a handler returned must not live on in an idle thread
            with self._lock:
                self._idle += 1


class ThreadRunner:
    """Calls the handler in a thread."""

    def __init__(self, threads: Threads, around: Callable[[Declaration], Sequence[Layer[Ctx]]] | None = None) -> None:
        self._threads, self._around = threads, around
        self.alive: dict[str, asyncio.Future[None]] = {}
        """by job id: done when the thread has really ended, which may be after the job was settled"""

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run to the end, or until a stop that does not wait for the thread."""
        declaration, job = running.declaration, ctx.job
        arguments = declaration.arguments(job.payload_json)
        positional = (ctx,) if declaration.wants_ctx else ()
        layers = () if self._around is None else self._around(declaration)

        def call() -> Any:
            with ExitStack() as stack:
                for layer in layers:
                    stack.enter_context(layer.around(ctx))
                try:
                    result = declaration.call(*positional, **arguments)
                except BaseException as error:
                    ctx.left(error)
                    raise
                ctx.left()
                return result

        def bind(stop: Callable[[StopReason], None]) -> None:
            running.stopper = stop
            if running.reason is not None:  # stopped before it began
                raise asyncio.CancelledError

        return await self.carry(running, lambda: declaration.codec.encode_result(call()), bind)

    async def carry(
        self, running: Running, call: Callable[[], str], bind: Callable[[Callable[[StopReason], None]], None]
    ) -> str:
        """Have a thread call this for a job, or for a batch of which it is one; `bind` is told how to stop waiting."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        ended: asyncio.Future[None] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                if running.fenced or running.reason is not None or time.monotonic() > running.valid_until:
                    # A thread may be slow to start, and the process may have been frozen meanwhile.
                    raise RemoteFailure(Released("its lease was over before its thread could begin"))
                told = (answer.set_result, context.run(call))
            except BaseException as error:  # noqa: BLE001  # carried to the awaiting task
                told = (answer.set_exception, _carried(error))  # type: ignore[assignment]  # one of two calls
            _tell(loop, answer, ended, *told)

        def stop(reason: StopReason) -> None:
            # A request to cancel is for the handler to see in ctx, and so is the worker's stop: handed back at once,
            # the job would begin elsewhere while its thread still goes on here. All else gives the job up here.
            if reason not in ("cancel", "shutdown") and not answer.done():
                answer.cancel()

        bind(stop)
        self.alive[running.job.id] = ended
        self._threads.submit(work)
        text: str = await answer
        return text


def _carried(error: BaseException) -> BaseException:
    # A future refuses StopIteration, GeneratorExit closes the coroutines it is raised through instead of reaching them,
    # and an asyncio cancellation raised in a thread is just another failure.
    if isinstance(error, (StopIteration, GeneratorExit, asyncio.CancelledError)):
        carried = RuntimeError(f"handler raised {type(error).__name__}")
        carried.__cause__ = error
        return carried
    return error


def _tell(
    loop: asyncio.AbstractEventLoop,
    answer: asyncio.Future[Any],
    ended: asyncio.Future[None],
    tell: Callable[[Any], None],
    what: Any,
) -> None:
    def deliver() -> None:
        if not answer.done():
            tell(what)
        if not ended.done():
            ended.set_result(None)

    try:
        loop.call_soon_threadsafe(deliver)
    except RuntimeError:
        return  # the worker has gone; the job was handed back long ago
