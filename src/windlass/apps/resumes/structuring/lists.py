"""Sections that are lists: skills, languages, certificates, interests, references, and the like."""

from __future__ import annotations

import re

from windlass.apps.resumes.resume import Award, Certificate, Interest, Language, Publication, Reference, Skill
from windlass.apps.resumes.structuring.contact import joined
from windlass.apps.resumes.structuring.rows import Row
from windlass.apps.resumes.vocabulary.dates import find, is_date
from windlass.apps.resumes.vocabulary.headings import plain, section_of
from windlass.apps.resumes.vocabulary.spoken import FLUENCY, LANGUAGES

_CATEGORY = re.compile(r"^([^\W\d_][^:\t]{1,48}?)\s*:\s*(.*)$")
_PARTS = re.compile(r"\s*(?:[,;|•·▪◦●/]|\t|\s[–—-]\s|\s{2,})\s*(?![^()]*\))")
_SOFT = re.compile(r"\s*(?:[,;|•·▪◦●]|\t|\s{2,})\s*(?![^()]*\))")
_DOTS = re.compile(r"[●○◉◯★☆■□▪▫⚫⚪•·*]{2,}|\b\d{1,3}\s?%|\b\d{1,2}\s?/\s?\d{1,2}\b")
_LEVEL = re.compile(
    r"\s*[\-–—:(,\t]*\s*\(?\b(expert|advanced|intermediate|beginner|basic|proficient|experienced|fluent|sehr gut|gut|grundkenntnisse|fortgeschritten|experte|avancé|intermédiaire|débutant|avanzado|intermedio|básico|gute kenntnisse|sehr gute kenntnisse|(?:\d+\+? (?:years?|jahre|ans|años)))\)?$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:proficient (?:in|with)|experienced (?:in|with)|familiar with|knowledge of|working knowledge of|skilled in|expert in|and|und|et|y)\s+",
    re.IGNORECASE,
)
_BY = re.compile(r"^(?:issued by|by|from|ausgestellt von|von|délivré par|emitido por|at)\s+", re.IGNORECASE)


def skills_of(rows: list[Row]) -> list[Skill]:
    """Skills with their words where they stand in groups, else one by one."""
    found: list[Skill] = []
    loose: list[str] = []
    group: tuple[str, list[str]] | None = None
    for row in _unbroken(rows):
        text = _DOTS.sub("\t", row.text).strip()
        category = _CATEGORY.match(text)
        cells = [cell for cell in text.split("\t") if cell.strip()]
        if category is not None and len(category[1].split()) <= 6:
            _close(group, found)
            group = None
            words = _words(category[2])
            if not words:
                group = category[1].strip(), []
            else:
                found.append(Skill(name=category[1].strip(), keywords=words))
            continue
        if len(cells) == 2 and "," in cells[1] and "," not in cells[0] and len(cells[0].split()) <= 5:
            _close(group, found)
            group = None
            found.append(Skill(name=cells[0].strip(), keywords=_words(cells[1])))
            continue
        if (
            row.bold
            and not row.bullet
            and "," not in text
            and len(text.split()) <= 5
            and any(not one.bold for one in rows)
        ):
            _close(group, found)
            group = None
            group = text, []
            continue
        words = _words(text)
        if group is not None:
            group[1].extend(words)
        else:
            loose += words
    _close(group, found)
    for word in loose:
        level = _LEVEL.search(word)
        name = word[: level.start()].strip(" (,") if level else word
        if name and len(name) <= 80:
            found.append(Skill(name=name, level=level[1] if level else None))
    return _once(found)


def _close(group: tuple[str, list[str]] | None, found: list[Skill]) -> None:
    if group is not None:
        found.append(Skill(name=group[0], keywords=group[1][:200]))


def _once(found: list[Skill]) -> list[Skill]:
    kept: dict[str, Skill] = {}
    for skill in found:
        kept.setdefault((skill.name or "").casefold(), skill)
    return list(kept.values())[:300]


def _unbroken(rows: list[Row]) -> list[Row]:
    """Rows of which one goes on in the next, put together: those that end in a comma, or go on in small letters."""
    kept: list[Row] = []
    for row in rows:
        last = kept[-1] if kept else None
        goes_on = (
            last is not None
            and not row.bullet
            and (
                last.text.endswith((",", "&", "-", "/", " and", " und", ":"))
                or (row.text[:1].islower() and not _CATEGORY.match(row.text) and "," in last.text)
                or (last.text.count("(") > last.text.count(")"))
                or (
                    len(last.text) > 55
                    and "," in last.text
                    and not _CATEGORY.match(row.text)
                    and row.gap < 1.7
                    and not row.bold
                    and "\t" not in row.text
                    and last.block == row.block
                )
            )
        )
        if goes_on and last is not None and not (last.text.endswith(":") and _CATEGORY.match(row.text)):
            kept[-1] = Row(
                text=joined([last.text, row.text]), x=last.x, y=row.y, size=last.size, bold=last.bold, block=last.block,
                page=row.page, bullet=last.bullet, gap=last.gap, span=last.span,
            )  # fmt: skip
        else:
            kept.append(row)
    return kept


