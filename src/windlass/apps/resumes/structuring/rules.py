"""The structurer that needs nothing but the text: rules, the same answer every time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.structuring.contact import basics_of
from windlass.apps.resumes.structuring.education import education_of
from windlass.apps.resumes.structuring.lists import (
    awards_of,
    certificates_of,
    interests_of,
    languages_of,
    publications_of,
    references_of,
    skills_of,
    spoken_in,
)
from windlass.apps.resumes.structuring.projects import projects_of, volunteer_of
from windlass.apps.resumes.structuring.rows import Part, Row, rows_of, sections
from windlass.apps.resumes.structuring.structurer import Structured
from windlass.apps.resumes.structuring.work import work_of
from windlass.apps.resumes.vocabulary.headings import Section, section_of

_READERS: dict[Section, tuple[str, Callable[[list[Row]], list[Any]]]] = {
    "work": ("work", work_of),
    "education": ("education", education_of),
    "skills": ("skills", skills_of),
    "languages": ("languages", languages_of),
    "certificates": ("certificates", certificates_of),
    "projects": ("projects", projects_of),
    "awards": ("awards", awards_of),
    "publications": ("publications", publications_of),
    "volunteer": ("volunteer", volunteer_of),
    "interests": ("interests", interests_of),
    "references": ("references", references_of),
}


class Rules:
    """Structures by rules. The work is done in a thread: a document has bounds, and so has the time it takes."""

    async def structure(self, extracted: Extracted) -> Structured:
        return Structured(resume=await asyncio.to_thread(structure_by_rules, extracted), by="rules")


def structure_by_rules(extracted: Extracted) -> Resume:
    """The resume in a document's text."""
    parts = sections(rows_of(extracted))
    parts = _skills_apart(_languages_apart(parts))
    found: dict[str, list[Any]] = {}
    for section, part_rows in _together(parts):
        name, read = _READERS[section]
        found.setdefault(name, []).extend(read(part_rows))
    return Resume(basics=basics_of(parts, extracted.links), **found)


def _together(parts: list[Part]) -> list[tuple[Section, list[Row]]]:
    """The rows of each section; those with the same heading, on two pages, are one."""
    kept: list[tuple[Section, str, list[Row]]] = []
    for part in parts:
        if part.section is None or part.section not in _READERS:
            continue
        same = next((rows for section, title, rows in kept if section == part.section and title == part.title), None)
        if same is not None:
            same += part.rows
        else:
            kept.append((part.section, part.title, list(part.rows)))
    return [(section, rows) for section, _, rows in kept]


def _languages_apart(parts: list[Part]) -> list[Part]:
    """A line "Languages: English, German" among the skills is a section of its own."""
    found: list[Part] = []
    for part in parts:
        if part.section in {"languages", None}:
            found.append(part)
            continue
        spoken: list[Row] = []
        rest: list[Row] = []
        for row in part.rows:
            label, _, said = row.text.partition(":")
            if said and section_of(label) == "languages" and spoken_in(said):
                spoken.append(replace(row, text=said.strip()))
            else:
                rest.append(row)
        if (
            not any(one.section == "languages" for one in parts)
            and not spoken
            and "anguage" in part.title
            and part.section == "skills"
        ):
            spoken = [row for row in rest if spoken_in(row.text)]
            rest = [row for row in rest if row not in spoken]
        if rest:
            found.append(Part(part.section, part.title, rest))
        if spoken:
            found.append(Part("languages", part.title, spoken))
    return found


def _skills_apart(parts: list[Part]) -> list[Part]:
    """Where no heading tells of skills, lines "Skills: Figma, HTML" in other sections do, and these go on behind them."""
    if any(part.section == "skills" for part in parts):
        return parts
    found: list[Part] = []
    told: list[Row] = []
    for part in parts:
        rest: list[Row] = []
        for row in part.rows:
            label, _, said = row.text.partition(":")
            if said.strip() and section_of(label) == "skills":
                told.append(replace(row, text=said.strip()))
            else:
                rest.append(row)
        if rest:
            found.append(Part(part.section, part.title, rest))
    return [*found, Part("skills", "", told)] if told else parts
