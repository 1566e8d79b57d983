"""Resumes of many layouts, languages and producers: how much of each field is found. Printed with `-s`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apps.resumes.printing import printer
from tests.apps.resumes.samples.accuracy import Accuracy
from tests.apps.resumes.samples.made import Sample, samples
from windlass.apps.resumes.extraction.extract import extract
from windlass.apps.resumes.structuring.rules import structure_by_rules

CONTACT, POSITIONS, EDUCATION = 0.95, 0.80, 0.85


@pytest.fixture(scope="module")
def made() -> Iterator[list[Sample]]:
    with printer() as printed:
        yield [*samples(printed, held_out=False), *samples(printed, held_out=True)]


@pytest.mark.timeout(60)
def test_contact_positions_and_education_are_found_in_resumes_of_all_kinds(made: list[Sample]) -> None:
    seen, held_out = Accuracy(), Accuracy()
    for sample in made:
        found = structure_by_rules(extract(sample.data, sample.media_type))
        (held_out if sample.held_out else seen).add(
            sample.name, sample.person, found, dates=sample.name.split(" / ")[-1]
        )
    print(f"\nseen\n{seen.table()}\nheld out\n{held_out.table()}")  # noqa: T201  # what this test is for
    assert len(made) >= 60
    for accuracy in (seen, held_out):
        assert accuracy.of("name", "email", "phone", "place", "links") >= CONTACT, accuracy.wrong
        assert accuracy.of("title", "company", "start", "end") >= POSITIONS, accuracy.wrong
        assert accuracy.of("school", "degree", "area", "graduated") >= EDUCATION, accuracy.wrong
        assert accuracy.of("skills", "languages", "certificates") >= POSITIONS, accuracy.wrong
