"""What becomes of jobs whose type only some workers know: they wait for those."""

from __future__ import annotations

import pytest

from tests.faults.passing import passed
from windlass.chaos.place import Place

pytestmark = pytest.mark.timeout(120)


async def test_a_job_whose_type_no_worker_knows_waits_for_one_that_does(spot: Place) -> None:
    await passed("M21", spot)
