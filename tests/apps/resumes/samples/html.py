"""Resumes as pages that a browser prints."""

from __future__ import annotations

from html import escape

from tests.apps.resumes.samples.people import Person
from tests.apps.resumes.samples.wording import Pair, Wording, dates, head, heading, lists, study_head, when

_CSS = """
@page { size: A4; margin: 14mm } body { font: 10.5px/1.45 'DejaVu Sans', sans-serif; margin: 0; color: #222 }
h1 { font-size: 24px; margin: 0 0 2px } h2 { font-size: 13px; margin: 14px 0 5px } .label { font-size: 13px; color: #555 }
.row { display: flex; justify-content: space-between } .entry { margin-bottom: 9px } ul { margin: 3px 0 0; padding-left: 18px }
p { margin: 2px 0 } .two { display: grid; gap: 22px } .left { grid-template-columns: 31% 1fr } .right { grid-template-columns: 1fr 31% }
.dark { background: #1f2f46; color: #fff; padding: 12px } .spaced h2 { letter-spacing: 4px } .lined h2 { border-bottom: 1px solid #888 }
.dated { display: grid; grid-template-columns: 125px 1fr } .centred { text-align: center } .serif { font-family: 'DejaVu Serif', serif }
"""


def page(person: Person, wording: Wording, layout: str) -> str:
    """The whole document. Layouts: one, left, right, dark, dated, spaced, serif."""
    side = {"left": "two left", "right": "two right", "dark": "two left"}.get(layout)
    top = f"<h1>{escape(person.name)}</h1><div class=label>{escape(person.label)}</div>"
    contact = [person.email, person.phone, person.place, *person.links]
    short = "".join(
        _section(title, "".join(f"<p>{escape(line)}</p>" for line in lines)) for title, lines in lists(person, wording)
    )
    main = (
        _section(heading(person, "summary", wording), f"<p>{escape(person.summary)}</p>")
        + _work(person, wording, layout)
        + _studies(person, wording, layout)
    )
    if side is None:
        centred = "centred" if layout in {"one", "serif"} else ""
        body = f"<div class='{centred}'>{top}<p>{escape(' | '.join(contact))}</p></div>{main}{short}"
    else:
        about = _section(heading(person, "contact", wording), "".join(f"<p>{escape(one)}</p>" for one in contact))
        aside = f"<div class='{'dark' if layout == 'dark' else ''}'>{about}{short}</div>"
        inner = [aside, f"<div>{main}</div>"] if side != "two right" else [f"<div>{main}</div>", aside]
        body = f"{top}<div class='{side}'>{''.join(inner)}</div>"
    kind = {"spaced": "spaced", "one": "lined", "serif": "serif lined"}.get(layout, "")
    return f"<!doctype html><meta charset=utf-8><style>{_CSS}</style><body class='{kind}'>{body}</body>"


def _section(title: str, inner: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{inner}</section>"


def _pairs(pairs: list[Pair]) -> str:
    lines: list[str] = []
    for at, (left, right) in enumerate(pairs):
        said = f"<b>{escape(left)}</b>" if at == 0 else escape(left)
        lines.append(f"<div class=row><span>{said}</span><span>{escape(right)}</span></div>")
    return "".join(lines)


def _work(person: Person, wording: Wording, layout: str) -> str:
    entries: list[str] = []
    for job in person.jobs:
        points = "<ul>" + "".join(f"<li>{escape(point)}</li>" for point in job.points) + "</ul>"
        if layout == "dated":
            inner = f"<div><b>{escape(job.title)}</b><br>{escape(job.company)}, {escape(job.place)}{points}</div>"
            entries.append(f"<div class='entry dated'><div>{escape(dates(person, job, wording))}</div>{inner}</div>")
        else:
            entries.append(f"<div class=entry>{_pairs(head(person, job, wording))}{points}</div>")
    return _section(heading(person, "work", wording), "".join(entries))


def _studies(person: Person, wording: Wording, layout: str) -> str:
    entries: list[str] = []
    for study in person.studies:
        if layout == "dated":
            span = f"{when(person, (study.start, 10), wording)}{wording.dash}{when(person, (study.end, 9), wording)}"
            entries.append(
                f"<div class='entry dated'><div>{escape(span)}</div><div><b>{escape(study.degree)} {escape(study.area)}</b><br>{escape(study.school)}, {escape(study.place)}</div></div>"
            )
        else:
            entries.append(f"<div class=entry>{_pairs(study_head(person, study, wording))}</div>")
    return _section(heading(person, "education", wording), "".join(entries))
