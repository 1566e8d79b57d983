"""Where a trial takes place: how its worker processes are told, and the only place here that reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from windlass.chaos.starting import Start, as_program

_URL, _NAMESPACE, _FOLDER, _CONTROL = "CHAOS_URL", "CHAOS_NAMESPACE", "CHAOS_FOLDER", "CHAOS_CONTROL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A namespace of a store for the jobs, and a folder for what is witnessed outside of it."""

    url: str = "sqlite://"
    namespace: str = "windlass"
    folder: Path = Path()
    control: str = ""
    """what the trial's own application should do wrong on purpose; the one that comes with windlass does nothing"""
    start: Start = as_program
    """how its worker processes are started"""

    def environment(self) -> dict[str, str]:
        """What a process needs to find it. Not on its command line: a URL may hold a password."""
        told = {_URL: self.url, _NAMESPACE: self.namespace, _FOLDER: str(self.folder), _CONTROL: self.control}
        return {**os.environ, **told}

    @staticmethod
    def told(environ: Mapping[str, str] | None = None) -> Place:
        """The place this process was told."""
        given = os.environ if environ is None else environ
        default = Place()
        return Place(
            url=given.get(_URL, default.url),
            namespace=given.get(_NAMESPACE, default.namespace),
            folder=Path(given.get(_FOLDER, default.folder)),
            control=given.get(_CONTROL, default.control),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How quickly the workers of a trial go about things, in seconds: short leases make short trials."""

    lease: float = 1.0
    heartbeat: float = 0.2
    poll: float = 0.2
    rescue: float = 0.2
    grace: float = 0.3
    slots: int = 8

    def arguments(self) -> list[str]:
        """The same as words for `windlass worker`."""
        spans = [f"--{name}={round(getattr(self, name) * 1000)}ms" for name in ("lease", "heartbeat", "poll", "grace")]
        return [*spans, f"--concurrency={self.slots}"]

    def environment(self) -> dict[str, str]:
        """What has no word there."""
        return {"WINDLASS_RESCUE_MS": str(round(self.rescue * 1000))}

    @property
    def recovery(self) -> float:
        """How long a job of a dead worker may take to begin again where another worker has room."""
        return self.lease + self.rescue + self.poll
