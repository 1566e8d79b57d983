"""Resumes as people write them, in small: how heads of positions and studies are set, and what is found."""

from __future__ import annotations

import pytest

from windlass.apps.resumes.extraction.extract import extract
from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.structuring.rules import structure_by_rules
from windlass.apps.resumes.vocabulary.dates import find
from windlass.apps.resumes.vocabulary.headings import section_of
from windlass.apps.resumes.vocabulary.places import is_place, locate


def structured(*lines: str) -> Resume:
    return structure_by_rules(extract("\n".join(lines).encode(), "text/plain"))


@pytest.mark.parametrize(
    ("said", "first", "last"),
    [
        ("Jan 2019 - Present", "2019-01", None),
        ("01/2018 – heute", "2018-01", None),
        ("seit 03/2020", "2020-03", None),
        ("2019-21", "2019", "2021"),
        ("06.2015 - 08.2017", "2015-06", "2017-08"),
        ("01.06.2015 – 31.08.2017", "2015-06", "2017-08"),
        ("Sept. 2018 – Juin 2020", "2018-09", "2020-06"),
        ("juin 2018 à aujourd'hui", "2018-06", None),
        ("enero de 2018 – actualidad", "2018-01", None),
        ("Jun '19 - Aug '20", "2019-06", "2020-08"),
        ("Jan–May 2020", "2020-01", "2020-05"),
        ("2018/09 - 2020/06", "2018-09", "2020-06"),
        ("05/19 - 06/20", "2019-05", "2020-06"),
        ("Aug 2015 – May 2019 (3 yrs 10 mos)", "2015-08", "2019-05"),
        ("15 March 2019 - 1 April 2020", "2019-03", "2020-04"),
        ("Expected May 2025", "2025-05", "2025-05"),
        ("2015 bis 2018", "2015", "2018"),
        ("(2016 – Present)", "2016", None),
    ],
)
def test_dates_are_read_as_they_are_written(said: str, first: str, last: str | None) -> None:
    span = find(said)
    assert span is not None
    assert (span.first, span.last) == (first, last)


@pytest.mark.parametrize(
    "said", ["Managed 20,000 people", "555-2019", "$2015", "in 20 countries", "ISO 9001:2015x", "2020 - 2018"]
)
def test_what_is_no_range_is_none(said: str) -> None:
    span = find(said)
    assert span is None or not span.ranged


@pytest.mark.parametrize(
    ("said", "section"),
    [
        ("EXPERIENCE", "work"), ("Work Experience:", "work"), ("1. Berufserfahrung", "work"), ("Expérience professionnelle", "work"),
        ("Experiencia laboral", "work"), ("Esperienze lavorative", "work"), ("Skills & Interests", "skills"), ("Persönliche Daten", "contact"),
        ("Education and Certifications", "education"), ("Professional Experience (continued)", "work"), ("Software Engineer", None), ("Berlin", None),
    ],
)  # fmt: skip
def test_headings_are_known_in_several_languages(said: str, section: str | None) -> None:
    assert section_of(said) == section


def test_places_are_told_from_companies() -> None:
    assert all(
        is_place(one)
        for one in ("Berlin", "Austin, TX", "College Station, TX", "Remote", "10115 Berlin", "Zurich, Switzerland")
    )
    assert not any(
        is_place(one)
        for one in ("Acme Corp", "Google, Zurich, Switzerland", "Harbor & Pine, Seattle, WA", "Optikon, Köln")
    )
    assert locate("Musterstraße 12, 10115 Berlin, Deutschland") == {
        "postal_code": "10115",
        "city": "Berlin",
        "address": "Musterstraße 12",
        "country_code": "DE",
    }


HEADS = [
    ["Engineer\tMay 2019 – June 2021", "Northwind Ltd, London, UK"],
    ["Northwind Ltd\tLondon, UK", "Engineer\tMay 2019 – June 2021"],
    ["Engineer at Northwind Ltd", "05/2019 - 06/2021\tLondon, UK"],
    ["Northwind Ltd — Engineer (May 2019 – June 2021)"],
    ["Engineer | Northwind Ltd | London, UK | 05.2019 – 06.2021"],
    ["May 2019 – June 2021", "Engineer", "Northwind Ltd, London, UK"],
    ["Engineer", "Northwind Ltd", "London, UK", "May 2019 – June 2021"],
    ["Northwind Ltd", "Engineer", "London, UK", "05/2019 - 06/2021"],
    ["Engineer, Northwind Ltd, May 2019 – June 2021"],
    ["05/2019 – 06/2021\tEngineer, Northwind Ltd, London"],
    ["May 2019 – June 2021: Engineer – Northwind Ltd, London"],
    ["2019-05 – 2021-06", "Company: Northwind Ltd", "Position: Engineer"],
    ["• Engineer, Northwind Ltd, May 2019 – June 2021"],
    ["Northwind Ltd, London, UK", "Engineer (May 2019 - June 2021)"],
]


