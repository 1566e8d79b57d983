"""What a child may use of the machine. Standard library alone: the child loads this before anything else."""

from __future__ import annotations

import ctypes
import resource
import signal
from dataclasses import asdict, dataclass

MIB = 1024 * 1024
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of one process, which the kernel keeps."""

    memory: int = 1_536 * MIB
    """bytes of address space"""
    cpu: int = 120
    """seconds of processor time, over its whole life"""
    written: int = 0
    """bytes of a file that it may write"""
    opened: int = 32
    """files open at once"""

    def as_dict(self) -> dict[str, int]:
        """For the command line of the child."""
        return asdict(self)

    def bind(self) -> None:
        """Put this process under them, before it has touched the file."""
        for what, most in (
            (resource.RLIMIT_AS, self.memory),
            (resource.RLIMIT_CPU, self.cpu),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, self.written),
            (resource.RLIMIT_NOFILE, self.opened),
        ):
            hard = resource.getrlimit(what)[1]
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(what, (bound, bound))


def follow_parent() -> None:
    """End when the parent does, however it does."""
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):  # not on this system: the pipe that breaks ends it
        return
