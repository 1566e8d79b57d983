"""What becomes of one SQLite file that many processes write while some of them are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.matrix import ROWS
from tests.faults.passing import passed
from tests.faults.proof import ProvenBy
from windlass.chaos.place import Place

pytestmark = pytest.mark.timeout(120)


async def test_nobody_is_told_that_the_file_is_locked_and_it_stays_whole(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db?synchronous=NORMAL"
    await passed("M15", Place(url=url, namespace="windlass", folder=tmp_path / "trial"))


async def test_the_tests_that_rows_name_exist() -> None:
    named = [row.run for row in ROWS.values() if isinstance(row.run, ProvenBy)]
    assert named
    for one in named:
        code, said = await one.carried_out("--collect-only")
        assert code == 0, said
