"""What becomes of jobs when the disk of their store is full for a while: nothing that was acknowledged is lost."""

from __future__ import annotations

import pytest

from tests.faults.passing import passed
from windlass.chaos.place import Place

pytestmark = pytest.mark.timeout(120)


async def test_a_full_disk_is_told_of_and_loses_nothing(spot: Place) -> None:
    await passed("M13", spot)
