"""Resumes set by typst: data through `sys_inputs`, layouts as markup of our own."""

from __future__ import annotations

import json

import typst

from tests.apps.resumes.samples.people import Person
from tests.apps.resumes.samples.wording import Wording, head, heading, lists, study_head

_COMMON = """
#let it = json(bytes(sys.inputs.data))
#set page(paper: "a4", margin: 1.6cm)
#set text(font: it.font, size: 10pt)
#set par(justify: it.justify)
#let section(title) = block(above: 1em, below: .6em, [#text(weight: "bold", size: 12pt, title) #if it.rule { v(-.7em); line(length: 100%, stroke: .4pt) }])
#let pairs(all) = for (at, pair) in all.enumerate() [#if at == 0 { strong(pair.at(0)) } else { pair.at(0) } #if pair.at(1) != "" { h(1fr); pair.at(1) } \\ ]
#let main = {
  section(it.titles.summary); it.summary
  section(it.titles.work)
  for job in it.jobs { block(below: .8em, { pairs(job.head); list(..job.points) }) }
  section(it.titles.education)
  for study in it.studies { block(below: .6em, pairs(study)) }
}
#let short = for (title, lines) in it.lists { section(title); for one in lines [#one \\ ] }
"""
_ONE = """#align(center)[#text(size: 22pt, weight: "bold", it.name) \\ #it.label \\ #it.contact.join("  •  ")]
#main
#short"""
_SIDE = """#text(size: 22pt, weight: "bold", it.name) \\ #it.label
#grid(columns: (1fr, 2.2fr), gutter: 18pt, { section(it.titles.contact); for one in it.contact [#one \\ ]; short }, main)"""
_RIGHT = """#text(size: 22pt, weight: "bold", upper(it.name)) \\ #it.label
#grid(columns: (2.2fr, 1fr), gutter: 16pt, main, { section(it.titles.contact); for one in it.contact [#one \\ ]; short })"""
LAYOUTS = {"one": _ONE, "left": _SIDE, "right": _RIGHT}


def page(person: Person, wording: Wording, layout: str) -> bytes:
    """The PDF."""
    data = {
        "font": "Libertinus Serif"
        if layout == "one"
        else "DejaVu Sans Mono"
        if layout == "mono"
        else "New Computer Modern",
        "justify": layout == "one",
        "rule": layout != "right",
        "name": person.name,
        "label": person.label,
        "contact": [person.email, person.phone, person.place, *person.links],
        "summary": person.summary,
        "titles": {name: heading(person, name, wording) for name in ("summary", "work", "education", "contact")},
        "jobs": [{"head": head(person, job, wording), "points": job.points} for job in person.jobs],
        "studies": [study_head(person, study, wording) for study in person.studies],
        "lists": list(lists(person, wording)),
    }
    made = typst.compile((_COMMON + LAYOUTS[layout]).encode(), format="pdf", sys_inputs={"data": json.dumps(data)})
    assert isinstance(made, bytes)
    return made
