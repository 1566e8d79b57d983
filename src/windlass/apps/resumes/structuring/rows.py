"""The lines of a document as rules look at them, and the sections that they fall into."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from windlass.apps.resumes.extraction.extracted import Extracted, Line
from windlass.apps.resumes.vocabulary.dates import NOW, Span, find
from windlass.apps.resumes.vocabulary.headings import Section, section_of

_BULLET = re.compile(r"^(?:[•◦▪▫■□●○‣⁃∙·➢➤►▶▸✓✔✗❖◆◇★☆*§¢Ø➔→»]|[-–—](?=\s)|o(?=\s+[A-Z])|\d{1,2}[.)](?=\s+[^\W\d]))\s*")
_PAGE = re.compile(
    r"^\W*(?:(?:page|seite|pagina|página|p\.)\s*\d{1,2}\s*(?:(?:of|von|/|de|sur|di)\s*\d{1,2})?|\d{1,2}\s*(?:of|von|/|sur)\s*\d{1,2})\W*$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"^[-–\s]*\d{1,2}[-–\s]*$")
_INLINE = re.compile(r"^([^:]{3,40}?)\s*:\s*(\S.*)$")
_OPEN = re.compile(r"(?:19|20)\d\d\s*(?:[-–—]|\bto|\bbis|\bà|\ba)$", re.IGNORECASE)
_HANGING = re.compile(r"\s(?:de|del|de la|de los|of|of the|the|and|und|für|&|di|du|des|der)$")
"""what cannot end a name"""
_CLOSED = re.compile(rf"^(?:(?:[^\W\d]{{3,10}}\.?\s+|\d{{1,2}}[./]){{0,2}}(?:19|20)\d\d|(?:{NOW}))\)?$", re.IGNORECASE)
_LONGEST = 2_000
"""characters of a line that are looked at: no line of a resume is longer"""
_MOST = 5_000
"""lines"""
_UNLIKE_HEADING = re.compile(r"[@\d]|https?:|\.\w{2,3}/|[,;]$")


@dataclass(slots=True)
class Row:
    """A line with what rules ask of it."""

    text: str
    """without its bullet"""
    x: float
    y: float
    size: float
    bold: bool
    block: int
    page: int
    bullet: bool
    gap: float = 0.0
    """to the line above in its column, in lines of its own kind; 0 where it is not known"""
    span: Span | None = None
    columns: int = field(default=0)

    @property
    def cells(self) -> list[str]:
        return self.text.split("\t")


@dataclass(slots=True)
class Part:
    """A section: what it is, how it is called, its rows."""

    section: Section | None
    """None: before the first heading"""
    title: str
    rows: list[Row]


def rows_of(extracted: Extracted) -> list[Row]:
    """All lines in reading order, without what belongs to the pages."""
    rows: list[Row] = []
    for number, page in enumerate(extracted.pages):
        above: Line | None = None
        for line in page.lines:
            if _PAGE.match(line.text) or (line.block == -1 and number > 0):
                continue
            if _NUMBER.match(line.text) and 0 < page.height * 0.9 < line.y:
                continue
            gap = 0.0
            if above is not None and above.block == line.block and line.y > above.y:
                gap = (line.y - above.y) / max(line.size or 10.0, 6.0)
            above = line
            marked = _BULLET.match(line.text)
            text = (line.text[marked.end() :].strip() if marked else line.text)[:_LONGEST].replace(" ,", ",")
            if not text:
                continue
            rows.append(
                Row(
                    text=text, x=line.x, y=line.y, size=line.size, bold=line.bold, block=line.block, page=number,
                    bullet=marked is not None, gap=gap,
                )
            )  # fmt: skip
    _bullets_alone(extracted, rows)
    rows = _ranges_joined(rows[:_MOST])
    for row in rows:
        row.span = find(row.text, points=not row.bullet)
    return rows


def _bullets_alone(extracted: Extracted, rows: list[Row]) -> None:
    """Nothing is lost of lines that are a mark alone: what follows them is marked."""
    marks = {
        (number, line.block, round(line.y))
        for number, page in enumerate(extracted.pages)
        for line in page.lines
        if _BULLET.match(line.text) and not _BULLET.sub("", line.text).strip()
    }
    if marks:
        for row in rows:
            row.bullet = row.bullet or any((row.page, row.block, round(row.y) + off) in marks for off in (-1, 0, 1))


def _ranges_joined(rows: list[Row]) -> list[Row]:
    """A range that is broken after its dash is put together again: "01/2018 –" above "today"."""
    kept: list[Row] = []
    for row in rows:
        last = kept[-1] if kept else None
        if last is not None and last.block == row.block and not row.bullet:
            if _HANGING.search(last.text) and len(row.text) < 40 and last.bold == row.bold and row.gap < 1.8:
                last.text = f"{last.text} {row.text}"
                continue
            for at, cell in ((0, last.cells[0]), (len(last.cells) - 1, last.cells[-1])):
                first = row.cells[0]
                open_end = _OPEN.search(cell)
                if open_end is None or _CLOSED.match(first) is None:
                    continue
                cells = last.cells
                cells[at] = f"{cell} {first}"
                last.text = "\t".join(cells)
                row.text = "\t".join(row.cells[1:])
                break
        if row.text:
            kept.append(row)
    return kept


def sections(rows: list[Row]) -> list[Part]:
    """The parts of a resume. Columns go on with their own section over the pages."""
    looks = _looks(rows)
    known = [row.text for row in rows if section_of(row.text) is not None and not row.bullet]
    large = sum(text.isupper() for text in known) * 10 >= len(known) * 6 and len(known) > 2
    parts = [Part(None, "", [])]
    last_of: dict[int, tuple[Section | None, str]] = {}
    before: Row | None = None
    for row in rows:
        if before is not None and (row.page, row.block) != (before.page, before.block) and row.block >= 0:
            _move(parts, last_of, before, row, rows)
        before = row
        heading = _heading(row, looks)
        if (
            heading is not None
            and row.text.endswith(":")
            and not row.text.isupper()
            and large
            and _look(row) not in looks
        ):
            heading = None  # "Key achievements:" within a position, where headings are in capitals
        if heading is None:
            parts[-1].rows.append(row)
            continue
        section, title, rest = heading
        parts.append(Part(section, title, []))
        if rest:
            parts[-1].rows.append(_with(row, rest))
    return [part for part in parts if part.rows]


def _move(
    parts: list[Part], last_of: dict[int, tuple[Section | None, str]], before: Row, row: Row, rows: list[Row]
) -> None:
    """Another block begins: one beside the last goes on where its column stopped, one below it goes on with the text."""
    last_of[round(_edge(rows, before) / 20)] = (parts[-1].section, parts[-1].title)
    beside = row.page == before.page and row.y < before.y
    if not beside and row.page == before.page:
        return
    edge = round(_edge(rows, row) / 20)
    known = next((last_of[one] for one in (edge, edge - 1, edge + 1) if one in last_of), None)
    if row.page != before.page:
        if known is not None and known != (parts[-1].section, parts[-1].title):
            parts.append(Part(known[0], known[1], []))
        return
    if row.page == 0 and known is None:
        parts.append(Part(None, "", []))
    elif known is not None and row.page > 0:
        parts.append(Part(known[0], known[1], []))


def _edge(rows: list[Row], row: Row) -> float:
    return min(one.x for one in rows if (one.page, one.block) == (row.page, row.block))


_Look = tuple[int, bool, bool]


def _look(row: Row) -> _Look:
    return round(row.size * 2), row.bold, row.text.isupper()


def _looks(rows: list[Row]) -> set[_Look]:
    """How headings are set in this document, where that is unlike other lines."""
    known = [row for row in rows if section_of(row.text) is not None and not row.bullet and row.size]
    ordinary = Counter(_look(row) for row in rows)
    usual = sorted(row.size for row in rows)[len(rows) // 2] if rows else 0.0
    looks: set[_Look] = set()
    for look, count in Counter(_look(row) for row in known).items():
        rare = ordinary[look] <= 2.5 * count
        if count >= 2 and rare and (look[2] or look[0] > round(usual * 2) + 1):
            looks.add(look)
    return looks


def _heading(row: Row, looks: set[_Look]) -> tuple[Section, str, str] | None:
    """The section that a row begins, its title, and what stands beside the title."""
    if row.bullet and row.text[:1].islower():
        return None
    cells = row.cells
    said = cells[0].strip(" :–—-_|•")
    section = section_of(said)
    if section is not None:
        if len(cells) == 1:
            weak = section in {"other", "awards", "contact"} or said.islower()
            return (
                None
                if (row.bullet or said.endswith(",") or (weak and said.islower() and not row.bold))
                else (section, said, "")
            )
        if not row.bullet and (said.isupper() or row.bold or _look(row) in looks or len(cells) == 2):
            rest = "\t".join(cells[1:])
            return (
                None
                if section in {"contact", "skills", "languages"} and not row.bold and not said.isupper() and looks
                else (section, said, rest)
            )
    inline = _INLINE.match(row.text)
    if inline is not None and not row.bullet:
        section = section_of(inline[1])
        # "Languages: Python, Go" within the skills is for the reader of the skills.
        if section in {"summary", "interests", "certificates"} or (
            section in {"languages", "skills", "education"} and inline[1].isupper()
        ):
            return section, inline[1], inline[2]
    if (
        _look(row) in looks
        and not row.bullet
        and len(cells) == 1
        and len(row.text) <= 40
        and row.text.count(" ") <= 4
        and not _UNLIKE_HEADING.search(row.text)
        and row.y > 0
        and (row.text.isupper() or row.text.istitle() or row.text[:1].isupper())
    ):
        return "other", row.text, ""
    return None


def _with(row: Row, text: str) -> Row:
    return Row(
        text=text, x=row.x, y=row.y, size=row.size, bold=False, block=row.block, page=row.page, bullet=False,
        gap=0.0, span=find(text),
    )  # fmt: skip
