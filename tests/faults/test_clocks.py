"""What becomes of jobs when clocks are wrong: nothing, for leases and due times are the store's."""

from __future__ import annotations

import pytest

from tests.faults.passing import passed
from windlass.chaos.place import Place

pytestmark = pytest.mark.timeout(120)


async def test_no_clock_makes_a_job_early_or_run_twice_under_its_lease(spot: Place) -> None:
    await passed("M12", spot)
