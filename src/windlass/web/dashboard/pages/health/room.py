"""Health: every check of `windlass doctor`, the worst first, with what to do about it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.client.checking import Level
from windlass.web.dashboard.room import Needs, Page, Rail, Room

if TYPE_CHECKING:
    from windlass.web.dashboard.visit import Visit

_AGE = timedelta(seconds=10)
_WORST = (Level.FAIL, Level.WARN, Level.PASS)
_TONES = {
    Level.PASS: ("good", "succeeded", "all is well"),
    Level.WARN: ("warn", "failed", "something wants to be looked at"),
    Level.FAIL: ("bad", "cancelled", "something is wrong"),
}


async def show(visit: Visit) -> dict[str, Any]:
    """The checks; viewers share those of the last seconds."""
    found = await visit.app.health.examined(max_age=_AGE)
    checks = sorted(found.checks, key=lambda one: _WORST.index(one.level))
    counts = Counter(one.level for one in checks)
    worst = next((level for level in _WORST if counts[level]), Level.PASS)
    return {
        "checks": checks,
        "found": found,
        "tones": _TONES,
        "worst": _TONES[worst],
        "counts": [(level, counts[level]) for level in _WORST if counts[level]],
        "every": 15,
        "stream": "",
    }


ROOM = Room(
    name="health",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/health",
            title="Health",
            template="health.html",
            show=show,
            needs=Needs.ADMIN,
            rail=Rail(word="Health", icon="M3 10h3.5L9 4.5l3 11 2-5.5h3", order=90, key="h"),
        ),
    ),
)
