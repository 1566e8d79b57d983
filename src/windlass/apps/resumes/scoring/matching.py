"""Which of the words that a description asks for a resume has, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator

from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.scoring.parts import Keyword, ScorePart
from windlass.apps.resumes.scoring.wanted import wanted_in
from windlass.apps.resumes.scoring.words import Said, language_of, same_as, tokens

LISTED = 0.75
"""what a word is worth that stands in a list alone, and in nothing that was done"""
_COPIED = 7
"""words in a row that are the description's own"""
_TO_READER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|prompts?|rules|above|previous)|"
    r"\b(?:score|rate|rank|grade|evaluate|mark)\b.{0,40}\b(?:resume|cv|candidate|applicant|me|high|highest|100|perfect|matched|keywords?)\b|"
    r"^\W*(?:system|assistant|user|dear (?:ats|reader|ai|model))\b\s*[:,]|"
    r"\bhire me\b|\b(?:perfect|ideal) (?:match|score)\b",
    re.IGNORECASE,
)
"""what is said to the one who scores"""
_IN_LISTS = 60
"""entries of lists that are read: nobody has more skills"""


def match(resume: Resume, description: str) -> tuple[list[Keyword], set[str], list[str]]:
    """The keywords with how the resume says each; those that are shown by what was done; the texts that count."""
    done, listed = list(_done(resume)), list(_listed(resume))[:_IN_LISTS]
    own = _without_copies([own_words(text) for text in (*done, *listed)], description)
    languages = (language_of(" ".join(own)), language_of(description))
    shown_in = Said.of(own[: len(done)], languages)
    listed_in = Said.of(own[len(done) :], languages)
    keywords: list[Keyword] = []
    shown: set[str] = set()
    for wanted in wanted_in(description):
        names = same_as(wanted.word)
        in_done = next((name for name in names if shown_in.has(name)), None)
        in_lists = next((name for name in names if listed_in.has(name)), None)
        said = in_done or in_lists
        if in_done is not None:
            shown.add(wanted.word)
        keywords.append(Keyword(word=wanted.word, needed=wanted.needed, matched=said is not None, as_=said))
    return keywords, shown, own


def own_words(text: str) -> str:
    """A text without what it asks of its scorer."""
    if _TO_READER.search(text) is None:
        return text
    return " ".join(one for one in re.split(r"(?<=[.!?;])\s+", text) if _TO_READER.search(one) is None)


def _done(resume: Resume) -> Iterator[str]:
    """Each text that tells of something."""
    basics = resume.basics
    for text in (basics.label, basics.summary):
        yield text or ""
    for work in resume.work:
        yield from (work.position or "", work.summary or "", work.description or "", *work.highlights)
    for project in resume.projects:
        yield from (project.name or "", project.description or "", *project.highlights, *project.keywords)
    for study in resume.education:
        yield from (study.study_type or "", study.area or "", *study.courses)
    for unpaid in resume.volunteer:
        yield from (unpaid.position or "", unpaid.summary or "", *unpaid.highlights)
    for publication in resume.publications:
        yield publication.name or ""


def _listed(resume: Resume) -> Iterator[str]:
    """Each entry of a list."""
    for skill in resume.skills:
        if skill.name and not skill.keywords:
            yield skill.name
        yield from skill.keywords
    for language in resume.languages:
        yield language.language or ""
    for certificate in resume.certificates:
        yield certificate.name or ""
    for skill in resume.skills:
        if skill.name and skill.keywords:
            yield skill.name


def _without_copies(texts: list[str], description: str) -> list[str]:
    """The texts without what is copied word by word from the description."""
    asked = tokens(description)
    runs = {tuple(asked[at : at + _COPIED]) for at in range(len(asked) - _COPIED + 1)}
    if not runs:
        return texts
    kept: list[str] = []
    for text in texts:
        said = tokens(text)
        copied = [False] * len(said)
        for at in range(len(said) - _COPIED + 1):
            if tuple(said[at : at + _COPIED]) in runs:
                copied[at : at + _COPIED] = [True] * _COPIED
        kept.append(" ".join(word for word, yes in zip(said, copied, strict=True) if not yes) if any(copied) else text)
    return kept


def keyword_part(name: str, weight: float, keywords: list[Keyword], shown: set[str]) -> ScorePart:
    """How many of the keywords are there."""
    if not keywords:
        return ScorePart(name=name, weight=0.0, points=0.0, reason="the description asks for none")
    worth = sum((1.0 if one.word in shown else LISTED) for one in keywords if one.matched)
    matched = sum(one.matched for one in keywords)
    only = sum(one.matched and one.word not in shown for one in keywords)
    reason = f"{matched} of {len(keywords)} are in the resume"
    if only:
        reason += f", {only} of them in a list only: telling where they were used is worth more"
    missing = [one.word for one in keywords if not one.matched][:5]
    if missing:
        reason += f"; missing: {', '.join(missing)}"
    return ScorePart(name=name, weight=weight, points=round(weight * worth / len(keywords), 2), reason=reason)


def advice(parts: list[ScorePart], keywords: list[Keyword]) -> tuple[str, ...]:
    """What to do first: where the most points are lost."""
    lost = sorted(
        (part for part in parts if part.weight - part.points >= 1.0), key=lambda part: part.points - part.weight
    )
    told = [
        f"{_first_large(part.name)} ({part.points:.0f} of {part.weight:.0f} points): {part.reason}."
        for part in lost[:4]
    ]
    missing = [one.word for one in keywords if one.needed and not one.matched]
    if missing:
        told.append(f"Say so, if it is true, that you know: {', '.join(missing[:8])}.")
    return tuple(told)


def _first_large(text: str) -> str:
    return re.sub(r"^.", lambda found: found.group().upper(), text)
