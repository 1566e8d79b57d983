"""How one attempt ended: a closed set. `transition.decide` turns each into what is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta  # read at run time where outcomes are sent between processes
from typing import TypeAlias

from windlass.core.job import Error  # the same


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned; the result is JSON text."""

    result_json: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised, or ran past its timeout. `again` is the policy's word on the exception."""

    error: Error
    again: bool = True
    after: timedelta | None = None
    """when the handler itself said when to try again"""


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler asked to run later; the attempt is given back."""

    for_: timedelta
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The handler ended on request, or asked for the end itself."""

    reason: str


@dataclass(frozen=True, slots=True)
class Released:
    """The worker stopped before the handler did; the attempt is given back."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unfit:
    """The handler here cannot read the payload, so it never began; the attempt is given back.

    The job is put aside, and not failed: a worker of another version may read it, or its handler may learn to.
    """

    error: Error


@dataclass(frozen=True, slots=True)
class Waiting:
    """The handler waits for a signal, so long at most; the attempt is given back."""

    signal: str
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class Gathering:
    """The handler waits for its children, the jobs that name it as their next; the attempt is given back."""

    name: str


@dataclass(frozen=True, slots=True)
class Crashed:
    """The job's own process died under it, which its worker saw; the attempt is given back, the crash counted."""

    detail: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease expired: the worker is presumed dead; the attempt is given back.

    A crash is counted only if the worker had confirmed the lease by extending it. Of another nothing shows that the job
    ever began: its worker may not even know that it was given it.
    """

    confirmed: bool


Outcome: TypeAlias = Succeeded | Failed | Snoozed | Cancelled | Released | Unfit | Waiting | Gathering | Crashed | Lost
