"""The words that a rendered resume adds to its data: headings and "today", in the resume's own language."""

from __future__ import annotations

from dataclasses import dataclass

from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.scoring.words import language_of

_NAMES = (
    "summary",
    "work",
    "education",
    "skills",
    "projects",
    "certificates",
    "languages",
    "volunteer",
    "awards",
    "publications",
    "interests",
    "now",
    "grade",
)
_SAID = {
    "english": "Summary|Experience|Education|Skills|Projects|Certificates|Languages|Volunteering|Awards|Publications|Interests|present|Grade",
    "german": "Profil|Berufserfahrung|Ausbildung|Kenntnisse|Projekte|Zertifikate|Sprachen|Ehrenamt|Auszeichnungen|Veröffentlichungen|Interessen|heute|Note",
    "french": "Profil|Expérience professionnelle|Formation|Compétences|Projets|Certifications|Langues|Bénévolat|Distinctions|Publications|Centres d’intérêt|aujourd’hui|Note",
    "spanish": "Perfil|Experiencia|Formación|Competencias|Proyectos|Certificados|Idiomas|Voluntariado|Premios|Publicaciones|Intereses|actualidad|Nota",
}
_MONTHS = {
    "english": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
}


@dataclass(frozen=True, slots=True)
class Wording:
    language: str
    said: dict[str, str]

    def span(self, first: str | None, last: str | None, *, lasting: bool = False) -> str:
        """From when to when; `lasting` where no end means that it goes on."""
        ends = [self.date(one) for one in (first, last) if one]
        if first and not last and lasting:
            ends.append(self.said["now"])
        return " – ".join(dict.fromkeys(ends))

    def date(self, date: str) -> str:
        year, _, rest = date.partition("-")
        if not rest:
            return year
        month = int(rest[:2])
        names = _MONTHS.get(self.language)
        return f"{names[month - 1]} {year}" if names and 1 <= month <= 12 else f"{rest[:2]}/{year}"


def wording_of(resume: Resume) -> Wording:
    """In the language in which a resume is written, or English."""
    told = [resume.basics.summary or ""]
    for work in resume.work:
        told += [work.summary or "", *work.highlights]
    language = language_of(" ".join(told))
    chosen = language if language in _SAID else "english"
    return Wording(chosen, dict(zip(_NAMES, _SAID[chosen].split("|"), strict=True)))
