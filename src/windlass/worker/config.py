"""What one worker is told to do, checked before it starts."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from windlass.core.errors import SettingsError
from windlass.core.keys import check_name, shown
from windlass.core.signals import as_duration
from windlass.settings import Settings
from windlass.stores.contract import Retention

if TYPE_CHECKING:
    from windlass.core.ageing import Ageing

_MOST_SLOTS = 10_000
_MOST_WEIGHT = 1_000
_EXPECTED = f"expected a whole number from 1 to {_MOST_SLOTS}"
_DURATIONS = ("lease", "heartbeat", "poll", "rescue", "grace")


def new_worker_id() -> str:
    """Host, process and a part that is new at every start: a restarted process is another worker."""
    return f"{socket.gethostname()[:100]}/{os.getpid()}/{secrets.token_hex(3)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """One worker's settings."""

    worker_id: str = field(default_factory=new_worker_id)
    queues: Mapping[str, int] | None = None
    """slots by queue; None consumes every queue"""
    weights: Mapping[str, int] = field(default_factory=dict[str, int])
    """how many jobs a queue gives in its turn, where queues of equal priority take turns; 1 where it is not said"""
    concurrency: int = 20
    exclude: tuple[str, ...] = ()
    lease: timedelta = timedelta(seconds=30)
    heartbeat: timedelta = timedelta(seconds=10)
    poll: timedelta = timedelta(seconds=5)
    rescue: timedelta = timedelta(seconds=5)
    grace: timedelta = timedelta(seconds=30)
    retention: Retention = field(default_factory=Retention)
    ageing: Ageing | None = None
    """how long jobs wait before they are raised; None never raises any"""
    own: bool = False
    """run windlass's own jobs alone: nothing is declared, published or scheduled"""
    drain: bool = False
    """stop when nothing is due"""
    max_jobs: int | None = None
    """stop after so many jobs, for a supervisor to start a fresh process"""
    max_memory_mb: int | None = None
    """the same once the process is larger than this"""
    max_stuck: int | None = None
    """the same once so many handlers are stuck; None is all slots, or all of a queue's, for half a minute"""

    @staticmethod
    def of(settings: Settings, *, queues: Mapping[str, int] | Sequence[str] | None, **given: Any) -> WorkerConfig:
        """Lay what was given in code over the settings from outside. Durations may be numbers of seconds."""
        told = {name: value for name, value in given.items() if value is not None}
        told["exclude"] = _names(told.get("exclude", ()), "exclude")
        if not isinstance(told.get("weights", {}), Mapping):
            raise SettingsError(f"weights is {shown(told['weights'])}: expected queues with a number each")
        for name in ("concurrency", "lease", "poll", "rescue", "grace"):
            told.setdefault(name, getattr(settings, name))
        for name in _DURATIONS:
            if name in told:
                told[name] = as_duration(told[name], f"a worker's {name}")
        told.setdefault("heartbeat", _heartbeat(settings, told["lease"]))
        if isinstance(queues, Mapping):
            told["queues"] = _slots(queues)
            told["concurrency"] = given.get("concurrency") or max(1, sum(queues.values()))
        elif queues is not None:
            told["queues"] = dict.fromkeys(_names(queues, "queues"), told["concurrency"])
        unknown = told.keys() - WorkerConfig.__dataclass_fields__.keys()
        if unknown:
            raise SettingsError(
                f"{', '.join(sorted(unknown))} is no setting of a worker: known are"
                f" {', '.join(WorkerConfig.__dataclass_fields__)}"
            )
        return WorkerConfig(**told)

    @property
    def fence(self) -> timedelta:
        """How long before the end of a lease its job is given up, so that its handler has stopped when others may."""
        return self.lease / 10

    def __post_init__(self) -> None:
        """Refuse settings under which leases could not hold."""
        if not _whole(self.concurrency, _MOST_SLOTS):
            raise SettingsError(f"concurrency is {shown(self.concurrency)}: {_EXPECTED}")
        _slots(self.queues or {})
        if self.queues is not None and not self.queues:
            raise SettingsError("queues is empty: name at least one, or leave it out to consume all")
        self._check_weights()
        for name in ("max_jobs", "max_memory_mb", "max_stuck"):
            most: object = getattr(self, name)
            if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
                raise SettingsError(f"{name} is {shown(most)}: expected a whole number from 1 on")
        for name in ("lease", "heartbeat", "poll", "rescue"):
            if getattr(self, name) <= timedelta(0):
                raise SettingsError(f"{name} is {getattr(self, name)}: expected more than 0")
        if self.heartbeat * 2 > self.lease:
            raise SettingsError(
                f"heartbeat is {self.heartbeat} and lease {self.lease}: the lease must last two heartbeats at least"
            )

    def _check_weights(self) -> None:
        for name, weight in self.weights.items():
            check_name(name, "the queue")
            if not _whole(weight, _MOST_WEIGHT):
                raise SettingsError(f"queue {name!r} has the weight {shown(weight)}: expected 1 to {_MOST_WEIGHT}")
            if self.queues is not None and name not in self.queues:
                raise SettingsError(
                    f"queue {name!r} has a weight, but this worker consumes only {', '.join(sorted(self.queues))}"
                )


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _slots(queues: Mapping[str, int]) -> dict[str, int]:
    for name, slots in queues.items():
        check_name(name, "the queue")
        if not _whole(slots, _MOST_SLOTS):
            raise SettingsError(f"queue {name!r} has {shown(slots)} slots: {_EXPECTED}")
    return dict(queues)


def _names(given: object, of: str) -> tuple[str, ...]:
    refusal = SettingsError(f"{of} is {shown(given)}: expected a list of names")
    # A text is a sequence of texts, too: its letters would be taken for names.
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise refusal
    names = tuple(cast("Iterable[object]", given))
    if not all(isinstance(name, str) for name in names):
        raise refusal
    return cast("tuple[str, ...]", names)


def _heartbeat(settings: Settings, lease: timedelta) -> timedelta:
    """That of the settings if it was set there; else it follows the lease, which then outlives two lost ones."""
    return settings.heartbeat if settings.heartbeat != Settings().heartbeat else lease / 3
