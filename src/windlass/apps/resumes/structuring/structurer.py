"""The seam between a document's visible text and a resume as data: who can structure, and what comes of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.resume import Resume


@dataclass(frozen=True, slots=True, kw_only=True)
class Structured:
    """A resume, and how it came about."""

    resume: Resume
    by: str
    """`rules`, or the model's name"""
    dropped: int = 0
    """values that a model told and that do not occur in the visible text"""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """in US dollars, where the prices are set"""
    fell_back: str | None = None
    """why the rules did it instead of the model"""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        told = {name: value for name, value in asdict(self).items() if name != "resume"}
        return {**told, "notes": list(self.notes), "resume": self.resume.as_json()}

    @staticmethod
    def of(given: dict[str, Any]) -> Structured:
        """What `as_json` gave."""
        told: dict[str, Any] = {**given, "notes": tuple(given["notes"]), "resume": Resume.of(given["resume"])}
        return Structured(**told)


class Structurer(Protocol):
    """Makes a resume of a document. May raise windlass's Retry or Snooze: try again later."""

    async def structure(self, extracted: Extracted) -> Structured:
        """The resume; every value in it occurs in the visible text."""
        ...
