"""Resumes drawn line by line with reportlab: in one column, in two that are drawn one line left, one line right, with marks."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from reportlab.lib.pagesizes import A4  # type: ignore[import-untyped]  # it has no types
from reportlab.pdfbase.pdfmetrics import registerFont, stringWidth  # type: ignore[import-untyped]  # it has no types
from reportlab.pdfbase.ttfonts import TTFont  # type: ignore[import-untyped]  # it has no types
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]  # it has no types

from tests.apps.resumes.samples.people import Person
from tests.apps.resumes.samples.wording import Wording, dates, head, heading, lists, study_head

_FONTS = "/usr/share/fonts/truetype/dejavu"
_Line = tuple[str, str, float, bool]
"""left, right, size, bold"""


def page(person: Person, wording: Wording, layout: str) -> bytes:
    """The PDF. Layouts: one, both (columns drawn at once), dated, left."""
    held = BytesIO()
    canvas = Canvas(held, pagesize=A4, invariant=1)
    registerFont(TTFont("D", f"{_FONTS}/DejaVuSans.ttf"))
    registerFont(TTFont("DB", f"{_FONTS}/DejaVuSans-Bold.ttf"))
    width, height = A4
    canvas.setFont("DB", 20)
    canvas.drawString(50, height - 60, person.name.upper() if layout == "both" else person.name)
    canvas.setFont("D", 11)
    canvas.drawString(50, height - 78, person.label)
    contact = [person.email, person.phone, person.place, *person.links]
    main, short = _main(person, wording, layout), _short(person, wording)
    if layout == "both":
        short = [
            (heading(person, "contact", wording), "", 12.0, True),
            *((one, "", 9.5, False) for one in contact),
            *short,
        ]
        _columns(canvas, main, short, width, height)
    else:
        canvas.setFont("D", 9)
        canvas.drawString(50, height - 94, "  ·  ".join(contact))
        _lines(canvas, [*main, *short], 50, width - 50, height - 122, height)
    canvas.save()
    return held.getvalue()


def _main(person: Person, wording: Wording, layout: str) -> list[_Line]:
    lines: list[_Line] = [
        (heading(person, "summary", wording), "", 12.0, True),
        (person.summary, "", 9.5, False),
        (heading(person, "work", wording), "", 12.0, True),
    ]
    for job in person.jobs:
        if layout == "dated":
            lines += [
                (f"{dates(person, job, wording)}\t{job.title}", "", 9.5, False),
                (f"\t{job.company}, {job.place}", "", 9.5, False),
            ]
            lines += [(f"\t• {point}", "", 9.5, False) for point in job.points]
        else:
            lines += [
                (left, right, 10.0 if at == 0 else 9.5, at == 0)
                for at, (left, right) in enumerate(head(person, job, wording))
            ]
            lines += [(f"• {point}", "", 9.5, False) for point in job.points]
        lines.append(("", "", 6.0, False))
    lines.append((heading(person, "education", wording), "", 12.0, True))
    for study in person.studies:
        if layout == "dated":
            lines += [
                (f"{study.start}{wording.dash}{study.end}\t{study.degree} {study.area}", "", 9.5, False),
                (f"\t{study.school}, {study.place}", "", 9.5, False),
            ]
        else:
            lines += [
                (left, right, 9.5, at == 0) for at, (left, right) in enumerate(study_head(person, study, wording))
            ]
        lines.append(("", "", 4.0, False))
    return lines


def _short(person: Person, wording: Wording) -> list[_Line]:
    lines: list[_Line] = []
    for title, inner in lists(person, wording):
        lines += [(title, "", 12.0, True), *((one, "", 9.5, False) for one in inner)]
    return lines


def _columns(canvas: Any, main: list[_Line], short: list[_Line], width: float, height: float) -> None:
    """Line by line, both columns at once: the order in the file is not the order of reading."""
    wrapped = [_wrapped(main, width - 50 - 215), _wrapped(short, 140)]
    y = [height - 110.0, height - 110.0]
    for at in range(max(len(one) for one in wrapped)):
        for side, (x, right) in enumerate(((215.0, width - 50), (50.0, 190.0))):
            if at < len(wrapped[side]):
                y[side] = _put(canvas, wrapped[side][at], x, right, y[side])


def _lines(canvas: Any, lines: list[_Line], x: float, right: float, y: float, height: float) -> None:
    for line in _wrapped(lines, right - x):
        y = _put(canvas, line, x, right, y)
        if y < 50:
            canvas.showPage()
            y = height - 60


def _put(canvas: Any, line: _Line, x: float, right: float, y: float) -> float:
    left_text, right_text, size, bold = line
    if size >= 12:
        y -= 8
    canvas.setFont("DB" if bold else "D", size)
    for at, cell in enumerate(left_text.split("\t")):
        canvas.drawString(x + 130 * at, y, cell)
    if right_text:
        canvas.setFont("D", size)
        canvas.drawRightString(right, y, right_text)
    return y - size * 1.35


def _wrapped(lines: list[_Line], room: float) -> list[_Line]:
    found: list[_Line] = []
    for left, right, size, bold in lines:
        if right or "\t" in left or stringWidth(left, "DB" if bold else "D", size) <= room:
            found.append((left, right, size, bold))
            continue
        said = ""
        for word in left.split():
            if stringWidth(f"{said} {word}", "DB" if bold else "D", size) > room:
                found.append((said, "", size, bold))
                said = ("  " if left.startswith("•") else "") + word
            else:
                said = f"{said} {word}" if said else word
        found.append((said, "", size, bold))
    return found
