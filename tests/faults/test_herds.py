"""What comes back after everything failed at once: not everything at once."""

from __future__ import annotations

import pytest

from tests.faults.passing import passed
from windlass.chaos.place import Place

pytestmark = pytest.mark.timeout(120)


async def test_what_failed_together_does_not_come_back_together(spot: Place) -> None:
    await passed("M20", spot)
