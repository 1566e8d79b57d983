"""Documents to be sent: a resume as text, as PDF, as DOCX, with words that are found nowhere else."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

from reportlab.lib.pagesizes import A4  # type: ignore[import-untyped]  # it has no types
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]  # the same

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
DESCRIPTION = """Senior Backend Engineer at Northwind.
You must have: Python, PostgreSQL and distributed systems. Nice to have: Kubernetes, Rust."""


def lines_of(name: str = "Ada Quillfeather", word: str = "Zorblatt") -> list[str]:
    """A resume, line by line; `word` is a company of it."""
    mail = name.lower().replace(" ", ".") + "@example.org"
    return [
        name,
        "Backend Engineer",
        f"{mail} | +44 20 7946 0958 | London, United Kingdom",
        "",
        "Summary",
        "Backend engineer who builds payment systems in Python and PostgreSQL.",
        "",
        "Experience",
        f"Senior Engineer, {word} Ltd, London",
        "January 2019 - March 2024",
        "- Built a ledger in Python and PostgreSQL that serves two million accounts.",
        "- Led a team of five engineers.",
        "Engineer, Fabrikam GmbH, Berlin",
        "June 2015 - December 2018",
        "- Ran distributed systems on Kubernetes.",
        "",
        "Education",
        "BSc Computer Science, University of Leeds",
        "2011 - 2015",
        "",
        "Skills",
        "Python, PostgreSQL, Kubernetes, Docker, Redis",
        "",
        "Languages",
        "English (native), German (fluent)",
    ]


def text(name: str = "Ada Quillfeather", word: str = "Zorblatt") -> bytes:
    return "\n".join(lines_of(name, word)).encode()


@cache  # another time is in another file
def pdf(name: str = "Ada Quillfeather", word: str = "Zorblatt") -> bytes:
    out = io.BytesIO()
    canvas: Any = Canvas(out, pagesize=A4)
    y = 800.0
    for index, line in enumerate(lines_of(name, word)):
        heading = line in ("Summary", "Experience", "Education", "Skills", "Languages")
        size = 20 if index == 0 else 13 if heading else 10
        canvas.setFont("Helvetica-Bold" if index == 0 or heading else "Helvetica", size)
        canvas.drawString(56, y, line)
        y -= size * 1.5
    canvas.save()
    return out.getvalue()


@cache
def docx(name: str = "Ada Quillfeather", word: str = "Zorblatt") -> bytes:
    import docx

    made = docx.Document()
    for index, line in enumerate(lines_of(name, word)):
        if line in ("Summary", "Experience", "Education", "Skills", "Languages"):
            made.add_heading(line, level=1)
        elif line.startswith("- "):
            made.add_paragraph(line[2:], style="List Bullet")
        elif line:
            made.add_heading(line, level=0) if index == 0 else made.add_paragraph(line)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def part(data: bytes, name: str = "cv.txt", kind: str = "text/plain") -> dict[str, Any]:
    """A file of a form."""
    return {"file": (name, data, kind)}
