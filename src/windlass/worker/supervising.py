"""Supervising: N worker processes kept alive by one parent, which runs no jobs itself.

The parent ends only what it started. Each child holds the reading end of a pipe whose other end only the parent has:
when the parent dies, however it dies, the children see it close and stop gracefully.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_YOUNG = 10.0
"""seconds a child must live for its end not to count as a failed start"""
_USAGE = 2
"""the exit code of a worker that cannot start as it was told to: another try would end alike"""
_TRIES = 5


class Supervisor:
    """Keeps `count` children of one command running until it is told to stop or sees that none can start.

    The first SIGTERM or SIGINT stops them gracefully, the second hands back what they hold, the third kills them.
    A child that dies is started again after a wait that grows while it dies young; one that exits with `recycled` at
    once. One that exits with 0 has finished its work and is not started again. What `lend` gives for the life of each
    child is a file that it writes to.
    """

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        tell: Callable[[str], None],
        *,
        recycled: int,
        lend: Callable[[], AbstractContextManager[int | None]] = nullcontext,
    ) -> None:
        self._command, self._count, self._tell, self._recycled = command, count, tell, recycled
        self._lend = lend
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._signals = 0
        self._failed_starts = 0
        self._code = 0

    async def run(self) -> int:
        """Supervise to the end; the exit code for the whole: 0, or that of a start that failed for good."""
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self._signalled)
        pipe = os.pipe()
        try:
            async with asyncio.TaskGroup() as keepers:
                for number in range(1, self._count + 1):
                    keepers.create_task(self._keep(number, pipe[0]), name=f"windlass-child-{number}")
        finally:
            for end in pipe:
                os.close(end)
            for one in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(one)
        return self._code

    def _signalled(self) -> None:
        self._signals += 1
        self._stopping.set()
        self._send(signal.SIGTERM if self._signals <= 2 else signal.SIGKILL)

    def _send(self, sent: signal.Signals) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.send_signal(sent)

    async def _keep(self, number: int, pipe: int) -> None:
        wait = _FIRST_WAIT
        while not self._stopping.is_set():
            began = time.monotonic()
            pid, code = await self._live(number, pipe)
            young = time.monotonic() - began < _YOUNG
            if self._stopping.is_set() or code == 0 or self._gives_up(number, code, young=young):
                return
            if code == self._recycled:
                self._tell(f"worker {number} (process {pid}) was recycled; starting a fresh one")
                continue
            wait = min(wait * 2, _LONGEST_WAIT) if young else _FIRST_WAIT
            # Jitter, so that children that fell together do not come back together.
            pause = wait * random.uniform(0.5, 1.0)
            self._tell(f"worker {number} (process {pid}) {_epitaph(code)}; starting another in {pause:.1f} s")
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def _live(self, number: int, pipe: int) -> tuple[int, int]:
        with self._lend() as file:
            words = () if file is None else ("--tally", str(file))
            return await self._live_with(number, pipe, words, (pipe,) if file is None else (pipe, file))

    async def _live_with(self, number: int, pipe: int, words: Sequence[str], passed: Sequence[int]) -> tuple[int, int]:
        child = await asyncio.create_subprocess_exec(
            *self._command,
            "--child",
            str(pipe),
            *words,
            pass_fds=passed,
            # Ctrl-C reaches a whole group: the children must hear of it from us alone, or they would count it twice.
            start_new_session=True,
        )
        self._children[number] = child
        if self._stopping.is_set():  # a signal came while it was being started
            self._send(signal.SIGTERM)
        try:
            return child.pid, await child.wait()
        finally:
            del self._children[number]

    def _gives_up(self, number: int, code: int, *, young: bool) -> bool:
        """Whether starting again is in vain; then all the others stop too."""
        if code in (_USAGE, 1, 3) and young:
            self._failed_starts += 1
        elif code != self._recycled:
            self._failed_starts = 0
        if not (code == _USAGE and young) and self._failed_starts < _TRIES:
            return False
        self._code = code
        self._tell(f"worker {number} cannot start (exit code {code}); giving up")
        self._stopping.set()
        self._send(signal.SIGTERM)
        return True


def _epitaph(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
