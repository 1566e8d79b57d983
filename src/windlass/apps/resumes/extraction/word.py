"""DOCX files: paragraphs, tables, text boxes, headers and footers, in the order in which they are read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import docx
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph
from docx.text.run import Run

from windlass.apps.resumes.extraction.archive import check_archive
from windlass.apps.resumes.extraction.extracted import Extracted, Facts, Hidden, Line, Page
from windlass.apps.resumes.extraction.layout import tidy
from windlass.apps.resumes.extraction.limits import Limits
from windlass.apps.resumes.extraction.refused import DocumentRefused
from windlass.apps.resumes.extraction.styles import Styles
from windlass.apps.resumes.vocabulary.dates import is_date
from windlass.apps.resumes.vocabulary.headings import section_of

_TINIEST = 3.9
_DEEPEST = 8
_LINE = 14.0
"""points from one line to the next, where the document does not say"""


def read_docx(data: bytes, limits: Limits) -> Extracted:
    """What a person sees of a DOCX; DocumentRefused says why it cannot be read."""
    check_archive(data, limits)
    try:
        document: Any = docx.Document(BytesIO(data))
        return _Reading(document, limits).read()
    except (KeyError, ValueError, AttributeError, TypeError, IndexError, SyntaxError, RecursionError):
        # python-docx has no error of its own for documents that are not what they should be.
        raise DocumentRefused("it is a broken DOCX: open it and save it anew") from None


class _Reading:
    def __init__(self, document: Any, limits: Limits) -> None:
        self._document, self._limits = document, limits
        self._hidden: list[Hidden] = []
        self._notes: list[str] = []
        self._lines: list[Line] = []
        self._tables = 0
        self._columns = 1
        self._y = 0.0
        self._blocks = itertools.count(1)
        self._left = limits.characters
        self._styles = Styles(document)

    def read(self) -> Extracted:
        header, footer = self._margins()
        self._lines = []
        self._y = 0.0
        self._content(self._document, 0, 0)
        seen = {line.text for line in self._lines}
        above = [line for line in header if line.text not in seen]
        below = [line for line in footer if line.text not in seen]
        lines = tuple(above + self._lines + below)
        if self._left <= 0:
            self._notes.append(f"only the first {self._limits.characters:,} characters were read")
        said = " ".join(line.text for line in lines)
        body = self._document.element.body
        facts = Facts(
            kind="docx",
            pages=self._pages(),
            characters=len(said),
            words=len(said.split()),
            columns=self._columns,
            tables=self._tables,
            pictures=sum(1 for _ in body.iter(qn("pic:pic"))),
            hidden=sum(one.characters for one in self._hidden),
            unreadable=said.count("\ufffd"),
            in_margins=bool(above or below),
            notes=tuple(self._notes),
        )
        return Extracted(pages=(Page(lines=lines),), facts=facts, hidden=tuple(self._hidden), links=self._addresses())

    def _margins(self) -> tuple[list[Line], list[Line]]:
        """What stands in headers and footers, each text once."""
        found: list[list[Line]] = []
        for names in (("first_page_header", "header"), ("first_page_footer", "footer")):
            self._lines = []
            for section in self._document.sections:
                for name in names:
                    part = getattr(section, name)
                    if name.startswith("first") and not section.different_first_page_header_footer:
                        continue
                    if not part.is_linked_to_previous:
                        self._content(part, -1, 0)
            once = {line.text: line for line in reversed(self._lines)}
            found.append([line for line in self._lines if once.get(line.text) is line])
        return found[0], found[1]

    def _content(self, container: Any, block: int, deep: int) -> None:
        for item in container.iter_inner_content():
            if isinstance(item, Paragraph):
                paragraph: Any = item
                self._paragraph(paragraph, block)
                for box in _text_boxes(paragraph._p):  # noqa: SLF001  # boxes have no public name
                    number = block if block < 0 else next(self._blocks)
                    for inner in box.iter(qn("w:p")):
                        self._paragraph(Paragraph(inner, paragraph._parent), number)  # noqa: SLF001  # the same
            elif isinstance(item, Table) and deep < _DEEPEST:
                self._table(item, block, deep)

    def _paragraph(self, paragraph: Any, block: int) -> None:
        for line in self._read_paragraph(paragraph, block):
            self._put(line)

    def _put(self, line: Line) -> None:
        if self._left > 0:
            self._left -= len(line.text)
            self._lines.append(line)

    def _read_paragraph(self, paragraph: Any, block: int) -> list[Line]:
        self._y += _LINE
        said, size, letters, bold = "", 0.0, 0, 0
        for run in _runs(paragraph):
            text = _text(run)
            if not text:
                continue
            why = self._unseen(run, paragraph)
            if why is not None and text.strip():
                self._hide(why, text)
                continue
            said += text
            count = len(text.strip())
            letters += count
            if self._styles.bold(run, paragraph):
                bold += count
            size = max(size, self._styles.size(run, paragraph))
        if not said.strip():
            self._y += 0.3 * _LINE
            return []
        style = self._styles.name(paragraph)
        heading = style.startswith(("heading", "title", "überschrift", "titre", "título"))
        bullet = _is_bullet(paragraph, style)
        lines: list[Line] = []
        for at, raw in enumerate(said.split("\n")):
            text = tidy(raw.strip())
            if not text:
                continue
            if bullet and at == 0 and text[0] not in "•-–*":
                text = f"• {text}"
            lines.append(
                Line(
                    text=text,
                    x=_indent(paragraph) + (18.0 if bullet else 0.0),
                    y=self._y,
                    size=size,
                    bold=heading or bold * 10 >= letters * 6,
                    block=block,
                )
            )
            self._y += _LINE if at else 0.0
        return lines

    def _hide(self, why: str, text: str) -> None:
        said = " ".join(text.split())
        if self._hidden and self._hidden[-1].why == why and len(self._hidden) > 50:
            return
        self._hidden.append(Hidden(why=why, page=1, characters=len(said), beginning=said[:80]))

    def _unseen(self, run: Any, paragraph: Any) -> str | None:
        font = run.font
        if self._styles.hidden(run, paragraph):
            return "hidden"
        size = self._styles.size(run, paragraph)
        if 0 < size < _TINIEST:
            return "tiny"
        colour = font.color.rgb if font.color is not None and font.color.type is not None else None
        if colour is not None and min(colour) > 238 and not _on_colour(run, paragraph):
            return "white"
        return None

    def _table(self, table: Any, block: int, deep: int) -> None:
        self._tables += 1
        for row in table.rows:
            cells = list({id(cell._tc): cell for cell in row.cells}.values())  # noqa: SLF001  # merged cells come twice
            held = [self._cell(cell, deep) for cell in cells]
            held = [lines for lines in held if lines]
            if len(held) > 1 and _side_by_side(held):
                self._columns = max(self._columns, len(held))
                for lines in held:
                    number = next(self._blocks)
                    for line in lines:
                        self._put(
                            Line(text=line.text, x=line.x, y=line.y, size=line.size, bold=line.bold, block=number)
                        )
            else:
                number = block
                for line in _zipped(held):
                    self._put(Line(text=line.text, x=line.x, y=line.y, size=line.size, bold=line.bold, block=number))

    def _cell(self, cell: Any, deep: int) -> list[Line]:
        kept, self._lines = self._lines, []
        self._content(cell, 0, deep + 1)
        found, self._lines = self._lines, kept
        self._left += sum(len(line.text) for line in found)
        return found

    def _addresses(self) -> tuple[str, ...]:
        parts = [self._document.part, *(section.header.part for section in self._document.sections)]
        found = [
            relation.target_ref.strip()
            for part in parts
            for relation in part.rels.values()
            if relation.is_external and relation.reltype.endswith("/hyperlink")
        ]
        wanted = [one for one in found if one.lower().startswith(("http://", "https://", "mailto:", "tel:"))]
        return tuple(dict.fromkeys(one[:2_000] for one in wanted))[:100]

    def _pages(self) -> int:
        """As its last page breaks say; 1 where it has none."""
        body = self._document.element.body
        rendered = sum(1 for _ in body.iter(qn("w:lastRenderedPageBreak")))
        broken = sum(1 for one in body.iter(qn("w:br")) if one.get(qn("w:type")) == "page")
        return 1 + max(rendered, broken)


def _runs(paragraph: Any) -> Iterator[Any]:
    """All runs in order: those of links, of insertions and of fields, too; deleted ones are no runs."""
    own = paragraph._p  # noqa: SLF001  # links and insertions are passed over by `runs`
    for element in own.iter(qn("w:r")):
        if not any(parent.tag in {qn("w:txbxContent"), qn("w:del")} for parent in _within(element, own)):
            yield Run(element, paragraph)


def _within(element: Any, top: Any) -> Iterator[Any]:
    parent = element.getparent()
    while parent is not None and parent is not top:
        yield parent
        parent = parent.getparent()


def _text(run: Any) -> str:
    """A run's text; symbols of symbol fonts are bullets."""
    said = run.text
    return "".join("•" if 0xF000 <= ord(one) < 0xF100 else "" if 0xE000 <= ord(one) < 0xF900 else one for one in said)


