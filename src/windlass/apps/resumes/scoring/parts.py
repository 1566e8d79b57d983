"""The parts of a score, and what each weighs: published, the same for everybody."""

from __future__ import annotations

from dataclasses import dataclass

WEIGHTS: dict[str, float] = {
    "must-have keywords": 42.0,
    "nice-to-have keywords": 12.0,
    "sections": 10.0,
    "dates": 9.0,
    "contact": 7.0,
    "results": 5.0,
    "length": 4.0,
    "parseability": 11.0,
}
"""of 100; where a description has no must-haves, or no nice-to-haves, the others weigh as much more"""


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
