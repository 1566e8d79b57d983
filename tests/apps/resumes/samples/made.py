"""Which samples there are. Those that are held out are for measuring: no rule was written by looking at them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.apps.resumes.samples import drawn, html, typeset, written
from tests.apps.resumes.samples.people import Person, person
from tests.apps.resumes.samples.wording import Wording

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
TXT = "text/plain"
Printer = Callable[[str], bytes]
"""of a page of HTML, to PDF"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    name: str
    person: Person
    data: bytes
    media_type: str
    held_out: bool


_HEADS = (
    "title|dates",
    "company|place",
    "title at company",
    "company - title (dates)",
    "pipes",
    "dates first",
    "dates last",
    "title, company",
    "company|dates",
    "company (place)|dates",
)
_STUDIES = ("school|dates", "degree|dates", "one line", "pipes", "school|place", "years first")
_DATES = ("long", "short", "numbers", "points", "years", "iso")
_KINDS = (
    *(("html", layout) for layout in ("one", "left", "right", "dark", "dated", "spaced", "serif")),
    *(("typst", layout) for layout in ("one", "left", "right")),
    *(("drawn", layout) for layout in ("one", "both", "dated")),
    *(("docx", layout) for layout in ("styled", "plain", "table", "sidebar", "header")),
    *(("txt", layout) for layout in ("plain", "ruled", "latin")),
)  # fmt: skip


def samples(printer: Printer, *, held_out: bool) -> Iterator[Sample]:
    """Each kind of document in two or three of the languages, each with its own wording."""
    chance = random.Random("held out" if held_out else "seen")
    for number, (kind, layout) in enumerate(_KINDS):
        for turn in range(1 if held_out else 2):
            language = ("en", "de", "fr", "es")[(number + 2 * turn + held_out) % 4]
            someone = person(language, 1000 * held_out + 10 * number + turn)
            wording = Wording(
                heading=chance.randrange(4), upper=chance.random() < 0.4, dates=chance.choice(_DATES), dash=chance.choice((" – ", " - ", "–", " — ")),
                head=chance.choice(_HEADS), study=chance.choice(_STUDIES),
            )  # fmt: skip
            data, media_type = _made(kind, layout, someone, wording, printer)
            yield Sample(
                name=f"{kind} {layout} {language} {wording.head} / {wording.study} / {wording.dates}",
                person=someone,
                data=data,
                media_type=media_type,
                held_out=held_out,
            )


def _made(kind: str, layout: str, someone: Person, wording: Wording, printer: Printer) -> tuple[bytes, str]:
    match kind:
        case "html":
            return printer(html.page(someone, wording, layout)), PDF
        case "typst":
            return typeset.page(someone, wording, layout), PDF
        case "drawn":
            return drawn.page(someone, wording, layout), PDF
        case "docx":
            return written.document(someone, wording, layout), DOCX
        case _:
            return written.text(someone, wording, layout), TXT
