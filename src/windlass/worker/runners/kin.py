"""The parent's end of a job's own process: messages, and the end of the process with all that it started.

Threads write and read the pipe, never the worker's loop: a child that does not read, as while it imports, or that stops
in the middle of a message, holds up nobody else.
"""

from __future__ import annotations

import contextvars
import json
import os
import signal
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

LAST_WORDS = 5.0
"""seconds a process has to end once its pipe has"""


class Child:
    """One process. Everything here may be called from any thread."""

    def __init__(
        self, process: SpawnProcess, pipe: Connection, hear: Callable[[Child, dict[str, Any] | None], None]
    ) -> None:
        self._process, self._pipe, self._hear = process, pipe, hear
        self.context = contextvars.Context()
        """of the job that runs there: what the child logs is told in it"""
        self._letters: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="windlass-child-writer", daemon=True)
        self._writer.start()
        threading.Thread(target=self._read, name="windlass-child-reader", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.is_alive()

    def send(self, message: dict[str, Any]) -> None:
        """Have it written after what was sent before; whether it arrives only an answer tells."""
        self._letters.put(message)

    def kill(self) -> None:
        """End it now, and with it every process that it started and that did not leave its group."""
        self._kill_group()
        self._process.kill()

    def end(self) -> None:
        """Let it go: it has nothing to do."""
        self.send({"end": True})

    def wait(self) -> None:
        """Wait until it has ended, for a while; blocks."""
        self._process.join(LAST_WORDS)

    def epitaph(self) -> str:
        """How it ended; blocks until it has."""
        self._kill_group()  # what it started has lost its parent
        self.wait()
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"

    def _kill_group(self) -> None:
        # Its group bears its number: it leads one almost as soon as it has started.
        number = self._process.pid
        if number is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(number, signal.SIGKILL)

    def _write(self) -> None:
        while (letter := self._letters.get()) is not None:
            with suppress(OSError):  # it is gone; reading the pipe says so
                self._pipe.send_bytes(json.dumps(letter).encode())

    def _read(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._hear(self, json.loads(self._pipe.recv_bytes()))
        self._hear(self, None)
        self._letters.put(None)
        self._writer.join()
        self._pipe.close()
