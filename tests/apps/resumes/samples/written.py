"""Resumes as DOCX and as text files."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import docx
from docx.enum.text import WD_TAB_ALIGNMENT
from docx.shared import Cm, Pt

from tests.apps.resumes.samples.people import Person
from tests.apps.resumes.samples.wording import Wording, dates, head, heading, lists, study_head


def document(person: Person, wording: Wording, layout: str) -> bytes:
    """A DOCX. Layouts: styled, plain, table (dates in a column), sidebar (a table as page), header (contact in the header)."""
    made = docx.Document()
    contact = " | ".join([person.email, person.phone, person.place, *person.links])
    where: Any = made
    if layout == "header":
        made.sections[0].header.paragraphs[0].text = contact
    if layout == "styled":
        made.add_heading(person.name, 0)
    else:
        run = made.add_paragraph().add_run(person.name)
        run.bold, run.font.size = True, Pt(20)
    made.add_paragraph(person.label)
    if layout not in {"header", "sidebar"}:
        made.add_paragraph(contact)
    if layout == "sidebar":
        row = made.add_table(rows=1, cols=2).rows[0]
        aside, where = row.cells
        _title(aside, heading(person, "contact", wording), layout)
        for one in (person.email, person.phone, person.place, *person.links):
            aside.add_paragraph(one)
        _lists(aside, person, wording, layout)
    _title(where, heading(person, "summary", wording), layout)
    where.add_paragraph(person.summary)
    _work(where, person, wording, layout)
    if layout != "sidebar":
        _lists(where, person, wording, layout)
    held = BytesIO()
    made.save(held)
    return held.getvalue()


def _title(where: Any, text: str, layout: str) -> None:
    if layout == "styled":
        where.add_heading(text, 1)
        return
    run = where.add_paragraph().add_run(text)
    run.bold = True
    run.font.size = Pt(13)


def _lists(where: Any, person: Person, wording: Wording, layout: str) -> None:
    for title, lines in lists(person, wording):
        _title(where, title, layout)
        for line in lines:
            where.add_paragraph(line)


def _work(where: Any, person: Person, wording: Wording, layout: str) -> None:
    _title(where, heading(person, "work", wording), layout)
    for job in person.jobs:
        if layout == "table":
            left, right = where.add_table(rows=1, cols=2).rows[0].cells
            left.text = dates(person, job, wording)
            right.text = job.title
            right.add_paragraph(f"{job.company}, {job.place}")
            for point in job.points:
                right.add_paragraph(point, style="List Bullet")
            continue
        _pairs(where, head(person, job, wording))
        for point in job.points:
            where.add_paragraph(point, style="List Bullet")
    _title(where, heading(person, "education", wording), layout)
    for study in person.studies:
        _pairs(where, study_head(person, study, wording))


def _pairs(where: Any, pairs: list[tuple[str, str]]) -> None:
    for at, (left, right) in enumerate(pairs):
        paragraph = where.add_paragraph()
        paragraph.paragraph_format.tab_stops.add_tab_stop(Cm(16), WD_TAB_ALIGNMENT.RIGHT)
        paragraph.add_run(left).bold = at == 0
        if right:
            paragraph.add_run(f"\t{right}")


def text(person: Person, wording: Wording, layout: str) -> bytes:
    """A text file. Layouts: plain, ruled, latin (in the encoding of old Windows programs), wide."""
    lines = [person.name, person.label, "", person.email, person.phone, person.place, *person.links, ""]

    def titled(said: str) -> None:
        lines.extend(["", said.upper() if layout != "latin" else f"{said}:"])
        if layout == "ruled":
            lines.append("-" * len(said))

    titled(heading(person, "summary", wording))
    lines.append(person.summary)
    titled(heading(person, "work", wording))
    for job in person.jobs:
        lines += [
            f"{left}{' ' * max(4, 70 - len(left)) + right if right else ''}"
            for left, right in head(person, job, wording)
        ]
        lines += [f"  {'*' if layout == 'ruled' else '-'} {point}" for point in job.points]
        lines.append("")
    titled(heading(person, "education", wording))
    for study in person.studies:
        lines += [f"{left}{' ' * 8 + right if right else ''}" for left, right in study_head(person, study, wording)]
        lines.append("")
    for title, inner in lists(person, wording):
        titled(title)
        lines += inner
    return "\r\n".join(lines).encode("cp1252" if layout == "latin" else "utf-8", "replace")
