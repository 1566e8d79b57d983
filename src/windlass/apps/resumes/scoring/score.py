"""The score of a resume beside a job description: parts with published weights, each with its reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from windlass.apps.resumes.extraction.extracted import Facts
from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.scoring.form import form_parts
from windlass.apps.resumes.scoring.matching import advice, keyword_part, match
from windlass.apps.resumes.scoring.parts import WEIGHTS, Keyword, ScorePart

__all__ = ["WEIGHTS", "Keyword", "Score", "ScorePart", "score"]


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


def score(resume: Resume, facts: Facts | None, job_description: str) -> Score:
    """How well a resume suits a job description. Without facts the document counts as easy to read.

    Words count once, however often they are said, and what is copied from the description counts for nothing. What
    a text asks of its reader is a text like any other.
    """
    keywords, shown, own = match(resume, job_description)
    parts = [
        keyword_part(
            "must-have keywords", WEIGHTS["must-have keywords"], [one for one in keywords if one.needed], shown
        ),
        keyword_part(
            "nice-to-have keywords",
            WEIGHTS["nice-to-have keywords"],
            [one for one in keywords if not one.needed],
            shown,
        ),
        *form_parts(resume, facts, own),
    ]
    asked = sum(part.weight for part in parts)
    total = 100.0 * sum(part.points for part in parts) / asked if asked else 0.0
    return Score(total=round(total, 1), parts=tuple(parts), keywords=tuple(keywords), advice=advice(parts, keywords))
