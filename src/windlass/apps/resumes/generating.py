"""Generating: from a stored resume to one that suits a job description, with its score, as a file."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.apps.resumes.extraction.extracted import Facts
from windlass.apps.resumes.rendering.render import EXTENSIONS, MEDIA_TYPES, render
from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.scoring.score import score
from windlass.apps.resumes.tailoring.tailor import tailor

if TYPE_CHECKING:
    from windlass.apps.resumes.records.record import Record
    from windlass.apps.resumes.rendering.render import Format
    from windlass.apps.resumes.scoring.score import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A tailored resume."""

    resume: Resume
    score: Score
    """of the tailored resume"""
    before: Score
    """of the document as it was sent"""
    content: bytes
    media_type: str
    file_name: str


async def generate(record: Record, job_description: str, company: str | None, format: Format) -> Generated:
    """Tailor, score and render in a thread; the record is complete."""
    return await asyncio.to_thread(_generate, record, job_description, company, format)


def _generate(record: Record, job_description: str, company: str | None, format: Format) -> Generated:
    stored = Resume.of(record.structured_content or {})
    told = record.business_metadata.get("facts")
    tailored = tailor(stored, job_description, company)
    return Generated(
        resume=tailored,
        score=score(tailored, None, job_description),
        before=score(stored, None if told is None else Facts.of(told), job_description),
        content=render(tailored, format),
        media_type=MEDIA_TYPES[format],
        file_name=f"{_label(tailored.basics.name, company)}.{EXTENSIONS[format]}",
    )


def _label(*parts: str | None) -> str:
    """A file's name of plain letters: it stands in a header."""
    plain = "-".join(unicodedata.normalize("NFKD", part) for part in parts if part)
    words = re.findall(r"[A-Za-z0-9]+", plain.encode("ascii", "ignore").decode())
    return "-".join(["resume", *words])[:80]
