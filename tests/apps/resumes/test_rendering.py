"""Rendered resumes: three formats, read back; nothing that a resume says is ever markup."""

from __future__ import annotations

import re
from io import BytesIO

import docx
import pytest

from tests.apps.resumes.samples.people import POOLS, person
from tests.apps.resumes.samples.wording import Wording
from tests.apps.resumes.samples.written import document
from windlass.apps.resumes.extraction.extract import extract
from windlass.apps.resumes.extraction.pdfium import pdf
from windlass.apps.resumes.rendering.render import FORMATS, Format, render
from windlass.apps.resumes.resume import Basics, Education, Profile, Project, Resume, Skill, Work
from windlass.apps.resumes.structuring.rules import structure_by_rules

HOSTILE = (
    '#read("/etc/passwd")',
    '#eval("1+1")',
    '#image("/etc/hostname")',
    "$ integral $",
    "*bold* _it_ `raw` <label> @ref",
    '#include "x.typ"',
    '"]) #read("/etc/hostname")',
    "\\u{41} // comment /* x */",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "# heading",
    "- item",
    "=cmd|' /C calc'!A0",
    "a\x00b\x1b[31mc\u202ed\ud800e",
)


def of(said: str) -> Resume:
    """A resume that says it everywhere."""
    return Resume(
        basics=Basics.model_construct(
            name=said, label=said, summary=said, profiles=[Profile(network="GitHub", url="https://github.com/ada")]
        ),
        work=[Work.model_construct(position=said, name=said, summary=said, highlights=[said], start_date="2020-01")],
        education=[Education.model_construct(institution=said, study_type=said, area=said)],
        skills=[Skill.model_construct(name=said, keywords=[said])],
        projects=[Project.model_construct(name=said, description=said)],
    )


def read_back(data: bytes, format: Format) -> str:
    return data.decode() if format == "markdown" else extract(data, "").text


@pytest.mark.parametrize("language", POOLS)
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_rendered_is_read_back_as_the_same_resume(language: str, format: Format) -> None:
    resume = structure_by_rules(extract(document(person(language, 9), Wording(), "styled"), ""))
    data = render(resume, format)
    found = structure_by_rules(extract(data, "text/plain")) if format != "markdown" else resume
    assert found.basics.name == resume.basics.name
    assert found.basics.email == resume.basics.email
    told = [(one.position, one.name, one.start_date, one.end_date) for one in resume.work]
    assert [(one.position, one.name, one.start_date, one.end_date) for one in found.work] == told
    said = read_back(data, format)
    for work in resume.work:
        assert work.position is not None
        assert work.position in said.replace("\\", "")


@pytest.mark.parametrize("said", HOSTILE)
def test_nothing_that_a_resume_says_is_markup_in_a_pdf(said: str) -> None:
    found = extract(render(of(said), "pdf"), "").text
    assert "root:" not in found
    kept = [word for word in said.split() if word.isascii() and word.isalnum()]
    assert all(word in found for word in kept)
    if said.startswith("#") and '"' in said:
        assert said.split("(", maxsplit=1)[0] in found.replace("\n", " ")


@pytest.mark.parametrize("said", HOSTILE)
def test_nothing_that_a_resume_says_is_markup_in_markdown_or_breaks_a_docx(said: str) -> None:
    made = render(of(said), "markdown").decode("utf-8", "replace")
    assert "<img" not in made
    assert not re.search(r"(?<!\\)\]\(", made)
    assert not any(line.startswith(("# heading", "- item")) for line in made.split("\n"))
    docx.Document(BytesIO(render(of(said), "docx")))


def test_a_long_career_is_one_page_where_that_can_be_read_and_more_where_not() -> None:
    work = Work(
        position="Engineer",
        name="Northwind",
        start_date="2010-01",
        end_date="2012-01",
        highlights=["Built a bridge that still stands and carries forty thousand people a day"] * 4,
    )
    for count, pages in ((2, 1), (6, 1), (30, None)):
        made = pdf.PdfDocument(render(Resume(basics=Basics(name="Ada"), work=[work] * count), "pdf"))
        assert len(made) == pages if pages is not None else len(made) > 1
        made.close()


def test_headings_and_today_are_in_the_language_of_the_resume() -> None:
    german = Resume(
        basics=Basics(summary="Ich arbeite seit zehn Jahren mit der Verwaltung und für die Stadt."),
        work=[Work(position="Sachbearbeiterin", name="Stadt Köln", start_date="2020-03")],
    )
    said = render(german, "markdown").decode()
    assert "## Berufserfahrung" in said
    assert "03/2020 – heute" in said
    english = render(
        Resume(work=[Work(position="Clerk", name="City", start_date="2020-03", end_date="2021-04")]), "markdown"
    )
    assert "Mar 2020 – Apr 2021" in english.decode()


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_resume_is_a_file_all_the_same(format: Format) -> None:
    assert isinstance(render(Resume(), format), bytes)
