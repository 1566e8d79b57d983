"""Reloading: a worker process started again whenever the code below a directory changes."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_LOOK_EVERY = 0.5
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


class Reloader:
    """Runs a command, watches `root`, and runs it again after each change, until SIGTERM or SIGINT.

    A command that ends by itself, for instance over a syntax error, is run again at the next change.
    """

    def __init__(self, command: Sequence[str], root: str, tell: Callable[[str], None]) -> None:
        self._command, self._root, self._tell = command, root, tell
        self._stopping = asyncio.Event()
        self._signals = 0
        self._child: asyncio.subprocess.Process | None = None

    async def run(self) -> int:
        """Watch to the end; the exit code is 0 once it was told to stop."""
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self._signalled)
        pipe = os.pipe()
        seen = snapshot(self._root)
        try:
            while not self._stopping.is_set():
                seen = await self._live(pipe[0], seen)
        finally:
            for end in pipe:
                os.close(end)
        return 0

    async def _live(self, pipe: int, seen: dict[str, int]) -> dict[str, int]:
        """One life of the child; returns what the files looked like when it was given up."""
        self._child = await asyncio.create_subprocess_exec(
            *self._command, "--child", str(pipe), pass_fds=(pipe,), start_new_session=True
        )
        ended = asyncio.ensure_future(self._child.wait())
        told = False
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    await self._stopping.wait()
            if ended.done() and not told:
                told = True
                self._tell(f"the worker ended with exit code {ended.result()}; waiting for a change")
            now = await asyncio.to_thread(snapshot, self._root)
            changed = first_change(seen, now)
            if changed is not None and not self._stopping.is_set():
                self._tell(f"{changed.removeprefix(self._root + os.sep)} changed; starting again")
                seen = now
                break
        self._send()
        await ended
        return seen

    def _signalled(self) -> None:
        self._signals += 1
        self._stopping.set()
        if self._signals > 1:
            self._send()

    def _send(self) -> None:
        if self._child is not None and self._child.returncode is None:
            with suppress(ProcessLookupError):
                self._child.send_signal(signal.SIGTERM)


def snapshot(root: str) -> dict[str, int]:
    """When each .py file below a directory last changed; virtual environments and hidden directories are left out."""
    return dict(_files(root))


def first_change(before: dict[str, int], now: dict[str, int]) -> str | None:
    """A file that is new, gone or other than before; None when nothing changed."""
    changed = {name for name, at in now.items() if before.get(name) != at} | (before.keys() - now.keys())
    return min(changed, default=None)


def _files(root: str) -> Iterator[tuple[str, int]]:
    with suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            with suppress(OSError):  # gone between the listing and the look
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith(".") and entry.name not in _SKIPPED:
                        yield from _files(entry.path)
                elif entry.name.endswith(".py"):
                    yield entry.path, entry.stat().st_mtime_ns
