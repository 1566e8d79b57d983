"""Operators' orders on single jobs, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windlass.core.errors import SettingsError
from windlass.core.kept import Signal
from windlass.core.status import Status


class Action(StrEnum):
    """What an operator may ask of a job."""

    CANCEL = "cancel"
    RETRY = "retry"
    DELETE = "delete"
    SIGNAL = "signal"


class Operated(StrEnum):
    """What became of an operator's order."""

    DONE = "done"
    REQUESTED = "requested"
    """the job is processing: its worker was asked to stop it"""
    REFUSED = "refused"
    """its status does not allow it"""
    DUPLICATE = "duplicate"
    """its unique key is held by another job now; of a signal: one of that name has come, or its time was up"""
    KEPT = "kept"
    """a signal that the job has not asked for yet"""
    FULL = "full"
    """the job keeps as much as it may: there is no room for a signal"""
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An operator's word on one job; actor and reason go into its history."""

    id: str
    action: Action
    actor: str
    reason: str | None = None
    signal: Signal | None = None
    """what is sent, with `Action.SIGNAL`"""
    user: str | None = None
    """only a job of this user's is meant: any other is missing"""
    only: frozenset[Status] | None = None
    """refused unless the job stands so: what was read before may have moved since"""

    def __post_init__(self) -> None:
        """A signal is sent by its action, and by no other."""
        if (self.signal is not None) != (self.action is Action.SIGNAL):
            raise SettingsError(f"an order to {self.action.value} was given the signal {self.signal}")

    def finds(self, user: str | None) -> bool:
        """Whether a job of this user's, or of nobody's, is meant."""
        return self.user is None or self.user == user

    def allows(self, status: Status) -> bool:
        """Whether a job that stands so is meant."""
        return self.only is None or status in self.only


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one order: the verdict, the status the job was found in, and the holder of its key if another."""

    verdict: Operated
    status: Status | None = None
    holder: str | None = None
