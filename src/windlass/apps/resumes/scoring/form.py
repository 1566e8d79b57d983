"""What a score sees of a resume's form: sections, dates, contact, results, length, and how well it can be read."""

from __future__ import annotations

import re

from windlass.apps.resumes.extraction.extracted import Facts
from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.scoring.matching import own_words
from windlass.apps.resumes.scoring.parts import WEIGHTS, ScorePart
from windlass.apps.resumes.scoring.words import tokens

_SHORT, _GOOD_FROM, _GOOD_TO, _LONG = 10, 110, 700, 1_400
"""different words"""
_NUMBER = re.compile(r"\d")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def form_parts(resume: Resume, facts: Facts | None, own: list[str]) -> list[ScorePart]:
    """`own` are the texts of the resume that count."""
    return [
        _sections(resume),
        _dates(resume),
        _contact(resume),
        _results(resume),
        _length(own),
        _parseability(facts),
    ]


def _part(name: str, share: float, reason: str) -> ScorePart:
    weight = WEIGHTS[name]
    return ScorePart(name=name, weight=weight, points=round(weight * max(0.0, min(1.0, share)), 2), reason=reason)


def _sections(resume: Resume) -> ScorePart:
    there = {
        "summary": (resume.basics.summary is not None, 0.15),
        "experience": (bool(resume.work), 0.4),
        "education": (bool(resume.education), 0.2),
        "skills": (bool(resume.skills), 0.25),
    }
    missing = [name for name, (has, _) in there.items() if not has]
    share = sum(worth for has, worth in there.values() if has)
    return _part(
        "sections", share, f"not found: {', '.join(missing)}" if missing else "all that are looked for were found"
    )


def _dates(resume: Resume) -> ScorePart:
    if not resume.work:
        return _part("dates", 0.0, "no positions were found that could have dates")
    dated = sum(one.start_date is not None for one in resume.work)
    exact = sum(one.start_date is not None and len(one.start_date) >= 7 for one in resume.work)
    starts = [one.start_date[:4] for one in resume.work if one.start_date]
    ordered = starts == sorted(starts, reverse=True)
    count = len(resume.work)
    share = 0.7 * dated / count + 0.15 * exact / count + 0.15 * ordered
    reason = f"{dated} of {count} positions have dates, {exact} of them with months"
    return _part("dates", share, reason + ("" if ordered else "; the latest should stand first"))


def _contact(resume: Resume) -> ScorePart:
    basics = resume.basics
    there = {
        "name": (basics.name, 0.3),
        "e-mail address": (basics.email, 0.35),
        "telephone number": (basics.phone, 0.2),
        "place": (basics.location, 0.15),
    }
    missing = [name for name, (value, _) in there.items() if value is None]
    share = sum(worth for value, worth in there.values() if value is not None)
    return _part(
        "contact",
        share,
        f"not found: {', '.join(missing)}" if missing else "name, address, telephone and place were found",
    )


def _results(resume: Resume) -> ScorePart:
    if not resume.work:
        return _part("results", 0.0, "no positions were found that could tell what was done")
    told = [[own_words(text) for text in (*work.highlights, work.summary or "")] for work in resume.work]
    telling = sum(any(one.strip() for one in texts) for texts in told)
    figures = sum(any(_NUMBER.search(_YEAR.sub("", one)) for one in texts) for texts in told)
    count = len(resume.work)
    return _part(
        "results",
        0.65 * telling / count + 0.35 * min(1.0, 2 * figures / count),
        f"{telling} of {count} positions tell what was done, {figures} of them with a figure",
    )


def _length(own: list[str]) -> ScorePart:
    """By different words: saying one more often makes nothing longer."""
    words = len({word for text in own for word in tokens(text)})
    if words < _GOOD_FROM:
        share = (words - _SHORT) / (_GOOD_FROM - _SHORT)
        return _part("length", share, f"{words} different words: from {_GOOD_FROM} on it says enough")
    if words > _GOOD_TO:
        share = 1.0 - (words - _GOOD_TO) / (_LONG - _GOOD_TO)
        return _part("length", share, f"{words} different words: up to {_GOOD_TO} are read to the end")
    return _part("length", 1.0, "neither too short nor too long")


def _parseability(facts: Facts | None) -> ScorePart:
    if facts is None:
        return _part("parseability", 1.0, "made from data, which every program reads")
    share = 1.0
    found: list[str] = []
    for lost, is_so, reason in (
        (0.6 if facts.recognised else 1.0, facts.scanned, "its pages are pictures, which many programs cannot read"),
        (
            0.35,
            facts.hidden > 0,
            f"{facts.hidden:,} characters cannot be seen and count for nothing; many programs reject such files",
        ),
        (
            0.4,
            facts.unreadable > 0.01 * max(facts.characters, 1),
            "letters of it have no meaning as text: embed fonts with their letters",
        ),
        (0.2, facts.columns > 1, "columns side by side, which some programs mix up"),
        (0.15, facts.tables > 0, "tables, which some programs mix up"),
        (0.15, facts.in_margins, "something stands in headers or footers only, which some programs skip"),
        (0.1, facts.pictures > 3, "pictures, in which nothing is read"),
        (0.15, facts.pages > 3, f"{facts.pages} pages: two are usual"),
    ):
        if is_so:
            share -= lost
            found.append(reason)
    return _part("parseability", share, "; ".join(found) if found else "one column of text that every program reads")
