"""A resume as data: JSON Resume, the open schema, as strict models. What they accept, the schema accepts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

DATE = r"^([1-2][0-9]{3}-[0-1][0-9]-[0-3][0-9]|[1-2][0-9]{3}-[0-1][0-9]|[1-2][0-9]{3})$"
"""ISO 8601 in which month and day may be missing"""
EMAIL = r"^[^\s@<>\"(),:;]+@[^\s@<>\"(),:;]+\.[^\s@<>\"(),:;.]+$"
URL = r"^[a-z][a-z0-9+.-]*:[^\s<>\"{}|\\^`]+$"

Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Date = Annotated[str, StringConstraints(pattern=DATE)]
Email = Annotated[str, StringConstraints(pattern=EMAIL, max_length=320)]
Url = Annotated[str, StringConstraints(pattern=URL, max_length=2_000)]
Texts = Annotated[list[Text], Field(max_length=1_000)]


class Part(BaseModel):
    """Any part of a resume: frozen, and nothing in it that the schema does not name."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", strict=True, frozen=True)


class Location(Part):
    address: Text | None = None
    postal_code: Text | None = None
    city: Text | None = None
    country_code: Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")] | None = None
    region: Text | None = None


class Profile(Part):
    network: Text | None = None
    username: Text | None = None
    url: Url | None = None


class Basics(Part):
    name: Text | None = None
    label: Text | None = None
    email: Email | None = None
    phone: Text | None = None
    url: Url | None = None
    summary: Text | None = None
    location: Location | None = None
    profiles: list[Profile] = []


class Work(Part):
    """One position. Without an end it lasts."""

    name: Text | None = None
    """the company"""
    location: Text | None = None
    description: Text | None = None
    position: Text | None = None
    url: Url | None = None
    start_date: Date | None = None
    end_date: Date | None = None
    summary: Text | None = None
    highlights: Texts = []


class Volunteer(Part):
    organization: Text | None = None
    position: Text | None = None
    url: Url | None = None
    start_date: Date | None = None
    end_date: Date | None = None
    summary: Text | None = None
    highlights: Texts = []


class Education(Part):
    institution: Text | None = None
    url: Url | None = None
    area: Text | None = None
    study_type: Text | None = None
    """the degree"""
    start_date: Date | None = None
    end_date: Date | None = None
    score: Text | None = None
    courses: Texts = []


class Award(Part):
    title: Text | None = None
    date: Date | None = None
    awarder: Text | None = None
    summary: Text | None = None


class Certificate(Part):
    name: Text | None = None
    date: Date | None = None
    url: Url | None = None
    issuer: Text | None = None


class Publication(Part):
    name: Text | None = None
    publisher: Text | None = None
    release_date: Date | None = None
    url: Url | None = None
    summary: Text | None = None


class Skill(Part):
    name: Text | None = None
    level: Text | None = None
    keywords: Texts = []


class Language(Part):
    language: Text | None = None
    fluency: Text | None = None


class Interest(Part):
    name: Text | None = None
    keywords: Texts = []


class Reference(Part):
    name: Text | None = None
    reference: Text | None = None


class Project(Part):
    name: Text | None = None
    description: Text | None = None
    highlights: Texts = []
    keywords: Texts = []
    start_date: Date | None = None
    end_date: Date | None = None
    url: Url | None = None
    roles: Texts = []
    entity: Text | None = None
    type: Text | None = None


class Resume(Part):
    """A whole resume."""

    basics: Basics = Basics()
    work: list[Work] = []
    volunteer: list[Volunteer] = []
    education: list[Education] = []
    awards: list[Award] = []
    certificates: list[Certificate] = []
    publications: list[Publication] = []
    skills: list[Skill] = []
    languages: list[Language] = []
    interests: list[Interest] = []
    references: list[Reference] = []
    projects: list[Project] = []

    def as_json(self) -> dict[str, Any]:
        """JSON Resume, without what is empty."""
        plain: dict[str, Any] = _without_empty(self.model_dump(mode="json", by_alias=True, exclude_none=True))
        return plain

    @staticmethod
    def of(given: dict[str, Any]) -> Resume:
        """The resume that `as_json` gave; pydantic's ValidationError where it is none."""
        return Resume.model_validate(given)


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        kept = {name: _without_empty(one) for name, one in members.items()}
        return {name: one for name, one in kept.items() if one not in ({}, [])}
    if isinstance(value, list):
        return [_without_empty(one) for one in cast("Iterable[Any]", value)]
    return value
