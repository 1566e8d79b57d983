"""What the trials share: a place for worker processes on every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.places import Place
from tests.control.conftest import address
from windlass.chaos.place import Place as Spot


@pytest.fixture
def spot(place: Place, tmp_path: Path) -> Spot:
    """The test's own place, as worker processes find it."""
    url, namespace = address(place)
    return Spot(url=url, namespace=namespace, folder=tmp_path / "trial")
