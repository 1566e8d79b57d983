"""Handlers declared with `process=True` run in a process of their own, which is killed at the job's timeout.

Children are spawned, never forked, kept for the next job, and talk JSON over a pipe: nothing is pickled.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import signal
import time
from typing import TYPE_CHECKING, Any

from windlass.core.outcome import Released
from windlass.worker.execution import ProcessDied, RemoteFailure
from windlass.worker.runners import child as inside

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from windlass.core.context import Ctx
    from windlass.worker.slots import Running, StopReason

START_WITHIN = 60.0
"""seconds a process has to load the handler's module; a job's own timeout counts from there"""
CANCEL_GRACE = 5.0
"""seconds a handler in a process has to obey a request to cancel before it is killed"""


class _Child:
    """One process and the parent's end of its pipe."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self.process = process
        self.begun = False
        """whether it has begun the job it was sent last"""
        self.pipe = pipe

    def kill(self) -> None:
        self.process.kill()

    def send(self, message: dict[str, Any]) -> None:
        try:
            self.pipe.send_bytes(json.dumps(message).encode())
        except OSError:
            return  # it is gone; reading the pipe will say so

    def close(self) -> None:
        self.pipe.close()

    def epitaph(self) -> str:
        self.process.join(CANCEL_GRACE)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"


class ProcessRunner:
    """Runs each job in a child that is free, or a new one."""

    def __init__(self, begin: Callable[[Running], None]) -> None:
        self._begin = begin
        self._context = multiprocessing.get_context("spawn")
        self._idle: list[_Child] = []

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run to the end; a stop kills the process, except that a request to cancel is passed on first."""
        loop = asyncio.get_running_loop()
        job = running.job
        free = self._free()
        one = free if free is not None else await asyncio.to_thread(self._spawn)

        def stop(reason: StopReason) -> None:
            if reason == "cancel":
                one.send({"cancel": True})
                loop.call_later(CANCEL_GRACE, _kill_if_running, running, one)
            else:
                one.kill()

        if running.reason is not None:  # stopped while the child was being made
            self._idle.append(one)
            raise asyncio.CancelledError
        running.stopper = stop
        starting = loop.call_later(START_WITHIN, _stop_if_not_begun, running)
        try:
            one.begun = False
            one.send(inside.order(running.declaration, job))
            text = await self._answer(one, running, ctx)
        except ProcessDied:
            one.close()
            if free is not None and not one.begun and running.reason is None:
                return await self.run(running, ctx)  # it had died before the job reached it: the job is not to blame
            raise
        except RemoteFailure:
            self._idle.append(one)
            raise
        except BaseException:
            # Cancelled from outside: the process may be in the middle of anything.
            one.kill()
            one.close()
            raise
        finally:
            starting.cancel()
        self._idle.append(one)
        return text

    async def close(self) -> None:
        """End the idle children."""
        children, self._idle = self._idle, []
        for one in children:
            one.close()
        for one in children:
            await asyncio.to_thread(one.process.join, CANCEL_GRACE)

    def _free(self) -> _Child | None:
        while self._idle:
            one = self._idle.pop()
            if one.process.is_alive():
                return one
            one.close()  # it died between two jobs: neither is to blame
        return None

    def _spawn(self) -> _Child:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=inside.serve, args=(theirs,), daemon=True, name="windlass-job")
        process.start()
        theirs.close()
        return _Child(process, ours)

    async def _answer(self, one: _Child, running: Running, ctx: Ctx) -> str:
        while True:
            message = await self._read(one)
            if message is None:
                raise ProcessDied(await asyncio.to_thread(one.epitaph))
            if "ready" in message:
                if time.monotonic() > running.valid_until:
                    one.send({"go": False})
                    raise RemoteFailure(Released("its lease was over before its process could begin"))
                one.begun = True
                self._begin(running)  # not before: to load the code takes a while that is not the handler's
                one.send({"go": True})
            elif "progress" in message:
                ctx.progress(**message["progress"])
            elif "outcome" in message:
                raise RemoteFailure(inside.outcome_from(message))
            else:
                result: str = message["result"]
                return result

    async def _read(self, one: _Child) -> dict[str, Any] | None:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        number = one.pipe.fileno()
        loop.add_reader(number, _set, readable)
        try:
            await readable
        finally:
            loop.remove_reader(number)
        try:
            message: dict[str, Any] = json.loads(one.pipe.recv_bytes())
        except (EOFError, OSError):
            return None
        return message


def _set(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


def _stop_if_not_begun(running: Running) -> None:
    if running.deadline is None and running.job.timeout is not None:
        running.stop("timeout")


def _kill_if_running(running: Running, one: _Child) -> None:
    if not running.ended:
        one.kill()
