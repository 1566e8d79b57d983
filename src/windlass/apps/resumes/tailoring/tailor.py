"""A tailored resume: what is there, in the order that suits a job description. Nothing is invented or reworded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from windlass.apps.resumes.resume import Project, Resume, Skill, Work
from windlass.apps.resumes.scoring.wanted import wanted_in
from windlass.apps.resumes.scoring.words import Said, language_of, same_as

_POINTS = (6, 5, 4, 3)
"""that the latest positions keep; older ones keep as many as the last of these"""
_PROJECTS = 4
_IN_A_GROUP = 14
_GROUPS = 30
_Item = TypeVar("_Item")


def tailor(resume: Resume, job_description: str, company: str | None = None) -> Resume:
    """The same facts, ordered and selected: every value of the answer is a value of the resume.

    Positions, studies and certificates all stay, positions and studies in their order; points, skills and projects
    that suit the description come first, and where there are many the others are left out. References are left out.
    """
    worth = _Worth(resume, job_description, company)
    return resume.model_copy(
        update={
            "work": [_work(work, at, worth) for at, work in enumerate(resume.work)],
            "skills": [
                _skill(skill, worth) for skill in _best(resume.skills, lambda one: _of_skill(one, worth), _GROUPS)
            ],
            "projects": [
                _project(one, worth) for one in _best(resume.projects, lambda one: _of_project(one, worth), _PROJECTS)
            ],
            "certificates": _best(resume.certificates, lambda one: worth.of(one.name or ""), len(resume.certificates)),
            "publications": _best(resume.publications, lambda one: worth.of(one.name or ""), 5),
            "interests": _best(resume.interests, lambda one: worth.of(one.name or ""), 6),
            "references": [],
        }
    )


class _Worth:
    """How much of what is wanted a text has; what is a must counts twice."""

    def __init__(self, resume: Resume, description: str, company: str | None) -> None:
        self._wanted = [(same_as(one.word), 2.0 if one.needed else 1.0) for one in wanted_in(description)]
        if company:
            self._wanted.append(((company.lower(),), 1.0))
        said = " ".join([resume.basics.summary or "", *(point for work in resume.work for point in work.highlights)])
        self._languages = (language_of(said), language_of(description))

    def of(self, *texts: str) -> float:
        said = Said.of(list(texts), self._languages)
        return sum(worth for names, worth in self._wanted if any(said.has(name) for name in names))


def _best(items: Sequence[_Item], worth: Callable[[_Item], float], most: int) -> list[_Item]:
    """Those that suit best first; of equals, in the order in which they were."""
    return sorted(items, key=lambda one: -worth(one))[:most]


def _work(work: Work, at: int, worth: _Worth) -> Work:
    most = _POINTS[min(at, len(_POINTS) - 1)]
    return work.model_copy(update={"highlights": _best(work.highlights, worth.of, most)})


def _of_skill(skill: Skill, worth: _Worth) -> float:
    return worth.of(skill.name or "", *skill.keywords)


def _skill(skill: Skill, worth: _Worth) -> Skill:
    return skill.model_copy(update={"keywords": _best(skill.keywords, worth.of, _IN_A_GROUP)})


def _of_project(project: Project, worth: _Worth) -> float:
    return worth.of(project.name or "", project.description or "", *project.highlights, *project.keywords)


def _project(project: Project, worth: _Worth) -> Project:
    return project.model_copy(update={"highlights": _best(project.highlights, worth.of, 3)})
