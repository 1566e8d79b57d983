"""Keeping what jobs remember while the store is away, refuses, or is held by somebody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.core.making import a_job, declared
from tests.support.until import until
from windlass import LeaseLost, StoreUnavailable, ValueRefused
from windlass.core.events import Hub
from windlass.stores.contract import Keep, Verdict
from windlass.worker import keeping as room
from windlass.worker.config import WorkerConfig
from windlass.worker.keeping import Keeping
from windlass.worker.slots import Running, Slots

LONG = 3600.0


@dataclass
class Server:
    """As much of a store as keeping calls: says what it is told to."""

    answer: Callable[[list[Keep]], list[Verdict]] = field(default=lambda keeps: [Verdict.APPLIED for _ in keeps])
    batches: list[list[str]] = field(default_factory=list[list[str]])
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    """set while it answers"""

    def __post_init__(self) -> None:
        self.answers.set()

    @property
    def jobs(self) -> Server:
        return self

    async def keep(self, keeps: list[Keep]) -> list[Verdict]:
        self.batches.append([one.name for one in keeps])
        await self.answers.wait()
        return self.answer(keeps)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def slots() -> Slots:
    """Of a worker that runs two jobs."""
    return running_jobs(2)


def running_jobs(n: int) -> Slots:
    made = Slots(WorkerConfig(concurrency=n))
    for number in range(n):
        made.take(a_running(f"running {number}"))
    return made


@pytest.fixture
async def keeping(server: Server, slots: Slots) -> AsyncIterator[Keeping]:
    made = Keeping(server, Hub(), slots)  # type: ignore[arg-type]  # as much of a store as it calls
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def a_running(name: str = "j", *, left: float = LONG) -> Running:
    now = asyncio.get_running_loop().time()
    return Running(a_job(id=name), declared(lambda: None), now + left)


async def test_values_that_come_at_the_same_moment_share_a_write(keeping: Keeping, server: Server) -> None:
    running = a_running()
    await asyncio.gather(*(keeping.keep(running, f"step:{n}", "1") for n in range(50)))
    assert [name for batch in server.batches for name in batch] == [f"step:{n}" for n in range(50)]
    assert len(server.batches) == 1


class TestTheOnlyJob:
    """What steps it makes goes straight to the store."""

    @pytest.fixture
    async def slots(self) -> Slots:
        return running_jobs(1)

    async def test_no_turn_of_the_loop_is_lost_on_its_way_to_the_store_and_back(
        self, keeping: Keeping, server: Server
    ) -> None:
        turns: list[int] = []
        loop = asyncio.get_running_loop()
        loop.call_soon(turns.append, 1)
        await keeping.keep(a_running(), "step:straight", "1")
        assert server.batches == [["step:straight"]]
        assert turns == []

    async def test_what_it_keeps_meanwhile_shares_the_next_write(self, keeping: Keeping, server: Server) -> None:
        server.answers.clear()
        steps = [asyncio.create_task(keeping.keep(a_running(), f"step:{n}", "1")) for n in range(50)]
        await until(lambda: server.batches, "the first to be under way")
        server.answers.set()
        await asyncio.gather(*steps)
        assert [len(batch) for batch in server.batches] == [1, 49]

    async def test_a_write_that_is_broken_off_with_its_handler_is_made_again(
        self, keeping: Keeping, server: Server
    ) -> None:
        server.answers.clear()
        task = asyncio.create_task(keeping.keep(a_running(), "step:done", "1"))
        await until(lambda: server.batches, "it to be under way")
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        server.answers.set()
        await until(lambda: len(server.batches) > 1, "it to be written again")
        assert server.batches == [["step:done"]] * 2

    async def test_a_cursor_is_not_broken_off_with_its_handler(self, keeping: Keeping, server: Server) -> None:
        server.answers.clear()
        running = a_running()
        first = asyncio.create_task(keeping.keep(running, "saved", "1"))
        await until(lambda: server.batches, "it to be under way")
        first.cancel()
        second = asyncio.create_task(keeping.keep(running, "saved", "2"))
        await asyncio.sleep(0)
        assert server.batches == [["saved"]]  # the second waits for the first to have been answered
        server.answers.set()
        await second
        assert server.batches == [["saved"]] * 2

    async def test_a_store_that_is_away_is_waited_for(self, keeping: Keeping, server: Server) -> None:
        await test_a_store_that_is_away_is_waited_for(keeping, server)

    async def test_a_lease_that_is_lost_is_told(self, keeping: Keeping, server: Server) -> None:
        server.answer = lambda keeps: [Verdict.STALE for _ in keeps]
        with pytest.raises(LeaseLost):
            await keeping.keep(a_running(), "step:late", "1")


async def test_a_write_carries_no_more_than_it_may(keeping: Keeping, server: Server) -> None:
    running, large = a_running(), "x" * (room.MOST_BYTES // 4)
    await asyncio.gather(*(keeping.keep(running, f"step:{n}", large) for n in range(8)))
    assert max(len(batch) for batch in server.batches) <= 4


async def test_a_store_that_is_away_is_waited_for(keeping: Keeping, server: Server) -> None:
    def away(keeps: list[Keep]) -> list[Verdict]:
        if len(server.batches) < 3:
            raise StoreUnavailable("away")
        return [Verdict.APPLIED for _ in keeps]

    server.answer = away
    await keeping.keep(a_running(), "saved", "1")
    assert server.batches == [["saved"]] * 3


async def test_a_store_that_is_away_for_longer_than_the_lease_has_lost_it(keeping: Keeping, server: Server) -> None:
    def away(_: list[Keep]) -> list[Verdict]:
        raise StoreUnavailable("away")

    server.answer = away
    with pytest.raises(LeaseLost, match="no longer held by lease 7"):
        await keeping.keep(a_running(left=0.2), "saved", "1")


@pytest.mark.parametrize("verdict", [Verdict.STALE, Verdict.MISSING])
async def test_a_lease_that_is_lost_is_told_to_the_handler(keeping: Keeping, server: Server, verdict: Verdict) -> None:
    server.answer = lambda keeps: [verdict for _ in keeps]
    with pytest.raises(LeaseLost):
        await keeping.keep(a_running(), "saved", "1")


async def test_a_worker_that_gave_the_job_up_asks_nobody(keeping: Keeping, server: Server) -> None:
    running = a_running()
    running.fence()
    with pytest.raises(LeaseLost):
        await keeping.keep(running, "saved", "1")
    assert server.batches == []


async def test_what_somebody_holds_is_tried_again_and_the_others_do_not_wait(keeping: Keeping, server: Server) -> None:
    released = asyncio.Event()

    def held(keeps: list[Keep]) -> list[Verdict]:
        return [Verdict.HELD if one.name == "held" and not released.is_set() else Verdict.APPLIED for one in keeps]

    server.answer = held
    waiting = asyncio.create_task(keeping.keep(a_running("a"), "held", "1"))
    await keeping.keep(a_running("b"), "free", "1")
    await until(lambda: sum("held" in batch for batch in server.batches) > 1, "it to be tried again")
    assert not waiting.done()
    released.set()
    await waiting


async def test_a_value_that_is_refused_is_its_own_handlers_trouble(keeping: Keeping, server: Server) -> None:
    def refusing(keeps: list[Keep]) -> list[Verdict]:
        if any(one.name == "bad" for one in keeps):
            raise ValueRefused("not that")
        return [Verdict.APPLIED for _ in keeps]

    server.answer = refusing
    told: list[Any] = await asyncio.gather(
        *(keeping.keep(a_running(name), name, "1") for name in ("good", "bad", "better")), return_exceptions=True
    )
    assert [type(one) for one in told] == [type(None), ValueRefused, type(None)]


async def test_a_handler_that_was_stopped_has_its_value_written_all_the_same(keeping: Keeping, server: Server) -> None:
    task = asyncio.create_task(keeping.keep(a_running(), "step:done", "1"))
    await asyncio.sleep(0)
    task.cancel()
    await until(lambda: server.batches, "the value to be written")
    assert server.batches == [["step:done"]]


async def test_a_worker_that_has_stopped_keeps_nothing_more(server: Server) -> None:
    server.answers = asyncio.Event()
    keeping = Keeping(server, Hub(), running_jobs(2))  # type: ignore[arg-type]  # as much of a store as it calls
    run = asyncio.create_task(keeping.run())
    first = asyncio.create_task(keeping.keep(a_running(), "first", "1"))
    await until(lambda: server.batches, "it to be under way")
    run.cancel()
    with pytest.raises(LeaseLost):
        await first
    with pytest.raises(LeaseLost):
        await keeping.keep(a_running(), "second", "1")
