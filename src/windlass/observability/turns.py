"""Turns: processes that write lines to the same pipe write one after another.

A pipe takes 4 KiB in one piece. What is longer, as a line with a traceback is, would otherwise have lines of other
processes in its middle.
"""

from __future__ import annotations

import io
import logging
import os
import stat
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Generator

PATIENCE = 1.0
"""seconds that a line waits for the line of another process: one that holds the pipe for longer has been stopped"""
_AGAIN = 0.0005


class WholeLines(logging.StreamHandler[TextIO]):
    """Writes to a stream as any handler does; to one that is shared, in turns."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._shared = _shared(stream)
        self._patient = True
        """whether it waits: not again for one that has been waited for in vain"""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        if self._shared is None:
            super().emit(record)
            return
        with self._turn(self._shared):
            super().emit(record)

    @contextmanager
    def _turn(self, file: int) -> Generator[None, None, None]:
        until = time.monotonic() + (PATIENCE if self._patient else 0.0)
        self._patient = held = _taken(file)
        while not held and time.monotonic() < until:
            time.sleep(_AGAIN)
            self._patient = held = _taken(file)
        try:
            yield
        finally:
            if held:
                fcntl.lockf(file, fcntl.LOCK_UN)


def _shared(stream: TextIO) -> int | None:
    """The file of a stream to which others may write, too, and which does not keep their lines apart by itself."""
    if sys.platform == "win32":
        return None
    try:
        file = stream.fileno()
        mode = os.fstat(file).st_mode
    except (AttributeError, OSError, io.UnsupportedOperation):  # it is in memory, or closed
        return None
    return file if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def _taken(file: int) -> bool:
    try:
        # Of a process, whichever thread asks: the threads of one wait for each other before they come here.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