def _words(text: str) -> list[str]:
    parts = _SOFT if text.count(",") >= 2 or not re.search(r"\s/\s|\s[–—-]\s", text) else _PARTS
    found = [_LEAD.sub("", part.strip(" .•·-–—,;:")).strip() for part in parts.split(text)]
    return [word for word in dict.fromkeys(found) if 1 <= len(word) <= 120 and any(one.isalnum() for one in word)][:200]


def languages_of(rows: list[Row]) -> list[Language]:
    """Languages with how well they are spoken."""
    found: dict[str, Language] = {}
    pending: str | None = None
    for row in rows:
        text = _DOTS.sub(lambda one: one.group() if "%" in one.group() or "/" in one.group() else "\t", row.text)
        pieces = [piece.strip() for piece in re.split(r"\s*[;|•·\t]\s*|,(?![^()]*\))\s*", text) if piece.strip(" .")]
        for piece in pieces:
            name, rest = _spoken(piece)
            if name is not None:
                pending = name
                if name.casefold() not in found:
                    found[name.casefold()] = Language(language=name, fluency=rest or None)
            elif pending is not None and FLUENCY.search(piece) and found[pending.casefold()].fluency is None:
                found[pending.casefold()] = Language(language=pending, fluency=piece.strip(" ()-–:."))
    return list(found.values())


def _spoken(piece: str) -> tuple[str | None, str]:
    for one in re.finditer(r"[^\W\d_]+(?:-[^\W\d_]+)?", piece):
        if plain(one.group()) in LANGUAGES:
            before = piece[: one.start()].strip(" ()-–—:,.")
            after = piece[one.end() :].strip(" -–—:,.").strip()
            rest = (
                after.strip("()") if after.startswith("(") and after.endswith(")") and after.count("(") == 1 else after
            )
            if not rest and before and FLUENCY.search(before):
                rest = re.sub(r"\s+(?:in|en|au|auf)$", "", before)
            if before and not FLUENCY.search(before):
                return None, ""
            return one.group(), rest.strip()
    return None, ""


def spoken_in(text: str) -> bool:
    """Whether a list is one of languages that people speak."""
    pieces = [piece for piece in re.split(r"[,;|•·\t]", text) if piece.strip()]
    return bool(pieces) and sum(_spoken(piece)[0] is not None for piece in pieces) * 2 > len(pieces)


def certificates_of(rows: list[Row]) -> list[Certificate]:
    found: list[Certificate] = []
    for row in _unbroken(rows):
        text = row.text
        span = find(text)
        if is_date(text) and found:
            last = found[-1]
            found[-1] = Certificate(
                name=last.name, issuer=last.issuer, date=last.date or (span.last or span.first if span else None)
            )
            continue
        if span is not None:
            text = f"{text[: span.begin]}\t{text[span.end :]}"
        pieces = [_trimmed(piece) for piece in re.split(r"\t|\s+[|•·–—-]\s+|\s*[|•·]\s*|,\s+(?=[A-ZÄÖÜ])", text)]
        pieces = [piece for piece in pieces if piece]
        if not pieces:
            continue
        by = _BY.match(pieces[0])
        if by is not None and found and found[-1].issuer is None and not row.bullet:
            found[-1] = Certificate(
                name=found[-1].name, issuer=pieces[0][by.end() :], date=found[-1].date or (span.last if span else None)
            )
            continue
        name, issuer = pieces[0], pieces[1] if len(pieces) > 1 else None
        aside = re.match(r"^(.+?)\s*\(([^()]+)\)$", name)
        if issuer is None and aside is not None and not aside[2].isupper():
            name, issuer = aside[1], aside[2]
        found.append(
            Certificate(
                name=name,
                issuer=_BY.sub("", issuer) if issuer else None,
                date=(span.last or span.first) if span else None,
            )
        )
    return found[:200]


def _trimmed(piece: str) -> str:
    """Without what stood around it; parentheses stay where both are there and something is in them."""
    said = re.sub(r"\(\s*\)", "", piece).strip(" ,[]–—-|•·:")
    return said if said.count("(") == said.count(")") and not said.startswith("(") else said.strip(" ()")


def awards_of(rows: list[Row]) -> list[Award]:
    return [Award(title=one.name, awarder=one.issuer, date=one.date) for one in certificates_of(rows)]


def publications_of(rows: list[Row]) -> list[Publication]:
    found: list[Publication] = []
    for text in _items(rows):
        span = find(text)
        found.append(Publication(name=text[:2_000], release_date=(span.last or span.first) if span else None))
    return found[:300]


def interests_of(rows: list[Row]) -> list[Interest]:
    words = [word for row in _unbroken(rows) for word in _words(row.text.rstrip("."))]
    return [Interest(name=word) for word in words if section_of(word) != "references"][:100]


def references_of(rows: list[Row]) -> list[Reference]:
    return [Reference(reference=text[:2_000]) for text in _items(rows)][:50]


def _items(rows: list[Row]) -> list[str]:
    """Points with the lines on which they go on."""
    found: list[str] = []
    above: Row | None = None
    for row in rows:
        text = row.text.replace("\t", " ")
        goes_on = (
            above is not None
            and not row.bullet
            and (row.x > above.x + 2 or text[:1].islower() or (above.bullet and row.gap < 1.7))
        )
        if found and goes_on:
            found[-1] = joined([found[-1], text])
        else:
            found.append(text)
            above = row
    return found
