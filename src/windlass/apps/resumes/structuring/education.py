"""Studies: which school, which degree, which field, when."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from windlass.apps.resumes.resume import Education
from windlass.apps.resumes.structuring.rows import Row
from windlass.apps.resumes.structuring.work import clean
from windlass.apps.resumes.vocabulary.dates import Span, find
from windlass.apps.resumes.vocabulary.degrees import DEGREE, PREFIXED, SCHOOL, SCORE, degree_in
from windlass.apps.resumes.vocabulary.places import is_place, split_place
from windlass.apps.resumes.vocabulary.titles import company_worth

_MARKS = re.compile(r"\t|\s+[|•·]\s+|\s+[–—－-]{1,2}\s+|\s*[|•·]\s*|\s*;\s+|(?<=[\w)])\s*[–—]\s*(?=[^\W\d])")
_FROM = re.compile(r"^(.+?)\s+(?:at|from|an der|an|am|bei|à|a|en)\s+((?:the |la |el |l['’])?[A-ZÄÖÜÉ].+)$")
_COURSES = re.compile(
    r"^(?:relevant |selected |key )?(?:coursework|courses|modules|subjects|schwerpunkte?|vertiefung(?:en)?|cours|asignaturas|kurse|fächer)\b[^:]{0,20}:\s*(.+)$",
    re.IGNORECASE,
)
_DETAIL = re.compile(
    r"^(?:thesis|dissertation|bachelor[- ]?thesis|master[- ]?thesis|bachelorarbeit|masterarbeit|diplomarbeit|thema|abschlussarbeit|thema der|mémoire|activities|honors|honours|awards?|member|mitglied|dean|minor|concentration|"
    r"specialization|specialisation|trabajo fin|tfg|tfm|tesis|projet de fin|gpa|note\b|abschluss:|abschlussnote|leistungskurse|relevant|scholarship|stipend|schwerpunkt|focus)",
    re.IGNORECASE,
)
_OF = re.compile(
    r"^(?:\s*(?:[:,–\-(|]+|(?:degree|in der|im fach|als|in|of|en|de la|de|des|der|im|em|di|für|zum|zur|fachrichtung|studiengang|spécialité|option|mention|con especialidad en)(?=\s)|d['’]))+\s*",
    re.IGNORECASE,
)
_INLINE = re.compile(r",?\s+(?:abschluss|degree|titulación|diplôme)\s*:\s*", re.IGNORECASE)
_NAMED = re.compile(r"^(?:abschluss|degree|abschlussgrad|titulación|diplôme)\s*:\s*(.+)$", re.IGNORECASE)
_STUDIED = re.compile(
    r"^(?:studium|studies|study|études|estudios)\s+(?!abroad)(?:der|des|in|of|de|d['’]|en)?\s*(.+)$", re.IGNORECASE
)
_LABEL = re.compile(
    r"^(?:degree|institution|university|school|abschluss|hochschule|universität|major|studiengang|schule|fachrichtung|area|field of study|title|titulación|centro|diplôme|établissement)\s*:\s*",
    re.IGNORECASE,
)


_SCHOOL_LEAVING = re.compile(r"(?:abitur|high school|bac|matura|hochschul|ged|fachabi)", re.IGNORECASE)


@dataclass(slots=True)
class _Found:
    """What is known so far of one entry."""

    school: str | None = None
    degree: str | None = None
    area: str | None = None
    span: Span | None = None
    score: str | None = None
    courses: list[str] = field(default_factory=list[str])
    others: list[str] = field(default_factory=list[str])
    closed: bool = False
    """details have been told: another school, degree or date begins the next"""

    @property
    def empty(self) -> bool:
        return not (self.school or self.degree or self.span or self.others)


@dataclass(slots=True)
class _Read:
    school: str | None = None
    degree: str | None = None
    area: str | None = None
    span: Span | None = None
    others: list[str] = field(default_factory=list[str])


def education_of(rows: list[Row]) -> list[Education]:
    """The entries of a section, in its order."""
    found: list[_Found] = []
    current = _Found()
    above: Row | None = None
    for row in rows:
        if _is_detail(row, above):
            _details(row, current)
            current.closed = current.closed or not current.empty
            above = row
            continue
        above = row
        read = _read(row)
        if _begins(read, current, row):
            found.append(current)
            current = _Found()
        _merge(current, read)
        _details(row, current)
    found.append(current)
    _lend_schools(found)
    return [_education(one) for one in found if one.school or one.degree or (one.others and one.span)]


def _is_detail(row: Row, above: Row | None) -> bool:
    text = row.text
    if _COURSES.match(text) or _DETAIL.match(text) or text[:1].islower():
        return True
    if row.bullet:
        return not (degree_in(text) and (SCHOOL.search(text) or row.span is not None)) and not (
            SCHOOL.search(text) and row.span is not None
        )
    if len(text) > 140 or (text.endswith(".") and text.count(" ") > 7):
        return True
    bare = SCORE.sub("", text).strip(" ,.()|/0123456789")
    if not bare:
        return True
    return above is not None and above.bullet and row.x > above.x + 2 and not row.bold and row.span is None


def _details(row: Row, current: _Found) -> None:
    score = SCORE.search(row.text)
    if score is not None and current.score is None and (not current.empty or score["score"]):
        current.score = (score["score"] or score["before"] or score["honours"]).strip()
    named = _NAMED.match(row.text)
    if named is not None and current.degree is None:
        degree = degree_in(named[1])
        current.degree = degree.group().strip(" ,(") if degree is not None else named[1].split("(")[0].strip()
    courses = _COURSES.match(row.text)
    if courses is not None:
        current.courses += [one.strip(" .") for one in re.split(r"[,;•|]", courses[1]) if one.strip(" .")]


def _read(row: Row) -> _Read:
    """Of one line: school, degree, area, dates, and what else stands there."""
    text = _INLINE.sub(", ", SCORE.sub(" ", row.text))
    span = find(text)
    if span is not None:
        text = f"{text[: span.begin]}\t{text[span.end :]}"
        again = find(text)
        if again is not None and not again.ranged and not text[again.end :].strip(" )\t"):
            text = f"{text[: again.begin]}\t{text[again.end :]}"
    read = _Read(span=span)
    for raw in _MARKS.split(text):
        piece = clean(_LABEL.sub("", raw.strip(" ,|–—-•·:;[]")))
        if not piece or (is_place(piece) and ("," in piece or not SCHOOL.search(piece))):
            continue
        split = split_place(piece)
        if split is not None and SCHOOL.search(split[0]):
            piece = split[0]  # the same, without its place
        for said in _parted(piece):
            _place(said, read)
    return read


def _parted(piece: str) -> list[str]:
    """A piece that holds degree and school, with a comma or a word between them, in two."""
    joint = _FROM.match(piece)
    if joint is not None and degree_in(joint[1]) and SCHOOL.search(joint[2]) and not SCHOOL.search(joint[1]):
        return [joint[1], joint[2]]
    halves = [half.strip(" .,") for half in PREFIXED.split(piece, maxsplit=1)]
    if len(halves) == 2 and not SCHOOL.search(halves[0]) and "," not in piece and degree_in(halves[0]):
        return halves
    degree = degree_in(piece)
    school = SCHOOL.search(piece)
    if degree is None and school is not None and "," in piece:
        said, _, where = piece.partition(",")
        if _STUDIED.match(said) and SCHOOL.search(where):
            return [said, where.strip()]
    if degree is None or school is None or "," not in piece or _inside(piece, degree):
        return halves if len(halves) == 2 and degree is not None and not SCHOOL.search(halves[0]) else [piece]
    parts = [part.strip() for part in piece.split(",") if part.strip()]
    groups: list[list[str]] = [[]]
    was: bool | None = None
    for part in parts:
        schooled = SCHOOL.search(part) is not None and DEGREE.match(part) is None
        if was is not None and schooled != was and (schooled or degree_in(part) or was is False):
            groups.append([])
        groups[-1].append(part)
        was = schooled if schooled or was is None or degree_in(part) else was
    return [", ".join(group) for group in groups if group]


def _inside(piece: str, degree: re.Match[str]) -> bool:
    """Whether what looks like a degree is a part of a school's name: "MBO College"."""
    return (
        degree.group() in {"WO", "HBO", "MBO", "CAP", "BUT", "FP", "Master", "Promotion"}
        and SCHOOL.match(piece[degree.end() :].strip()) is not None
    )


