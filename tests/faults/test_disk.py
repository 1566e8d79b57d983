"""What becomes of jobs when the disk of their store is full for a while: nothing that was acknowledged is lost."""

from __future__ import annotations

import sys

import pytest

from tests.faults.disk import DiskNotOurs
from tests.faults.passing import passed
from windlass.chaos.place import Place

pytestmark = pytest.mark.timeout(120)


async def test_a_full_disk_is_told_of_and_loses_nothing(spot: Place) -> None:
    try:
        await passed("M13", spot)
    except DiskNotOurs as error:
        # Past what pytest holds back: whoever runs this without root is to read it.
        print(f"\n{error}\n", file=sys.__stderr__)