def _text_boxes(paragraph: Any) -> list[Any]:
    """Boxes of a paragraph; of the two forms in which each is kept, the newer."""
    boxes = list(paragraph.iter(qn("w:txbxContent")))
    old = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
    return [box for box in boxes if not any(parent.tag == old for parent in _within(box, paragraph))]


def _is_bullet(paragraph: Any, style: str) -> bool:
    properties = paragraph._p.pPr  # noqa: SLF001  # lists have no public name
    numbered = properties.find(qn("w:numPr")) if properties is not None else None
    if numbered is not None:
        number = numbered.find(qn("w:numId"))
        return number is None or number.get(qn("w:val")) != "0"
    return style.startswith(("list bullet", "list number", "aufzählung", "liste à puces", "lista con viñetas"))


def _indent(paragraph: Any) -> float:
    left = paragraph.paragraph_format.left_indent
    return round(left.pt, 1) if left is not None else 0.0


def _on_colour(run: Any, paragraph: Any) -> bool:
    """Whether a run, its paragraph or its cell has a ground of its own, on which white can be read."""
    for element in (run._r, *_within(run._r, None)):  # noqa: SLF001  # grounds have no public name
        for name in ("w:rPr", "w:pPr", "w:tcPr", "w:tblPr"):
            properties = element.find(qn(name))
            if properties is None:
                continue
            ground = properties.find(qn("w:shd"))
            if ground is not None and ground.get(qn("w:fill"), "auto").lower() not in {"auto", "ffffff"}:
                return True
            if properties.find(qn("w:highlight")) is not None:
                return True
        if element.tag.endswith(("}txbxContent", "}tblStylePr")):
            return True  # a shape may be filled
    return paragraph._p.getparent().tag == qn("w:tc") and _styled_table(paragraph._p)  # noqa: SLF001  # the same


