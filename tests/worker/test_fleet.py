"""Which of many workers follow a notice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.apps import app_at, nothing_left
from tests.support.until import until
from windlass import Windlass
from windlass.stores.contract import ANYTHING, LANES, About, Notice, Peer
from windlass.worker.fleet import BACKUPS, FEW, MANY, Fleet, turn
from windlass.worker.worker import Worker

COUNTS = st.integers(1, 40)
DRAWS = st.integers(0, 2**24 - 1)


def claimable(n: int = 1, draw: int = 0, queue: str | None = None) -> Notice:
    return Notice(About.CLAIMABLE, queue, n, draw)


@given(size=COUNTS, n=COUNTS, draw=DRAWS)
def test_as_many_look_at_once_as_there_are_jobs_and_one_or_two_a_moment_later(size: int, n: int, draw: int) -> None:
    turns = [turn(place, size, claimable(n, draw)) for place in range(size)]
    if size <= FEW:
        assert turns == [0.0] * size
        return
    assert turns.count(0.0) == min(n, size)
    later = sorted(after for after in turns if after)
    assert later == list(BACKUPS[: max(0, min(size - n, 2 if size <= MANY else 1))])


@given(size=st.integers(FEW + 1, 2 * LANES))
def test_each_is_chosen_as_often_as_any_other_or_nearly(size: int) -> None:
    draws = range(LANES * 2)
    chosen = [sum(turn(place, size, claimable(1, draw)) == 0.0 for draw in draws) for place in range(size)]
    assert max(chosen) - min(chosen) <= 2, chosen
    assert min(chosen) > 0


@given(size=st.integers(1, 3 * LANES), draw=DRAWS, data=st.data())
def test_who_would_look_at_a_single_job_follows_its_lane(size: int, draw: int, data: st.DataObject) -> None:
    names = [f"w{number:03}" for number in range(size)]
    peers = [(name, data.draw(st.sampled_from([(), ("mail",), ("mail", "other")]))) for name in names]
    me = data.draw(st.sampled_from(names))
    fleet = fleet_of(me, *peers)
    consumed = dict(peers)[me] or ("mail", "other", "new")
    lanes = fleet.lanes()
    for queue in (None, *consumed):
        if fleet.turn(claimable(1, draw, queue)) is not None:
            assert draw % LANES in lanes


def test_of_many_each_follows_few_lanes() -> None:
    names = [f"w{number:02}" for number in range(20)]
    fleets = [fleet_of(name, *((other, ()) for other in names)) for name in names]
    counts = [len(fleet.lanes()) for fleet in fleets]
    assert sum(counts) == 2 * LANES  # one who looks at once, and one a moment later
    assert max(counts) <= 2 * (LANES // 20 + 1)


def test_one_who_does_not_know_its_place_follows_every_lane() -> None:
    assert fleet_of("me").lanes() == frozenset(range(LANES))


def test_those_who_handle_other_types_are_counted_apart() -> None:
    peers = [Peer(f"w{number:02}", (), "old" if number % 4 else "new") for number in range(20)]
    fleets = [Fleet(peer.id) for peer in peers]
    for fleet in fleets:
        fleet.meet(peers)
    for draw in range(LANES):
        chosen = {
            peer.handles for peer, fleet in zip(peers, fleets, strict=True) if fleet.turn(claimable(1, draw)) == 0
        }
        assert chosen == {"old", "new"}


def fleet_of(me: str, *peers: tuple[str, tuple[str, ...]]) -> Fleet:
    fleet = Fleet(me)
    fleet.meet([Peer(name, queues) for name, queues in peers])
    return fleet


def test_only_those_count_that_consume_the_queue() -> None:
    peers = [*((f"mail{n}", ("mail",)) for n in range(4)), *((f"other{n}", ("other",)) for n in range(20)), ("z", ())]
    fleets = [fleet_of(name, *peers) for name, queues in peers if queues != ("other",)]
    for draw in range(0, LANES, LANES // 5):
        turns = [fleet.turn(claimable(1, draw, "mail")) for fleet in fleets]
        assert sorted(turns, key=str) == sorted([0.0, *BACKUPS, None, None], key=str)


@pytest.mark.parametrize("peers", [(), (("other", ()),) * 10], ids=["knows nobody", "is not among them"])
def test_one_who_does_not_know_its_place_follows_every_notice(peers: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    assert fleet_of("me", *peers).turn(claimable(1, 7)) == 0.0


def test_a_notice_of_anything_is_everybodys() -> None:
    peers = [(f"w{n:02}", ()) for n in range(20)]
    assert {fleet_of(name, *peers).turn(ANYTHING) for name, _ in peers} == {0.0}


def test_who_beats_next_changes_the_places() -> None:
    names = [f"w{n}" for n in range(6)]
    fleet = fleet_of("w5", *((name, ()) for name in names))
    assert (fleet.size, fleet.turn(claimable(1, LANES - 1))) == (6, 0.0)
    before = fleet.lanes()
    fleet.meet([Peer(name, ()) for name in ("w4", "w5", "w6", "w7", "w8")])
    assert (fleet.size, fleet.turn(claimable(1, LANES // 5 + 1))) == (5, 0.0)
    assert fleet.turn(claimable(1, LANES - 1)) != 0.0
    assert fleet.lanes() != before


@given(size=st.integers(FEW + 1, 30), n=COUNTS, draw=DRAWS)
def test_one_of_those_who_look_passes_the_notice_on(size: int, n: int, draw: int) -> None:
    names = [f"w{number:02}" for number in range(size)]
    fleets = [fleet_of(name, *((other, ()) for other in names)) for name in names]
    notice = claimable(n, draw)
    [leader] = [fleet for fleet in fleets if fleet.leads(notice)]
    assert leader.turn(notice) == 0.0


def test_of_few_each_has_heard_it_and_none_passes_it_on() -> None:
    names = [f"w{number}" for number in range(FEW)]
    assert not any(fleet_of(name, *((other, ()) for other in names)).leads(claimable()) for name in names)


def fleet_within(worker: Worker) -> Fleet:
    parts = worker._parts  # pyright: ignore[reportPrivateUsage]  # nothing else tells whom it has met
    assert parts is not None
    return parts.fleet


class Crew:
    """Workers with one slot each on one file; some are full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.holding = 0
        self.ended = 0
        self.go = asyncio.Event()

    def _app(self) -> Windlass:
        app = app_at(self._path)

        @app.job
        async def hold() -> None:
            self.holding += 1
            await self.go.wait()

        @app.job
        async def quick() -> None:
            self.ended += 1

        return app

    @asynccontextmanager
    async def working(self, n: int, slots: int = 1) -> AsyncGenerator[Windlass, None]:
        async with nothing_left(), AsyncExitStack() as stack:
            met: list[Fleet] = []
            for _ in range(n):
                worker = self._app().worker(concurrency=slots, poll=60, heartbeat=0.3, lease=10, grace=5)
                await stack.enter_async_context(worker)
                met.append(fleet_within(worker))
            await until(lambda: {fleet.size for fleet in met} == {n}, "all to know each other", within=20)
            yield await stack.enter_async_context(self._app())
            self.go.set()


