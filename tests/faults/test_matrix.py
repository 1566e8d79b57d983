"""The fault matrix, short: what becomes of jobs when workers, servers, networks, disks or clocks fail. Nothing.

Each trial also meets the mistakes that it must catch, and is worth nothing if it does not.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.disk import DiskNotOurs
from tests.faults.matrix import ROWS
from tests.faults.trials import SHORT, figures, missed, mistakes, seed_of, tried

pytestmark = pytest.mark.timeout(150)


@pytest.mark.parametrize(("number", "store"), SHORT)
async def test_nothing_is_lost(number: str, store: str, tell: Callable[[str], None]) -> None:
    seed = seed_of(store)
    try:
        finding, _ = await tried(ROWS[number], store, seed, long=False)
        if finding.open:  # as on a busy machine: it did no harm, but shows nothing either
            finding, _ = await tried(ROWS[number], store, seed + 1, long=False)
    except DiskNotOurs as error:
        pytest.skip(str(error))  # a small disk can be mounted by root alone
    tell(f"{number} on {store}, seed {seed}: {figures(finding)}")
    assert finding.good, f"{number} on {store}, seed {seed}: {finding.told()}"


@pytest.mark.parametrize(("number", "control", "store"), mistakes())
async def test_a_mistake_made_on_purpose_is_caught(number: str, control: str, store: str) -> None:
    try:
        found = await missed(ROWS[number], store, control)
    except DiskNotOurs as error:
        pytest.skip(str(error))  # as above
    assert not found, f"{control} was not caught by {number} on {store}: {found}"


def test_the_tests_that_rows_name_exist() -> None:
    proofs = [row.proof for row in ROWS.values() if row.proof]
    assert proofs
    for proof in proofs:
        assert proof.tests(), f"{proof.file} has no test of {proof.words!r}"


def test_every_row_has_a_mistake_to_catch() -> None:
    assert [row.number for row in ROWS.values() if not (row.controls or row.proof or row.long_only)] == []
