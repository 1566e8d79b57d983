"""Operators' orders on single jobs, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windlass.core.status import Status


class Action(StrEnum):
    """What an operator may ask of a job."""

    CANCEL = "cancel"
    RETRY = "retry"
    DELETE = "delete"


class Operated(StrEnum):
    """What became of an operator's order."""

    DONE = "done"
    REQUESTED = "requested"
    """the job is processing: its worker was asked to stop it"""
    REFUSED = "refused"
    """its status does not allow it"""
    DUPLICATE = "duplicate"
    """its unique key is held by another job now"""
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An operator's word on one job; actor and reason go into its history."""

    id: str
    action: Action
    actor: str
    reason: str | None = None
    only: frozenset[Status] | None = None
    """refused unless the job stands so: what was read before may have moved since"""

    def allows(self, status: Status) -> bool:
        """Whether a job that stands so is meant."""
        return self.only is None or status in self.only


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one order: the verdict, the status the job was found in, and the holder of its key if another."""

    verdict: Operated
    status: Status | None = None
    holder: str | None = None
