"""How the worker processes of a trial are started: as programs of their own, or however its place says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol


class Process(Protocol):
    """What a trial must be able to do with a process that it started."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Its exit code, as `subprocess` tells it; None while it runs."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send a signal to this very process, unless it has ended."""
        ...


class Start(Protocol):
    """Starts `windlass WORDS` in this environment; it writes to `log`, inherits `kept` and reads nothing."""

    def __call__(self, words: Sequence[str], environment: Mapping[str, str], *, log: int, kept: int) -> Process: ...


def as_program(words: Sequence[str], environment: Mapping[str, str], *, log: int, kept: int) -> Process:
    """As anybody would start it."""
    return subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-m", "windlass", *words],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=[kept],
    )