def _place(said: str, read: _Read) -> None:
    degree = degree_in(said)
    school = SCHOOL.search(said)
    if (
        school is not None
        and read.school is None
        and (
            degree is None
            or (degree.start() > 3 and not _OF.match(said[degree.end() :] or "x"))
            or _inside(said, degree)
        )
    ):
        split = split_place(said)
        read.school = split[0] if split is not None and SCHOOL.search(split[0]) else said
        return
    studied = _STUDIED.match(said)
    if degree is not None and read.degree is None:
        read.degree, area = _degree(said, degree)
        read.area = read.area or area
        return
    if studied is not None:
        read.area = read.area or studied[1]
        return
    if school is not None and read.school is None:
        read.school = said
        return
    split = split_place(said)
    read.others.append(split[0] if split is not None else said)


def _degree(said: str, found: re.Match[str]) -> tuple[str, str | None]:
    """The degree and the field: "Bachelor of Science in Physics", "Physics, B.Sc."."""
    before, after = said[: found.start()].strip(" ,(–-"), said[found.end() :]
    again = DEGREE.match(after.strip(" ,(/"))
    if again is not None and "(" in after[:3]:
        after = after.partition(")")[2]
    minor = re.split(r",?\s+(?:minor|nebenfach|with a minor)\b", after, flags=re.IGNORECASE)[0]
    area = _OF.sub("", minor).strip(" ,()–-|:.")
    name = found.group().strip(" ,(")
    if name.count("(") > name.count(")"):
        name = name.rstrip("(").strip()
    if (
        before
        and not area
        and re.fullmatch(
            r"(?:executive|double|dual|joint|european|professional|post|akademischer|staatlich(?:er)?|bi|the)",
            before,
            re.IGNORECASE,
        )
    ):
        return f"{before} {name}", None
    if not area and before:
        area = re.sub(r"\s+(?:in|of|\()$", "", before).strip(" ,(")
    if area.count("(") > area.count(")"):
        area = area.partition("(")[0].strip(" ,")
    return name, area or None