@pytest.mark.timeout(60)
async def test_a_job_finds_the_one_worker_with_a_free_slot(tmp_path: Path) -> None:
    """Without polls: only notices, and those who pass them on, can bring it there."""
    crew = Crew(tmp_path / "jobs.db")
    async with crew.working(8) as client:
        for number in range(1, 8):
            await client.enqueue("hold")
            await until(lambda number=number: crew.holding == number, "a worker to be full", within=5)  # type: ignore[misc]  # bound
        for number in range(1, 11):
            await client.enqueue("quick")
            await until(lambda number=number: crew.ended == number, "the free one to run it", within=5)  # type: ignore[misc]  # bound


@pytest.mark.timeout(60)
async def test_a_job_finds_the_one_worker_that_handles_it(tmp_path: Path) -> None:
    """Without polls: those who have other handlers neither take the notice nor keep it from the one."""
    crew = Crew(tmp_path / "jobs.db")
    done: list[int] = []
    special = app_at(tmp_path / "jobs.db")

    @special.job
    async def rare(n: int) -> None:
        done.append(n)

    async with crew.working(8) as client, special.worker(poll=60, heartbeat=0.3, lease=10, grace=5) as worker:
        fleet = fleet_within(worker)
        await until(lambda: fleet.size == 9, "it to know the others", within=20)
        for number in range(10):
            await client.enqueue("rare", {"n": number})
            await until(lambda number=number: len(done) > number, "the one to run it", within=5)  # type: ignore[misc]  # bound
