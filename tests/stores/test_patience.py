"""The waits between the tries of one call: they grow, are cut, and are a matter of chance."""

from __future__ import annotations

import asyncio
import random

import pytest

from windlass.stores.patience import Patience


async def test_waits_double_up_to_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, float]] = []

    def note(low: float, high: float) -> float:
        asked.append((low, high))
        return 0.0

    monkeypatch.setattr(random, "uniform", note)
    patience = Patience()
    for _ in range(6):
        await patience.pause()
    assert asked == [(0, 0.1), (0, 0.2), (0, 0.4), (0, 0.8), (0, 1.0), (0, 1.0)]


async def test_it_waits_as_long_as_chance_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(_: float, most: float) -> float:
        return most / 2

    monkeypatch.setattr(random, "uniform", half)
    begun = asyncio.get_running_loop().time()
    await Patience().pause()
    assert asyncio.get_running_loop().time() - begun >= 0.049