def _begins(read: _Read, current: _Found, row: Row) -> bool:
    """Whether a line cannot be of the entry at hand."""
    if current.empty:
        return False
    if read.school and current.school:
        return not (
            row.gap
            and row.gap < 1.3
            and not read.span
            and not read.degree
            and not current.degree
            and current.span is None
        )
    if read.degree and current.degree:
        return True
    if read.span is not None and current.span is not None and (read.school or read.degree or read.span.ranged):
        return True
    return current.closed and bool(read.school or read.degree or read.span is not None)


def _merge(current: _Found, read: _Read) -> None:
    current.school = current.school or read.school
    current.degree = current.degree or read.degree
    current.area = current.area or read.area
    current.span = current.span or read.span
    current.others += read.others


def _lend_schools(found: list[_Found]) -> None:
    """A second degree of one school; a school whose name says nothing of a school."""
    above: str | None = None
    for one in found:
        if one.school is None and one.others:
            one.others.sort(key=lambda text: -company_worth(text))
            if one.area is None and one.degree is not None and len(one.others) > 1:
                one.school, one.area = one.others[0], one.others[1]
            elif one.degree is not None or one.area is not None:
                one.school = one.others[0]
        elif one.school is None and above is not None and one.degree is not None:
            one.school = above
        elif one.area is None and one.others and one.school is not None and not _SCHOOL_LEAVING.match(one.degree or ""):
            one.area = one.others[0]
        above = one.school or above


def _education(one: _Found) -> Education:
    first = last = None
    if one.span is not None:
        first, last = (one.span.first, one.span.last) if one.span.ranged else (None, one.span.last)
    area = one.area
    if one.school is None and one.others:
        area = area or one.others[0]
    return Education(
        institution=one.school, area=area, study_type=one.degree, start_date=first, end_date=last, score=one.score,
        courses=one.courses[:100],
    )  # fmt: skip
