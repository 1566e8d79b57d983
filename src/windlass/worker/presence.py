"""Presence: how the worker describes itself to the people who watch it."""

from __future__ import annotations

import os
import resource
import socket
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.stores.contract import WorkerInfo

if TYPE_CHECKING:
    from windlass.worker.config import WorkerConfig
    from windlass.worker.slots import Slots

_PAGE = resource.getpagesize()


def describe(
    config: WorkerConfig, slots: Slots, types: frozenset[str], *, stuck: int, lag: float, stopping: bool
) -> WorkerInfo:
    """The worker as it is now."""
    return WorkerInfo(
        id=config.worker_id,
        host=socket.gethostname(),
        pid=os.getpid(),
        version=_version(),
        queues=tuple(sorted(config.queues)) if config.queues is not None else (),
        types=tuple(sorted(types)),
        slots=config.concurrency,
        running=slots.taken,
        stuck=stuck,
        memory_mb=round(memory_mb(), 1),
        loop_lag_ms=round(lag * 1000, 1),
        stopping=stopping,
    )


def memory_mb() -> float:
    """The memory this process occupies now."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        # No /proc here: the peak is the nearest figure there is, in KiB on Linux and in bytes on macOS.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
    return pages * _PAGE / 2**20


def _version() -> str:
    try:
        return version("windlass")
    except PackageNotFoundError:
        return "unknown"
