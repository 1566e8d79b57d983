"""A resume as DOCX: with the word processor's own headings, lists and tabs, to be edited, and read by programs."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import docx
from docx import oxml
from docx.enum.text import WD_TAB_ALIGNMENT
from docx.oxml.ns import qn
from docx.shared import Cm, Pt, RGBColor

from windlass.apps.resumes.rendering.outline import Group, Item, Outline

_FONT = "Calibri"
_INK, _FAINT = RGBColor(0x1F, 0x2A, 0x44), RGBColor(0x55, 0x5F, 0x73)
_WIDTH = Cm(17.4)


def word(shown: Outline) -> bytes:
    """The file."""
    document = docx.Document()
    _set_up(document, shown)
    _line(document, shown.name, size=22, bold=True, colour=_INK, after=0)
    if shown.label:
        _line(document, shown.label, size=12, colour=_FAINT, after=2)
    if shown.contact:
        _line(document, "  ·  ".join(text for text, _ in shown.contact), size=9.5, colour=_FAINT, after=4)
    for group in shown.groups:
        _group(document, group)
    held = BytesIO()
    document.save(held)
    return held.getvalue()


def _set_up(document: Any, shown: Outline) -> None:
    section = document.sections[0]
    section.page_width, section.page_height = Cm(21), Cm(29.7)
    section.left_margin = section.right_margin = Cm(1.8)
    section.top_margin = section.bottom_margin = Cm(1.5)
    style = document.styles["Normal"]
    style.font.name, style.font.size = _FONT, Pt(10)
    style.paragraph_format.space_after = Pt(2)
    style.paragraph_format.line_spacing = 1.05
    heading = document.styles["Heading 1"]
    heading.font.name, heading.font.size, heading.font.bold = _FONT, Pt(11.5), True
    heading.font.color.rgb = _INK
    heading.element.rPr.rFonts.set(qn("w:asciiTheme"), _FONT)
    heading.paragraph_format.space_before, heading.paragraph_format.space_after = Pt(9), Pt(3)
    document.styles["List Bullet"].paragraph_format.space_after = Pt(1)
    document.core_properties.author = _text(shown.name)
    document.core_properties.title = _text(shown.name)


def _group(document: Any, group: Group) -> None:
    _ruled(document.add_heading(_text(group.title), 1))
    if group.text:
        document.add_paragraph(_text(group.text))
    for label, said in group.lines:
        paragraph = document.add_paragraph()
        if label:
            paragraph.add_run(f"{_text(label)}: ").bold = True
        paragraph.add_run(_text(said))
    for item in group.items:
        _item(document, item)


def _item(document: Any, item: Item) -> None:
    paragraph = document.add_paragraph()
    paragraph.paragraph_format.tab_stops.add_tab_stop(_WIDTH, WD_TAB_ALIGNMENT.RIGHT)
    paragraph.paragraph_format.keep_with_next = bool(item.text or item.points)
    paragraph.add_run(_text(item.title)).bold = True
    beside = ", ".join(one for one in (item.beside, item.place) if one)
    if beside:
        paragraph.add_run(f", {_text(beside)}" if item.title else _text(beside))
    if item.when:
        when = paragraph.add_run(f"\t{_text(item.when)}")
        when.font.color.rgb = _FAINT
    for said in (item.text, item.link):
        if said:
            document.add_paragraph(_text(said))
    for point in item.points:
        document.add_paragraph(_text(point), style="List Bullet")


def _line(document: Any, said: str, *, size: float, colour: RGBColor, after: float, bold: bool = False) -> None:
    paragraph = document.add_paragraph()
    paragraph.paragraph_format.space_after = Pt(after)
    run = paragraph.add_run(_text(said))
    run.bold, run.font.size = bold, Pt(size)
    run.font.color.rgb = colour


def _ruled(paragraph: Any) -> None:
    """A thin line below a heading."""
    made: Any = oxml
    borders, line = made.OxmlElement("w:pBdr"), made.OxmlElement("w:bottom")
    for name, value in (("val", "single"), ("sz", "4"), ("space", "1"), ("color", "B8C0CC")):
        line.set(qn(f"w:{name}"), value)
    borders.append(line)
    properties = paragraph._p.get_or_add_pPr()  # noqa: SLF001  # lines have no public name
    properties.insert_element_before(borders, "w:shd", "w:tabs", "w:spacing", "w:ind", "w:jc", "w:rPr")


def _text(said: str) -> str:
    return " ".join(said.split())