def _styled_table(paragraph: Any) -> bool:
    return any(
        one.tag == qn("w:tbl") and one.find(f".//{qn('w:tblStyle')}") is not None for one in _within(paragraph, None)
    )


def _side_by_side(cells: list[list[Line]]) -> bool:
    """Whether cells are columns of a page rather than a row of a table."""
    if sum(len(lines) >= 5 for lines in cells) < 2:
        return False
    first = cells[0]
    dated = sum(is_date(line.text) for line in first)
    headed = sum(section_of(line.text) is not None for lines in cells for line in lines)
    return dated * 2 < len(first) and (headed > 0 or min(len(lines) for lines in cells) >= 8)


def _zipped(cells: list[list[Line]]) -> Iterator[Line]:
    """A row of a table: the first lines of its cells beside each other, then what follows."""
    if not cells:
        return
    cells = [_dates_joined(lines) for lines in cells]
    heads = [lines[0] for lines in cells]
    lead = heads[0]
    if len(cells) == 1 or section_of(lead.text) is not None or any(head.text.startswith("•") for head in heads[1:]):
        for lines in cells:
            yield from lines
        return
    text = "\t".join(head.text for head in heads)
    yield Line(text=text, x=lead.x, y=lead.y, size=lead.size, bold=any(head.bold for head in heads), block=lead.block)
    rest = [lines[1:] for lines in cells]
    if sum(bool(lines) for lines in rest) > 1 and max(len(lines) for lines in rest) <= 3:
        for row in itertools.zip_longest(*rest):
            here = [line for line in row if line is not None]
            first = here[0]
            yield Line(
                text="\t".join(line.text for line in here), x=first.x, y=first.y, size=first.size, bold=first.bold
            )
        return
    for lines in rest:
        yield from lines


def _dates_joined(lines: list[Line]) -> list[Line]:
    """A range that is broken over two lines of a narrow cell, on one."""
    if 2 <= len(lines) <= 3 and not is_date(lines[0].text + "x"):
        joined = " ".join(line.text for line in lines)
        if is_date(joined) and len(joined) < 40:
            first = lines[0]
            return [Line(text=joined, x=first.x, y=first.y, size=first.size, bold=first.bold, block=first.block)]
    return lines