@pytest.mark.parametrize("head", HEADS, ids=" / ".join)
@pytest.mark.parametrize("bullet", ["- ", ""])
def test_positions_are_found_whatever_the_order_of_their_heads(head: list[str], bullet: str) -> None:
    if head[0].startswith("•") and bullet:
        head = [head[0].removeprefix("• ")]
    other = [
        one.replace("Northwind Ltd", "Fabrikam GmbH")
        .replace("2021", "2018")
        .replace("2019", "2016")
        .replace("Engineer", "Trainee")
        for one in head
    ]
    body = (
        [] if head[0].startswith("•") else [f"{bullet}built three bridges that carry forty thousand people every day."]
    )
    found = structured(
        "Ada Lovett",
        "ada@example.com",
        "",
        "Experience",
        *head,
        *body,
        *other,
        *body,
        "",
        "Education",
        "BSc Physics, University of Leeds, 2010 – 2013",
    )
    assert [(one.position, one.name, one.start_date, one.end_date) for one in found.work] == [
        ("Engineer", "Northwind Ltd", "2019-05", "2021-06"),
        ("Trainee", "Fabrikam GmbH", "2016-05", "2018-06"),
    ]


@pytest.mark.parametrize("company_first", [True, False])
def test_words_that_say_nothing_by_themselves_stand_as_in_the_other_positions(company_first: bool) -> None:
    lines: list[str] = []
    for title, company, years in (
        ("Engineer", "Northwind Ltd", "2019 – 2021"),
        ("Sherpa", "Blorptown", "2016 – 2019"),
        ("Manager", "Harbor Group", "2013 – 2016"),
    ):
        first, second = (company, title) if company_first else (title, company)
        lines += [f"{first}\t{years}", second, "- Did what was asked for."]
    found = structured("Ada Lovett", "Experience", *lines)
    assert [(one.position, one.name) for one in found.work][1] == ("Sherpa", "Blorptown")


def test_a_line_of_prose_below_a_head_tells_of_the_position() -> None:
    found = structured(
        "Ada Lovett",
        "Experience",
        "Northwind Ltd",
        "Engineer",
        "January 2019 - Present",
        "Lisbon, Portugal",
        "Leads the platform group of nine engineers and owns the roadmap",
        "for storage.",
    )
    [work] = found.work
    assert (work.position, work.name, work.location) == ("Engineer", "Northwind Ltd", "Lisbon, Portugal")
    assert "Leads the platform group" in f"{work.summary}{work.highlights}"


def test_a_label_within_a_position_is_no_heading_where_headings_are_in_capitals() -> None:
    found = structured(
        "Ada Lovett",
        "EXPERIENCE",
        "Cook",
        "Winding Stair | Dublin, Ireland | 2018 – Present",
        "Key achievements:",
        "• Menu",
        "Baker",
        "Chapter Group | London, UK | 2014 – 2018",
        "EDUCATION",
        "Diploma in Cooking, Cork College, 2010",
        "SKILLS",
        "Bread",
    )
    assert [(one.position, one.name, one.location) for one in found.work] == [
        ("Cook", "Winding Stair", "Dublin, Ireland"),
        ("Baker", "Chapter Group", "London, UK"),
    ]


@pytest.mark.parametrize(
    ("head", "position", "company", "place"),
    [
        ("Data Scientist, Netflix — Los Gatos, CA\t2020 – Present", "Data Scientist", "Netflix", "Los Gatos, CA"),
        ("KIEWIT – Tempe, AZ\t2010 – 2013", None, "KIEWIT", "Tempe, AZ"),
        ("Test Engineer\t2010 – 2013", "Test Engineer", None, None),
    ],
)
def test_a_head_of_one_line_is_taken_apart(
    head: str, position: str | None, company: str | None, place: str | None
) -> None:
    [work] = structured("Ada Lovett", "Experience", head, "- Built models for everybody.").work
    assert (work.position, work.name, work.location) == (position, company, place)


def test_several_positions_at_one_company_share_it() -> None:
    found = structured(
        "Ada Lovett", "Experience", "Northwind Ltd\tLondon, UK", "Principal Engineer\t2019 – Present", "- Led", "Senior Engineer\t2016 – 2019", "- Built", "Harbor Group\tLeeds, UK", "Engineer\t2013 – 2016", "- Tested",
    )  # fmt: skip
    assert [(one.position, one.name) for one in found.work] == [
        ("Principal Engineer", "Northwind Ltd"), ("Senior Engineer", "Northwind Ltd"), ("Engineer", "Harbor Group"),
    ]  # fmt: skip


