"""`script/bench --scale`: the tests of `tests/scale` at length, counted in the same way."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import Figure
from tests.contract.places import open_place
from tests.scale.fleet import CLAIMS, IDLE, PROMOTES, Fleet
from tests.scale.lines import EACH, EACH_OF_ITS_OWN, OWN, Line, pass_by_own
from tests.scale.scenes import SCENES, Scene, costs
from tests.support.work import metered

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from tests.contract.places import Place
    from windlass.stores.contract import Store

FEW = 100
GROWTH = 3.0
"""from a hundred to a million an index grows by two levels"""


@dataclass(frozen=True, slots=True)
class Size:
    """How many, at length and for a first look."""

    full: int
    quick: int


_OF = {
    "empty queues": Size(5_000, 1_000),
    "finished jobs": Size(1_000_000, 20_000),
}
_ELSE = Size(10_000, 2_000)
_PUT_ASIDE = Size(100_000, 5_000)
_IDLE_WORKERS = Size(100, 20)
_JOBS = Size(200, 50)
_WORKERS = 20
_SECONDS = Size(20, 5)


async def measure_scale(name: str, *, quick: bool, only: Sequence[str]) -> AsyncGenerator[Figure, None]:
    """Every figure of one store, or those of the scenes whose name holds one of these words."""

    def wanted(what: str) -> bool:
        return not only or any(word in what for word in only)

    def of(size: Size) -> int:
        return size.quick if quick else size.full

    with tempfile.TemporaryDirectory(prefix="windlass-scale-") as folder:
        for number, scene in enumerate(SCENES):
            if wanted(scene.name):
                async with open_place(name, _room(folder, number)) as place:
                    for figure in await _growth(place, scene, of(_OF.get(scene.name, _ELSE))):
                        yield figure
        if wanted("a full limit"):
            async with open_place(name, _room(folder, "aside")) as place:
                for figure in await _put_aside(place, of(_PUT_ASIDE)):
                    yield figure
        for kind in OWN:
            if wanted(kind):
                async with open_place(name, _room(folder, kind)) as place:
                    yield await _put_aside_by_own(place, kind, of(_ELSE))
        if wanted("workers"):
            async with open_place(name, _room(folder, "fleet")) as place:
                for figure in await _one_job(place, of(_JOBS)):
                    yield figure
            async with open_place(name, _room(folder, "idle")) as place:
                yield await _idle(place, of(_IDLE_WORKERS), of(_SECONDS))


def _room(folder: str, name: object) -> Path:
    room = Path(folder) / str(name)
    room.mkdir()
    return room


async def _growth(place: Place, scene: Scene, many: int) -> list[Figure]:
    store = await _opened(place)
    try:
        async with metered(place, store) as meter:
            await scene.fill(store, range(FEW))
            before = await costs(store, meter, scene.lives)
            await scene.fill(store, range(FEW, many))
            after = await costs(store, meter, scene.lives)
            return [
                Figure(
                    name=f"{many:,} {scene}: {call}",
                    value=after[call].total,
                    unit=meter.unit,
                    most=scene.most(call, work, many - FEW, meter, GROWTH) + meter.slack,
                    told={f"beside {FEW}": work.total},
                )
                for call, work in before.items()
            ]
    finally:
        await store.close()


async def _put_aside(place: Place, many: int) -> list[Figure]:
    store = await _opened(place)
    try:
        async with metered(place, store) as meter:
            line = Line(store, meter)
            await line.begin()
            await line.pass_by(FEW)
            before = await line.claim()
            cost, claims = await line.pass_by(many)
            first = await line.claim()
            await meter.settle()
            after = await line.claim()
            most = EACH[store.capabilities.store]
            told = {"claims": float(len(claims)), "said more": float(sum(claimed.more for claimed in claims))}
            name = f"{many:,} of a full limit"
            return [
                Figure(name=f"{name}: put one aside", value=cost / many, unit=meter.unit, most=most, told=told),
                # Until it is vacuumed, an index still has what it had of those put aside: about a hundred on each page.
                Figure(
                    name=f"{name}: the claim after",
                    value=first.total,
                    unit=meter.unit,
                    most=before.total * GROWTH + 2 * meter.slack + many / 100,
                    told={f"beside {FEW}": before.total},
                ),
                Figure(
                    name=f"{name}: the claim after that, the server having cleaned up",
                    value=after.total,
                    unit=meter.unit,
                    most=before.total * GROWTH + 2 * meter.slack,
                    told={f"beside {FEW}": before.total},
                ),
            ]
    finally:
        await store.close()


async def _put_aside_by_own(place: Place, kind: str, many: int) -> Figure:
    store = await _opened(place)
    try:
        async with metered(place, store) as meter:
            work, claims = await pass_by_own(store, meter, kind, range(many))
            most = EACH_OF_ITS_OWN[store.capabilities.store]
            name, told = f"{many:,} {kind}, a job before each: put one aside", {"claims": float(len(claims))}
            return Figure(name=name, value=work.total / many, unit=meter.unit, most=most, told=told)
    finally:
        await store.close()


async def _one_job(place: Place, jobs: int) -> list[Figure]:
    await _made(place)
    fleet = Fleet(place, polls=False)
    async with fleet.working(_WORKERS) as client:
        spent = await fleet.one_by_one(client, jobs)
    asked = {"claim": ("jobs.claim", CLAIMS), "promote": ("jobs.promote", PROMOTES)}
    return [
        Figure(name=f"{_WORKERS} workers, one job: {call}", value=spent[of] / jobs, unit="calls", most=most)
        for call, (of, most) in asked.items()
    ]


async def _idle(place: Place, workers: int, seconds: int) -> Figure:
    """By the intervals that workers have by default."""
    await _made(place)
    fleet = Fleet(place, faster=1)
    async with fleet.working(workers):
        spent, passed = await fleet.idle(seconds)
    told = {name: count / passed for name, count in spent.most_common(5)}
    value = spent.total() / passed
    return Figure(name=f"{workers} idle workers", value=value, unit="calls/s", most=IDLE * workers, told=told)


async def _opened(place: Place) -> Store:
    store = place.store()
    await store.open()
    return store


async def _made(place: Place) -> None:
    """Its tables are there before many ask for them at once."""
    await (await _opened(place)).close()
