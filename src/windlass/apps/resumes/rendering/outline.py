"""What a rendered resume shows, in order: the same for all formats."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from windlass.apps.resumes.rendering.wording import Wording, wording_of
from windlass.apps.resumes.resume import Resume

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One entry: what it is, where, when, what is told of it."""

    title: str = ""
    beside: str = ""
    """company, school, issuer"""
    place: str = ""
    when: str = ""
    text: str = ""
    points: tuple[str, ...] = ()
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One section: entries, or lines of a label and its words."""

    title: str
    text: str = ""
    items: tuple[Item, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    name: str
    label: str
    contact: tuple[tuple[str, str], ...]
    """text and the address behind it, which may be empty"""
    groups: tuple[Group, ...]
    language: str


def outline(resume: Resume) -> Outline:
    """A resume as it is shown; sections without content are not there."""
    words = wording_of(resume)
    said = words.said
    basics = resume.basics
    groups = [
        Group(title=said["summary"], text=basics.summary or ""),
        Group(title=said["work"], items=_work(resume, words)),
        Group(title=said["projects"], items=_projects(resume, words)),
        Group(title=said["education"], items=_education(resume, words)),
        Group(title=said["skills"], lines=_skills(resume)),
        Group(title=said["certificates"], items=_certificates(resume, words)),
        Group(title=said["languages"], lines=_languages(resume)),
        Group(title=said["volunteer"], items=_volunteer(resume, words)),
        Group(title=said["awards"], items=_awards(resume, words)),
        Group(title=said["publications"], items=_publications(resume)),
        Group(title=said["interests"], lines=_joined([one.name or "" for one in resume.interests])),
    ]
    kept = tuple(group for group in groups if group.text or group.items or group.lines)
    shown = Outline(
        name=basics.name or "", label=basics.label or "", contact=_contact(resume), groups=kept, language=words.language
    )
    cleaned: Outline = _cleaned(shown)
    return cleaned


def _cleaned(shown: Any) -> Any:
    """Without what cannot be written or seen: controls, marks that turn the direction, halves of letters."""
    if isinstance(shown, str):
        return _UNSEEN.sub("", shown)
    if isinstance(shown, tuple):
        several = cast("tuple[Any, ...]", shown)  # type: ignore[redundant-cast]  # pyright knows less
        return tuple(_cleaned(one) for one in several)
    return replace(shown, **{each.name: _cleaned(getattr(shown, each.name)) for each in fields(shown)})


def _contact(resume: Resume) -> tuple[tuple[str, str], ...]:
    basics = resume.basics
    found: list[tuple[str, str]] = []
    if basics.email:
        found.append((basics.email, f"mailto:{basics.email}"))
    if basics.phone:
        found.append((basics.phone, ""))
    place = basics.location
    if place is not None:
        city = " ".join(one for one in (place.postal_code, place.city) if one)
        said = ", ".join(one for one in (place.address, city, place.region, place.country_code) if one)
        found += [(said, "")] if said else []
    for url in [basics.url, *(profile.url for profile in basics.profiles)]:
        if url and url.startswith(("https://", "http://")):
            found.append((url.partition("://")[2].removeprefix("www.").rstrip("/"), url))
    return tuple(found)


def _work(resume: Resume, words: Wording) -> tuple[Item, ...]:
    return tuple(
        Item(
            title=one.position or one.name or "",
            beside=(one.name or "") if one.position else "",
            place=one.location or "",
            when=words.span(one.start_date, one.end_date, lasting=True),
            text=one.summary or one.description or "",
            points=tuple(one.highlights),
        )
        for one in resume.work
    )


def _education(resume: Resume, words: Wording) -> tuple[Item, ...]:
    items: list[Item] = []
    for one in resume.education:
        degree = ", ".join(text for text in (one.study_type, one.area) if text)
        details = " · ".join(
            text
            for text in (f"{words.said['grade']}: {one.score}" if one.score else "", ", ".join(one.courses[:8]))
            if text
        )
        items.append(
            Item(
                title=degree or one.institution or "",
                beside=(one.institution or "") if degree else "",
                when=words.span(one.start_date, one.end_date),
                text=details,
            )
        )
    return tuple(items)


def _projects(resume: Resume, words: Wording) -> tuple[Item, ...]:
    return tuple(
        Item(
            title=one.name or "",
            beside=", ".join(one.keywords[:8]),
            when=words.span(one.start_date, one.end_date),
            text=one.description or "",
            points=tuple(one.highlights),
            link=one.url or "",
        )
        for one in resume.projects
    )


def _volunteer(resume: Resume, words: Wording) -> tuple[Item, ...]:
    return tuple(
        Item(
            title=one.position or one.organization or "",
            beside=(one.organization or "") if one.position else "",
            when=words.span(one.start_date, one.end_date),
            text=one.summary or "",
            points=tuple(one.highlights),
        )
        for one in resume.volunteer
    )


def _certificates(resume: Resume, words: Wording) -> tuple[Item, ...]:
    return tuple(
        Item(title=one.name or "", beside=one.issuer or "", when=words.date(one.date) if one.date else "")
        for one in resume.certificates
    )


def _awards(resume: Resume, words: Wording) -> tuple[Item, ...]:
    return tuple(
        Item(
            title=one.title or "",
            beside=one.awarder or "",
            when=words.date(one.date) if one.date else "",
            text=one.summary or "",
        )
        for one in resume.awards
    )


def _publications(resume: Resume) -> tuple[Item, ...]:
    return tuple(
        Item(title=one.name or "", beside=one.publisher or "", text=one.summary or "", link=one.url or "")
        for one in resume.publications
    )


def _skills(resume: Resume) -> tuple[tuple[str, str], ...]:
    """Groups one by line; single ones on one line."""
    groups = [(one.name or "", ", ".join(one.keywords)) for one in resume.skills if one.keywords]
    single = [f"{one.name} ({one.level})" if one.level else one.name or "" for one in resume.skills if not one.keywords]
    return (*groups, *_joined(single))


def _languages(resume: Resume) -> tuple[tuple[str, str], ...]:
    return _joined(
        [f"{one.language} ({one.fluency})" if one.fluency else one.language or "" for one in resume.languages]
    )


def _joined(words: list[str]) -> tuple[tuple[str, str], ...]:
    said = ", ".join(word for word in words if word)
    return (("", said),) if said else ()
