"""How a resume says it: headings, months, dates, the heads of positions and studies, as lines of left and right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tests.apps.resumes.samples.people import Job, Person, Study

HEADINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "summary": ("Summary", "Professional Profile", "About Me", "Objective"), "work": ("Experience", "Work Experience", "Employment History", "Professional Experience"),
        "education": ("Education", "Education & Training", "Academic Background"), "skills": ("Skills", "Technical Skills", "Core Competencies"),
        "languages": ("Languages", "Language Skills"), "certificates": ("Certifications", "Licenses & Certifications"), "projects": ("Projects", "Personal Projects"),
        "contact": ("Contact", "Contact Details"),
    },
    "de": {
        "summary": ("Profil", "Kurzprofil", "Über mich"), "work": ("Berufserfahrung", "Beruflicher Werdegang", "Praktische Erfahrung"),
        "education": ("Ausbildung", "Bildungsweg", "Studium und Ausbildung"), "skills": ("Kenntnisse", "Fähigkeiten und Kenntnisse", "IT-Kenntnisse"),
        "languages": ("Sprachen", "Sprachkenntnisse"), "certificates": ("Zertifikate", "Weiterbildung"), "projects": ("Projekte",), "contact": ("Kontakt", "Persönliche Daten"),
    },
    "fr": {
        "summary": ("Profil", "À propos"), "work": ("Expérience professionnelle", "Expériences professionnelles", "Parcours professionnel"), "education": ("Formation", "Formations", "Études"),
        "skills": ("Compétences", "Compétences techniques"), "languages": ("Langues",), "certificates": ("Certifications", "Certificats"), "projects": ("Projets", "Projets personnels"), "contact": ("Contact", "Coordonnées"),
    },
    "es": {
        "summary": ("Perfil profesional", "Resumen", "Sobre mí"), "work": ("Experiencia laboral", "Experiencia profesional", "Experiencia"), "education": ("Formación académica", "Educación", "Estudios"),
        "skills": ("Habilidades", "Competencias", "Conocimientos informáticos"), "languages": ("Idiomas",), "certificates": ("Certificaciones", "Cursos"), "projects": ("Proyectos",), "contact": ("Contacto", "Datos personales"),
    },
}  # fmt: skip
MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
SHORT = {
    "en": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "de": "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
    "fr": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "es": "ene. feb. mar. abr. may. jun. jul. ago. sept. oct. nov. dic.",
}
NOW = {
    "en": ("Present", "Current"),
    "de": ("heute", "Heute"),
    "fr": ("aujourd'hui", "Présent"),
    "es": ("actualidad", "Actualidad"),
}
AT = {"en": "at", "de": "bei", "fr": "chez", "es": "—"}
IN = {"en": "in", "de": "in", "fr": "en", "es": "en"}
Pair: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Choices of one resume."""

    heading: int = 0
    upper: bool = False
    dates: str = "long"
    """long, short, numbers, points, iso, years"""
    dash: str = " – "
    head: str = "title|dates"
    study: str = "school|dates"


def heading(person: Person, section: str, wording: Wording) -> str:
    names = HEADINGS[person.language][section]
    said = names[wording.heading % len(names)]
    return said.upper() if wording.upper else said


def when(person: Person, at: tuple[int, int] | None, wording: Wording) -> str:
    names = NOW[person.language]
    if at is None:
        return names[wording.heading % 2]
    year, month = at
    match wording.dates:
        case "long":
            return f"{MONTHS[person.language].split()[month - 1]}{' de ' if person.language == 'es' else ' '}{year}"
        case "short":
            return f"{SHORT[person.language].split()[month - 1]} {year}"
        case "numbers":
            return f"{month:02}/{year}"
        case "points":
            return f"{month:02}.{year}"
        case "iso":
            return f"{year}-{month:02}"
        case _:
            return str(year)


def dates(person: Person, job: Job, wording: Wording) -> str:
    return f"{when(person, job.start, wording)}{wording.dash}{when(person, job.end, wording)}"


def head(person: Person, job: Job, wording: Wording) -> list[Pair]:
    """The lines above what is told of a position: left and right."""
    said = dates(person, job, wording)
    match wording.head:
        case "title|dates":
            return [(job.title, said), (f"{job.company}, {job.place}", "")]
        case "company|place":
            return [(job.company, job.place), (job.title, said)]
        case "title at company":
            return [(f"{job.title} {AT[person.language]} {job.company}", ""), (said, job.place)]
        case "company - title (dates)":
            return [(f"{job.company} — {job.title} ({said})", "")]
        case "pipes":
            return [(f"{job.title} | {job.company} | {job.place} | {said}", "")]
        case "dates first":
            return [(said, ""), (job.title, ""), (f"{job.company}, {job.place}", "")]
        case "dates last":
            return [(job.title, ""), (job.company, ""), (said, job.place)]
        case "title, company":
            return [(f"{job.title}, {job.company}", said)]
        case "company|dates":
            return [(job.company, said), (job.title, job.place)]
        case "company (place)|dates":
            return [(f"{job.company} ({job.place})", said), (job.title, "")]
        case _:
            return [(f"{said}: {job.title}", ""), (job.company, job.place)]


def study_head(person: Person, study: Study, wording: Wording) -> list[Pair]:
    years = f"{study.start}{wording.dash}{study.end}"
    degree = (
        f"{study.degree} {IN[person.language]} {study.area}"
        if person.language == "en"
        else f"{study.degree} {study.area}"
    )
    match wording.study:
        case "school|dates":
            return [(study.school, years), (degree, "")]
        case "degree|dates":
            return [(degree, years), (f"{study.school}, {study.place}", "")]
        case "one line":
            return [(f"{degree}, {study.school} ({years})", "")]
        case "pipes":
            return [(f"{degree} | {study.school} | {study.end}", "")]
        case "school|place":
            return [(study.school, study.place), (degree, str(study.end))]
        case _:
            return [(years, ""), (degree, ""), (study.school, "")]


def skill_lines(person: Person, *, grouped: bool) -> list[str]:
    if grouped:
        return [f"{name}: {', '.join(words)}" for name, words in person.skills]
    return [", ".join(word for _, words in person.skills for word in words)]


def spoken_lines(person: Person) -> list[str]:
    return [f"{name} ({level})" for name, level in person.spoken]


def lists(person: Person, wording: Wording) -> Iterator[tuple[str, list[str]]]:
    """The shorter sections: heading and lines."""
    yield heading(person, "skills", wording), skill_lines(person, grouped=wording.heading % 2 == 0)
    yield heading(person, "languages", wording), spoken_lines(person)
    if person.certificates:
        yield (
            heading(person, "certificates", wording),
            [f"{name}, {by}, {year}" for name, by, year in person.certificates],
        )
