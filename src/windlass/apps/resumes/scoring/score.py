"""The score of a resume beside a job description: parts with published weights, each with its reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from windlass.apps.resumes.extraction.extracted import Facts
from windlass.apps.resumes.resume import Resume


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePart:
    """One thing that was looked at."""

    name: str
    weight: float
    """of 100, as published"""
    points: float
    """of its weight"""
    reason: str
    """what was found, and what would raise it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyword:
    """A word or phrase that the job description asks for."""

    word: str
    needed: bool
    """a must-have, not a nice-to-have"""
    matched: bool
    as_: str | None = None
    """how the resume says it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Advice for the owner of a resume; not made for ranking people."""

    total: float
    """0 to 100"""
    parts: tuple[ScorePart, ...]
    keywords: tuple[Keyword, ...] = ()
    advice: tuple[str, ...] = ()
    """what to do first"""

    @property
    def matched(self) -> list[str]:
        return [one.word for one in self.keywords if one.matched]

    @property
    def missing(self) -> list[str]:
        return [one.word for one in self.keywords if not one.matched]

    def as_json(self) -> dict[str, Any]:
        """For results and answers, in the names of the wire."""
        return {
            "total": self.total,
            "parts": [asdict(one) for one in self.parts],
            "keywords": [
                {"word": one.word, "needed": one.needed, "matched": one.matched, "as": one.as_} for one in self.keywords
            ],
            "matched": self.matched,
            "missing": self.missing,
            "advice": list(self.advice),
        }


def score(resume: Resume, facts: Facts | None, job_description: str) -> Score:  # noqa: ARG001
    """How well a resume suits a job description. Without facts the document counts as easy to read."""
    return Score(total=0.0, parts=())
