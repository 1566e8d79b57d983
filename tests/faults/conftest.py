"""What the trials share: a place for worker processes on every store."""

from __future__ import annotations

import sys
from collections.abc import Callable
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


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Say a figure on the screen, also when the test passes."""

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return say
