"""Handlers declared with `process=True` run in a process of their own, which is killed at the job's timeout.

Children are spawned, never forked, kept for the next job, and talk JSON over a pipe: nothing is pickled. Each leads a
process group of its own, which ends with it. Each knows until when its job is this worker's, and ends itself past that,
also if the worker cannot: when that is stopped, or its loop blocked.
"""

from __future__ import annotations

import asyncio
import contextvars
import multiprocessing
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from windlass.core.job import Error
from windlass.core.outcome import Failed, Gathering, Released, Waiting
from windlass.core.signals import Suspend
from windlass.core.spans import carried
from windlass.worker.execution import ProcessDied, RemoteFailure
from windlass.worker.runners import child as inside
from windlass.worker.runners.asking import answer
from windlass.worker.runners.kin import Child
from windlass.worker.runners.lines import retell

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.core.context import Ctx
    from windlass.worker.slots import Running, StopReason

START_WITHIN = 60.0
"""seconds a process has to load the handler's module, whatever timeout the job has, which counts from there"""
CANCEL_GRACE = 5.0
"""seconds a handler in a process has to obey a request to cancel before it is killed"""


class ProcessRunner:
    """Runs each job in a child that is free, or a new one."""

    def __init__(self, begin: Callable[[Running], None], margin: float = 0.0) -> None:
        self._begin, self._margin = begin, margin
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[Child] = []
        self._heard: dict[Child, asyncio.Queue[dict[str, Any] | None]] = {}

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run to the end; a stop kills the process, except that a request to cancel is passed on first."""
        loop = asyncio.get_running_loop()
        free = self._free()
        child = free if free is not None else await asyncio.to_thread(self._spawn, loop)
        self._heard.setdefault(child, asyncio.Queue())

        def stop(reason: StopReason) -> None:
            if reason == "cancel":
                child.send({"cancel": True})
                loop.call_later(CANCEL_GRACE, _kill_if_running, running, child)
            else:
                child.kill()

        if running.reason is not None:  # stopped while the child was being made
            self._idle.append(child)
            raise asyncio.CancelledError
        running.stopper = stop
        turn = _Turn(running, child, self._margin)
        starting = loop.call_later(START_WITHIN, turn.end_if_not_begun)
        child.context = contextvars.copy_context()
        try:
            child.send(inside.order(running.declaration, ctx.job, carried()))
            text = await self._answer(turn, ctx)
        except ProcessDied:
            del self._heard[child]
            if free is not None and not turn.begun and running.reason is None:
                return await self.run(running, ctx)  # it had died before the job reached it: the job is not to blame
            raise
        except (RemoteFailure, Suspend):
            self._idle.append(child)
            raise
        except BaseException:
            # Cancelled from outside: the process may be in the middle of anything.
            child.kill()
            del self._heard[child]
            raise
        finally:
            running.renewed = running.killer = None
            child.context = contextvars.Context()
            starting.cancel()
        self._idle.append(child)
        return text

    async def close(self) -> None:
        """End the idle children."""
        children, self._idle = self._idle, []
        for child in children:
            child.end()
        for child in children:
            await asyncio.to_thread(child.wait)

    def _free(self) -> Child | None:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            del self._heard[child]  # it died between two jobs: neither is to blame
        return None

    def _spawn(self, loop: asyncio.AbstractEventLoop) -> Child:
        def hear(child: Child, message: dict[str, Any] | None) -> None:
            if message is not None and "log" in message:
                child.context.run(retell, message["log"])  # here: a child that logs much waits for the writer
                return
            with suppress(RuntimeError):  # the worker's loop has closed: nobody is left to be told
                loop.call_soon_threadsafe(self._hear, child, message)

        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=inside.serve, args=(theirs,), daemon=True, name="windlass-job")
        process.start()
        theirs.close()
        return Child(process, ours, hear)

    def _hear(self, child: Child, message: dict[str, Any] | None) -> None:
        messages = self._heard.get(child)
        if messages is not None:
            messages.put_nowait(message)

    async def _answer(self, turn: _Turn, ctx: Ctx) -> str:
        messages = self._heard[turn.child]
        while True:
            message = await messages.get()
            if message is None:
                epitaph = await asyncio.to_thread(turn.child.epitaph)
                raise turn.death(epitaph)
            if "fenced" in message:
                turn.fenced = True
            elif "ready" in message:
                if time.monotonic() > turn.running.valid_until:
                    turn.child.send({"go": False})
                    raise RemoteFailure(Released("its lease was over before its process could begin"))
                self._begin(turn.running)  # not before: to load the code takes a while that is not the handler's
                turn.begin()
            elif "progress" in message:
                ctx.progress(**message["progress"])
            elif "ask" in message:
                turn.child.send(await answer(ctx.remembers, message))
            elif "outcome" in message:
                outcome = inside.outcome_from(message)
                # Layers see a suspension as what it is, and not as a failure.
                suspends = isinstance(outcome, (Waiting, Gathering, Released))
                raise Suspend(outcome) if suspends else RemoteFailure(outcome)
            else:
                result: str = message["result"]
                return result


class _Turn:
    """One job's turn in a child."""

    def __init__(self, running: Running, child: Child, margin: float) -> None:
        self.running, self.child, self._margin = running, child, margin
        self._lease = f"{running.job.id}:{running.job.lease_token}"
        self.begun = False
        self.fenced = False
        """it said that it ends itself, because it did not hear in time that its lease goes on"""
        self.hung = False
        """it was ended because it did not come to begin"""

    def begin(self) -> None:
        self.begun = True
        self.running.killer = self.child.kill
        # From here on the leasing thread passes each extension on, not the thread of the loop.
        self.running.renewed = self._renewed
        self.child.send({"go": True, **self._until()})

    def end_if_not_begun(self) -> None:
        if not self.begun and self.running.reason is None:
            self.hung = True
            self.child.kill()

    def death(self, epitaph: str) -> Exception:
        """What it means for the job that the process has ended."""
        if self.hung:
            module = self.running.declaration.call.__module__
            text = f"its process had not loaded {module} after {START_WITHIN:g} s: it was ended"
            return RemoteFailure(Failed(Error(type="JobTimeout", message=text)))
        # It may have ended itself without a word: nothing is sent to a worker that does not read, as when suspended.
        over = self.begun and time.monotonic() > self.running.valid_until - self._margin
        if self.fenced or (over and self.running.reason is None):
            return RemoteFailure(Released("its process ended itself when its lease could not be extended"))
        return ProcessDied(epitaph)

    def _renewed(self) -> None:
        self.child.send(self._until())

    def _until(self) -> dict[str, Any]:
        # By the monotonic clock, which all processes of a host share: so no time is won while a message is under way.
        return {"until": self.running.valid_until - self._margin, "lease": self._lease}


def _kill_if_running(running: Running, child: Child) -> None:
    if not running.ended:
        child.kill()
