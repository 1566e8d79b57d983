"""How much of what a resume says was found, field by field."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from tests.apps.resumes.samples.people import Person
from windlass.apps.resumes.resume import Resume


@dataclass(slots=True)
class Accuracy:
    right: Counter[str] = field(default_factory=Counter[str])
    asked: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])

    def of(self, *fields: str) -> float:
        return sum(self.right[one] for one in fields) / max(1, sum(self.asked[one] for one in fields))

    def table(self) -> str:
        return "\n".join(
            f"{one:<14} {self.right[one]:>4} of {self.asked[one]:>4}  {self.right[one] / self.asked[one]:>6.1%}"
            for one in self.asked
        )

    def note(self, name: str, what: str, expected: object, found: object) -> None:
        self.asked[what] += 1
        if _same(str(expected), str(found)):
            self.right[what] += 1
        else:
            self.wrong.append(f"{name}: {what}: expected {expected!r}, found {found!r}")

    def add(self, name: str, person: Person, found: Resume, *, dates: str) -> None:
        basics = found.basics
        self.note(name, "name", person.name, basics.name)
        self.note(name, "email", person.email, basics.email)
        self.note(name, "phone", re.sub(r"\D", "", person.phone), re.sub(r"\D", "", basics.phone or ""))
        city = re.split(r",", person.place)[0]
        self.note(name, "place", city, basics.location.city if basics.location else None)
        self.note(name, "links", len(person.links), len(basics.profiles))
        for at, job in enumerate(person.jobs):
            work = found.work[at] if at < len(found.work) else None
            self.note(name, "title", job.title, work and work.position)
            self.note(name, "company", job.company, work and work.name)
            self.note(name, "start", _date(job.start, dates), work and work.start_date)
            self.note(name, "end", None if job.end is None else _date(job.end, dates), work and work.end_date)
            self.note(name, "points", len(job.points), len(work.highlights) if work else None)
        self.note(name, "positions", len(person.jobs), len(found.work))
        for at, study in enumerate(person.studies):
            learned = found.education[at] if at < len(found.education) else None
            self.note(name, "school", study.school, learned and learned.institution)
            self.note(name, "degree", study.degree, learned and learned.study_type)
            self.note(name, "area", study.area, learned and learned.area)
            self.note(name, "graduated", study.end, learned and (learned.end_date or "")[:4])
        self.note(name, "studies", len(person.studies), len(found.education))
        words = {word.casefold() for skill in found.skills for word in (*skill.keywords, skill.name or "")}
        for _, several in person.skills:
            for word in several:
                self.note(name, "skills", True, word.casefold() in words)
        spoken = {(one.language or "").casefold(): (one.fluency or "").casefold() for one in found.languages}
        for language, level in person.spoken:
            self.note(name, "languages", level, spoken.get(language.casefold()))
        certified = {one.name for one in found.certificates}
        for certificate, _, _ in person.certificates:
            self.note(name, "certificates", True, certificate in certified)


def _date(at: tuple[int, int], dates: str) -> str:
    return str(at[0]) if dates == "years" else f"{at[0]}-{at[1]:02}"


def _same(expected: str, found: str) -> bool:
    return " ".join(expected.casefold().split()) == " ".join(found.casefold().split())