STUDIES = [
    ["University of Leeds\t2010 – 2013", "BSc in Physics"],
    ["BSc in Physics\t2010 – 2013", "University of Leeds, Leeds, UK"],
    ["BSc Physics, University of Leeds (2010 – 2013)"],
    ["BSc Physics | University of Leeds | 2010 – 2013"],
    ["2010 – 2013", "BSc Physics", "University of Leeds"],
    ["2010 – 2013\tBSc Physics, University of Leeds"],
    ["University of Leeds, Leeds, UK — BSc Physics, 2010 - 2013"],
    ["BSc Physics at University of Leeds", "2010-2013", "Relevant coursework: Optics, Waves"],
    ["UNIVERSITY OF LEEDS\tLeeds, UK", "BSc, Physics. GPA 3.8\t2010 – 2013"],
]


@pytest.mark.parametrize("lines", STUDIES, ids=" / ".join)
def test_studies_are_found_whatever_the_order_of_their_lines(lines: list[str]) -> None:
    other = [one.replace("University of Leeds", "Technische Universität Berlin").replace("UNIVERSITY OF LEEDS", "Technische Universität Berlin").replace("Leeds,", "Berlin,").replace("BSc", "MSc").replace("2010", "2013").replace("– 2013", "– 2015").replace("- 2013", "- 2015").replace("2013-2013", "2013-2015") for one in lines]  # fmt: skip
    found = structured("Ada Lovett", "Education", *lines, *other, "Skills", "Python")
    assert [(one.study_type, one.area, (one.institution or "").lower()) for one in found.education] == [
        ("BSc", "Physics", "university of leeds"),
        ("MSc", "Physics", "technische universität berlin"),
    ]
    assert found.education[0].end_date == "2013"


def test_a_resume_of_a_german_is_read_with_its_table_of_facts() -> None:
    found = structured(
        "Lebenslauf", "Persönliche Daten", "Name:\tDr. Sabine Vogt", "Anschrift:\tLindenallee 7, 50968 Köln", "Telefon:\t0221 / 555 01 23", "Geburtsdatum:\t14.05.1983",
        "Berufliche Laufbahn", "seit 03/2019\tLeiterin Controlling, Rheinwerk GmbH, Köln", "\t- Aufbau des Berichtswesens", "07/2014 – 02/2019\tSenior Controllerin", "\tChemiewerk Leuna AG, Leipzig", "\t- Monatsabschlüsse",
        "Ausbildung", "10/2006 – 09/2011\tStudium der Betriebswirtschaftslehre, Universität Mannheim", "\tAbschluss: Diplom-Kauffrau (Note 1,7)", "Sprachen", "Deutsch Muttersprache", "Englisch verhandlungssicher (C1)",
    )  # fmt: skip
    assert found.basics.name == "Sabine Vogt"
    assert found.basics.phone == "0221 / 555 01 23"
    assert found.basics.location is not None
    assert found.basics.location.city == "Köln"
    assert [(one.position, one.name, one.start_date, one.end_date) for one in found.work] == [
        ("Leiterin Controlling", "Rheinwerk GmbH", "2019-03", None),
        ("Senior Controllerin", "Chemiewerk Leuna AG", "2014-07", "2019-02"),
    ]
    [study] = found.education
    assert (study.study_type, study.area, study.institution, study.score) == (
        "Diplom-Kauffrau",
        "Betriebswirtschaftslehre",
        "Universität Mannheim",
        "1,7",
    )
    assert [(one.language, one.fluency) for one in found.languages] == [
        ("Deutsch", "Muttersprache"),
        ("Englisch", "verhandlungssicher (C1)"),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "\n\n",
        "a",
        "Experience",
        "Experience\nEducation\nSkills",
        "2019 – 2020\n" * 300,
        "• \n" * 50,
        "x\t" * 500,
        "Ada Lovett\n" * 2000,
        "a" * 190_000,
        "Experience\n" + "a" * 190_000,
        "Experience\nEngineer, Acme, 2019 - 2020\n" + "- a b c\n" * 20_000,
    ],
)
def test_any_text_gives_a_resume(said: str) -> None:
    structured("Ada", said)


def test_skills_in_a_line_of_their_own_are_read_where_no_heading_tells_of_them() -> None:
    resume = structured(
        "Mia Quillfeather",
        "mia@quill.example · 555-0142 · Austin, TX",
        "",
        "Education",
        "B.A. in Psychology, University of Texas at Austin, May 2013",
        "",
        "Skills: Figma, usability testing, HTML/CSS",
        "",
        "Certifications",
        "Certified Kubernetes Administrator (CKA), CNCF, 2022",
        "Scrum Master (2021)",
    )
    assert [skill.name for skill in resume.skills] == ["Figma", "usability testing", "HTML/CSS"]
    assert [(one.name, one.issuer, one.date) for one in resume.certificates] == [
        ("Certified Kubernetes Administrator (CKA)", "CNCF", "2022"),
        ("Scrum Master", None, "2021"),
    ]
    assert resume.basics.phone == "555-0142"
    assert [one.institution for one in resume.education] == ["University of Texas at Austin"]
