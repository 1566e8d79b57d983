"""What becomes of ticks when five workers race for them: one job each, and none is forgotten."""

from __future__ import annotations

import pytest

from tests.faults.passing import passed
from windlass.chaos.place import Place

pytestmark = pytest.mark.timeout(120)


async def test_every_tick_makes_one_job_whoever_is_frozen_or_killed(spot: Place) -> None:
    await passed("M19", spot)
